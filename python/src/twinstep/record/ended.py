# SPDX-License-Identifier: Apache-2.0
"""An update that has ended, while its numbers come home, and the row that they make.

The recorder goes on with the next update meanwhile, so what a row needs besides the numbers is kept
here as it was when the update ended."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from . import digest
from .layout import PHASES, READBACK
from .tensors import AddUp, Row


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
    clip: float | None
    logged: list[float] | None  # what the log printed, by groups
    skipped: bool | None        # as the caller said
    stepped: bool               # an optimizer was seen to step, or the caller said so
    known: bool                 # every optimizer would have been seen
    unscaled: bool              # a GradScaler decides whether it steps
    rng: bytes
    width: int
    tensors: int

    def close(self, add_up: AddUp | None = None,
              before: Sequence[bytes | None] | None = None) -> dict[str, Any]:
        """The row, as `Layout.pack` takes it; waits for what is not home yet. `before`: the digests
        of the weights in the row before, if there is one."""
        seen = self.row.close(add_up)
        columns = seen.pop("digests")
        scale = seen.get("loss_scale") or 1.0
        row: dict[str, Any] = {k: v for k, v in seen.items() if "/" not in k}
        if "loss" not in self.said and self.losses:
            row["loss"] = sum(seen[f"losses/{i}"] for i in range(self.losses)) / scale
        if self.is_scaled and "grad_norm" not in self.said:
            for name in ("grad_norm", "grad_norm_taken"):
                if row.get(name) is not None:
                    row[name] /= scale
        if self.clip is not None and row.get("grad_norm") is not None:
            row["clip_coef"] = min(1.0, self.clip / (row["grad_norm"] + 1e-6))
        found_inf = bool(row.pop("found_inf", 0.0))
        row.update(step=self.step, digest_rng=self.rng)
        for name in ("tokens", "epoch", "optimizer_t"):
            if row.get(name) is not None:
                row[name] = int(row[name])
        for name in ("lr_applied", "wd_applied", *READBACK):
            row[name] = [seen.get(f"{name}/{g}") for g in range(self.width)]
        row["lr_logged"] = self.logged
        self._put_digests(row, columns)
        row["skipped"] = self._is_skipped(found_inf, row["tensors/digest_parameter"], before)
        return row

    def _is_skipped(self, found_inf: bool, now: Sequence[bytes | None],
                    before: Sequence[bytes | None] | None) -> bool | None:
        """None where weights moved, or may have, and nobody was seen to step."""
        if self.skipped is not None:
            return self.skipped
        if self.stepped:
            return found_inf
        if self.known and (self.unscaled or before is None):
            return True
        stayed = before is not None and None not in now and list(now) == list(before)
        return True if stayed else None

    def _put_digests(self, row: dict[str, Any], columns: dict[str, dict[Any, bytes]]) -> None:
        for name in ("tensors/digest_gradient", "tensors/digest_parameter"):
            found = columns.get(name, {})
            row[name] = [found.get(i) for i in range(self.tensors)]
        left_out = self.row.left_out        # a digest of the others would say more than it saw
        if "batch" in columns and "batch" not in left_out:
            row["digest_batch"] = digest.listed("batch", columns["batch"].values())
        if "state" in columns and not {"state", "tensors/digest_parameter"} & set(left_out):
            # By the places of tensors: with several optimizers the order in which they step, and
            # which of them do not, is no part of what they hold.
            known = columns.get("tensors/digest_parameter", {})
            parts = [known[i] for i in sorted(known)]
            parts += [d for _, d in sorted(columns["state"].items(), key=lambda of: of[0][0])]
            row["digest_state"] = digest.listed("state", parts)
        order = sorted(self.places, key=self.places.__getitem__)
        row["phases/place"] = [order.index(p) if p in order else -1 for p in PHASES]
