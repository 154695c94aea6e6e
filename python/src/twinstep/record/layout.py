# SPDX-License-Identifier: Apache-2.0
"""What a recording has: its columns, their order, and the bytes of a row (docs/FOREIGN.md).

A row is a dict from a column's name to its value: a float, an int, 32 bytes, or a list of these
along the column's axis. What is not there is written as not measured: NaN, -1, zeros."""
from __future__ import annotations

from dataclasses import dataclass, field
from struct import pack
from typing import Any, Mapping, Sequence

from . import digest

PHASES = ("forward", "backward", "unscale", "clip", "optimize", "schedule", "zero", "log")


@dataclass(frozen=True)
class Column:
    """A column of docs/FOREIGN.md: one value per update along one axis at most."""
    name: str
    kind: str           # f: f64, i: i64, d: digest, k: digest that the writer makes of a sum
    axis: str           # "", group, tensor, phase
    units: str
    long_name: str


COLUMNS = tuple(Column(*row) for row in (
    ("loss", "f", "", "nat", "sum of what backward was called on, without the loss scale"),
    ("logp_chosen", "f", "", "nat", "mean log-probability, chosen, as the log printed it"),
    ("logp_rejected", "f", "", "nat", "mean log-probability, rejected, as the log printed it"),
    ("reward_chosen", "f", "", "nat", "mean implicit reward, chosen, as the log printed it"),
    ("reward_rejected", "f", "", "nat", "mean implicit reward, rejected, as the log printed it"),
    ("reward_margin", "f", "", "nat", "mean reward of chosen less rejected, as the log printed it"),
    ("reward_accuracy", "f", "", "1", "pairs with a margin above 0, as the log printed it"),
    ("grad_norm", "f", "", "nat", "gradient norm before clipping"),
    ("clip_coef", "f", "", "1", "factor applied by clipping"),
    ("param_norm", "f", "", "1", "norm of the parameters after the update"),
    ("loss_scale", "f", "", "1", "factor on the loss of this update's gradients"),
    ("grad_norm_taken", "f", "", "nat", "norm of the gradient that the optimizer was given"),
    ("tokens", "i", "", "tokens", "as the caller says"),
    ("skipped", "i", "", "1", "1: the optimizer did not run or changed nothing"),
    ("epoch", "i", "", "1", "as the caller says"),
    ("optimizer_t", "i", "", "updates", "the optimizer's own count, of its first tensor"),
    ("digest_batch", "d", "", "1", "tensors given to the model, in order"),
    ("digest_rng", "d", "", "1", "states of the generators after the update"),
    ("digest_state", "d", "", "1", "parameters and the optimizer's tensors after the update"),
    ("lr_applied", "f", "group", "1", "learning rate of the group when the optimizer stepped"),
    ("lr_logged", "f", "group", "1", "learning rate that the log printed"),
    ("lr_readback", "f", "group", "1", "estimated from the weights before and after"),
    ("lr_readback_error", "f", "group", "1", "bound of its error from rounding"),
    ("wd_readback", "f", "group", "1", "weight decay outside of the gradient, estimated"),
    ("wd_readback_error", "f", "group", "1", "bound of its error from rounding"),
    ("wd_applied", "f", "group", "1", "weight decay of the group when the optimizer stepped"),
    ("tensors/digest_gradient", "d", "tensor", "1", "gradient before clipping"),
    ("tensors/digest_parameter", "k", "tensor", "1", "tensor after the update"),
    ("phases/place", "i", "phase", "1", "place of the phase's first event, -1 not seen"),
    ("step", "i", "", "1", "update, 1-based"),
))
# What TRL's trainers of pairs log. A recording has those of which the log of its first update told.
PAIRS = {"logps/chosen": "logp_chosen", "logps/rejected": "logp_rejected",
         "rewards/chosen": "reward_chosen", "rewards/rejected": "reward_rejected",
         "rewards/margins": "reward_margin", "rewards/accuracies": "reward_accuracy"}
