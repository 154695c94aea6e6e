# SPDX-License-Identifier: Apache-2.0
"""An update that has ended, while its numbers come home, and the row that they make.

The recorder goes on with the next update meanwhile, so what a row needs besides the numbers is kept
here as it was when the update ended."""
from __future__ import annotations

from dataclasses import dataclass
from math import nan, prod
from struct import unpack
from typing import Any, Mapping, Sequence, Union

from . import digest
from .layout import PHASES, READBACK
from .tensors import AddUp, Label, Row, Sums

Keyed = tuple[Label, int]       # a tensor's label, and the sum of its elements
Columns = Mapping[str, Mapping[Any, Keyed]]
Lists = Mapping[str, Sequence[Sums]]
Weights = Union[bytes, Sequence[Union[int, None]]]      # sums of weights; bytes where all have one


WEIGHTS, GRADIENTS = "tensors/digest_parameter", "tensors/digest_gradient"
INITIAL = "tensors/initial"     # weights when the recording began, in its first row alone


def keyed_of(name: str, columns: Columns, lists: Lists) -> dict[Any, Keyed]:
    """What a row has of a column of digests, by the places in it."""
    found = dict(columns.get(name, {}))
    for some in lists.get(name, ()):
        found.update(some.keyed())
    return found


def weights_of(columns: Columns, lists: Lists, tensors: int) -> Weights:
    """The sums of the weights, as `Layout.pack` takes them."""
    if WEIGHTS in lists:        # of all of them, in their order
        return lists[WEIGHTS][0].raw
    found = columns.get(WEIGHTS, {})
    return [found[i][1] if i in found else None for i in range(tensors)]


def _numbers(weights: Weights) -> Sequence[int | None]:
    """Each sum as a number; they come as bytes in some updates and not in others where weights
    move to another device, or into memory that cannot be read."""
    if isinstance(weights, bytes):
        return list(unpack(f"<{len(weights) // 8}Q", weights))
    return list(weights)


def _closed(keyed: Keyed) -> bytes:
    """The digest of a tensor."""
    (name, dtype, shape, _), total = keyed
    return digest.close(name, dtype, shape, total)


def _factor(most: float, norm: float | None) -> float:
    """What torch multiplies gradients of this norm with as it clips them: NaN where that is NaN, or
    not known."""
    factor = nan if norm is None else most / (norm + 1e-6)
    return 1.0 if factor > 1.0 else factor


@dataclass
class Ended:
    """Update `step`. `losses`: how many `losses/i` the row has, by backward passes; `places`: of
    phases, in the order of their first events; `said`: columns that the caller gave; `width` and
    `tensors`: how many groups and trained tensors there are columns for."""
    step: int
    row: Row
    losses: int
    places: Mapping[str, int]
    said: frozenset[str]
    is_scaled: bool
    clips: tuple[float, ...]    # limits of all clips, of which the row has the norms as `clips/i`
    logged: list[float] | None  # what the log printed, by groups
    skipped: bool | None        # as the caller said
    stepped: bool               # an optimizer was seen to step, or the caller said so
    known: bool                 # every optimizer would have been seen
    unscaled: bool              # a GradScaler decides whether it steps
    rng: bytes
    width: int
    tensors: int

    def close(self, add_up: AddUp | None = None,
              before: Weights | None = None) -> dict[str, Any]:
        """The row, as `Layout.pack` takes it, and under "closing" what `Closing.pack` takes, one
        after the other; waits for what is not home yet. `before`: the sums of the weights in the
        row before, if there is one."""
        seen = self.row.close(add_up)
        columns, lists = seen.pop("totals"), seen.pop("lists")
        scale = seen.get("loss_scale") or 1.0
        row: dict[str, Any] = {k: v for k, v in seen.items() if "/" not in k}
        if "loss" not in self.said and self.losses:
            row["loss"] = sum(seen[f"losses/{i}"] for i in range(self.losses)) / scale
        if self.is_scaled and "grad_norm" not in self.said:
            for name in ("grad_norm", "grad_norm_taken"):
                if row.get(name) is not None:
                    row[name] /= scale
        if self.clips:
            row["clip_coef"] = prod(_factor(most, seen.get(f"clips/{i}"))
                                    for i, most in enumerate(self.clips))
        found_inf = bool(row.pop("found_inf", 0.0))
        row.update(step=self.step, digest_rng=self.rng)
        for name in ("tokens", "epoch", "optimizer_t"):
            if row.get(name) is not None:
                row[name] = int(row[name])
        for name in ("lr_applied", "wd_applied", *READBACK):
            row[name] = [seen.get(f"{name}/{g}") for g in range(self.width)]
        row["lr_logged"] = self.logged
        self._put_digests(row, columns, lists)
        row["skipped"] = self._is_skipped(found_inf, row[WEIGHTS], before)
        return row

    def _is_skipped(self, found_inf: bool, now: Weights, before: Weights | None) -> bool | None:
        """None where weights moved, or may have, and nobody was seen to step."""
        if self.skipped is not None:
            return self.skipped
        if self.stepped:
            return found_inf
        if self.known and (self.unscaled or before is None):
            return True
        stayed = before is not None and (isinstance(now, bytes) or None not in now) \
            and _numbers(now) == _numbers(before)
        return True if stayed else None

    def _put_digests(self, row: dict[str, Any], columns: Columns, lists: Lists) -> None:
        row[WEIGHTS] = weights_of(columns, lists, self.tensors)
        initial = keyed_of(INITIAL, columns, lists)
        if initial:     # of a weight that was cast since then, bits of another dtype say nothing
            now = keyed_of(WEIGHTS, columns, lists)
            row[INITIAL] = [_closed(initial[i]).hex() if i in initial and i in now
                            and initial[i][0][:3] == now[i][0][:3] else ""
                            for i in range(self.tensors)]
        closing: list[tuple[str, Sequence[Sums], str | None]] = []
        if GRADIENTS in lists and GRADIENTS not in columns:
            closing.append((GRADIENTS, lists[GRADIENTS], None))
        elif gradients := keyed_of(GRADIENTS, columns, lists):
            row[GRADIENTS] = [
                _closed(gradients[i]) if i in gradients else None for i in range(self.tensors)]
        left_out = self.row.left_out        # a digest of the others would say more than it saw
        if "batch" in columns and "batch" not in left_out:
            row["digest_batch"] = digest.listed("batch", map(_closed, columns["batch"].values()))
        if {"state", WEIGHTS} & set(left_out):
            pass
        elif "state" in lists and WEIGHTS in lists and "state" not in columns:
            closing.append(("digest_state", [lists[WEIGHTS][0], *lists["state"]], "state"))
        elif state := keyed_of("state", columns, lists):
            # By the places of tensors, as `Closing` has it.
            weights = keyed_of(WEIGHTS, columns, lists)
            parts = [weights[i] for i in sorted(weights)]
            parts += [state[at] for at in sorted(state, key=lambda at: (at[0], str(at[1])))]
            row["digest_state"] = digest.listed("state", map(_closed, parts))
        row["closing"] = closing
        order = sorted(self.places, key=self.places.__getitem__)
        row["phases/place"] = [order.index(p) if p in order else -1 for p in PHASES]