READBACK = ("lr_readback", "lr_readback_error", "wd_readback", "wd_readback_error")
TYPES = {"f": "<f8", "i": "<i8", "d": "|u1", "k": "|u1"}
MISSING = {"f": pack("<d", float("nan")), "i": pack("<q", -1), "d": bytes(32), "k": bytes(9)}
CODES = {"f": "<d", "i": "<q"}


@dataclass
class Layout:
    """The columns of one recording. `lengths` has the length of each axis, `initial` the digest of
    each tensor before the first update ("" where there is none), or nothing."""
    path: str
    run: str
    attributes: dict[str, Any]
    run_attributes: dict[str, Any]
    tensors: list[tuple[str, str, str, int]]    # name, dtype, shape as in "64,512", group
    groups: int
    columns: tuple[Column, ...]
    initial: list[str] = field(default_factory=list)
    lengths: dict[str, int] = field(init=False)
    _plan: list[tuple[Column, bytes, str | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.lengths = {"": 1, "group": self.groups, "tensor": len(self.tensors),
                        "phase": len(PHASES)}
        self.columns = tuple(c for c in self.columns if self.lengths[c.axis] > 0)
        # Of each column what a row without it has, and how one number is packed.
        self._plan = [(c, MISSING[c.kind] * self.lengths[c.axis],
                       None if c.axis or c.kind not in CODES else CODES[c.kind])
                      for c in self.columns]

    def header(self) -> dict[str, Any]:
        """What `writer.py` makes the file from."""
        texts: dict[str, Sequence[str]] = {"phases/phase": list(PHASES)}
        numbers: dict[str, Any] = {"group": ["<i8", list(range(self.groups))],
                                   "byte": ["<i8", list(range(32))]}
        axes = {"group": "group", "byte": "byte", "phase": "phases/phase"}
        if self.tensors:
            names, dtypes, shapes, groups = zip(*self.tensors)
            texts.update({"tensors/tensor": names, "tensors/dtype": dtypes})
            texts["tensors/shape"] = shapes
            if any(self.initial):
                texts["tensors/initial"] = tuple(self.initial)
            numbers["tensors/group"] = ["<u4", list(groups)]
            axes["tensor"] = "tensors/tensor"
        return {"path": self.path, "run": self.run, "attributes": self.attributes,
                "run_attributes": self.run_attributes, "texts": texts, "numbers": numbers,
                "axes": axes, "columns": [self._describe(c) for c in self.columns]}

    def _describe(self, c: Column) -> dict[str, Any]:
        is_digest = c.kind in "dk"
        axes = ([c.axis] if c.axis else []) + (["byte"] if is_digest else [])
        shape = ([self.lengths[c.axis]] if c.axis else []) + ([32] if is_digest else [])
        heads = {"heads": [
            digest.head(name, dtype, [int(n) for n in lengths.split(",") if n]).hex()
            for name, dtype, lengths, _ in self.tensors]} if c.kind == "k" else {}
        return {"name": c.name, "type": TYPES[c.kind], "shape": shape, "axes": axes,
                "units": c.units, "long_name": c.long_name, **heads}

    def pack(self, row: Mapping[str, Any]) -> bytes:
        """The bytes of a row, as `writer.py` reads them. In a column of kind k each tensor has its
        sum (any integer, mod 2^64) in place of a digest, behind a byte for each that is 1 where it
        has one; all sums may be given as bytes, too."""
        parts = []
        for c, missing, code in self._plan:
            value = row.get(c.name)
            if value is None:
                parts.append(missing)
            elif code is None:
                parts.append(self._packed(c, value))
            else:
                parts.append(pack(code, value))
        return b"".join(parts)

    def _packed(self, c: Column, value: Any) -> bytes:
        length = self.lengths[c.axis]
        if isinstance(value, bytes) and c.kind == "k":
            return b"\1" * length + value
        values = list(value)[:length] if c.axis else [value]
        values += [None] * (length - len(values))
        if c.kind == "k":
            return bytes(v is not None for v in values) + pack(
                f"<{length}Q", *(0 if v is None else v % (1 << 64) for v in values))
        missing, kind = MISSING[c.kind], CODES.get(c.kind)
        return b"".join(missing if v is None else pack(kind, v) if kind else v for v in values)
