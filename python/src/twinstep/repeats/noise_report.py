# SPDX-License-Identifier: Apache-2.0
"""What `twinstep.noise` found, as frozen dataclasses, and as the table that it prints."""
from __future__ import annotations

import pathlib
from dataclasses import dataclass

from ..floor_file import Row

HEAD = (f"  {'stratum':<9}  {'grads =':>7}  {'upd. =':>7}  {'max ulp':>8}  {'tensor':>9}"
        f"  {'total':>9}  {'|a-b| 1':>9}  {'last':>9}  first difference")


@dataclass(frozen=True, slots=True)
class Moved:
    """A tensor whose gradient differs at the first update that differs, and by how much at most.

    `differs`: in how many comparisons; `norm`: | |g| - |h| | / |g|; `apart`: |g - h| / |g|."""
    tensor: str
    differs: int
    norm: float
    apart: float
    ulp: float


@dataclass(frozen=True, slots=True)
class MovedOp:
    """An op of torch that made another output of equal inputs in update 1.

    `module` called it, or called the op that this one is the derivative of; `place` counts the ops
    of the update from 0; `times` of `of` comparisons; `apart`: |a - b| / |a| of its output, None
    where no further repeat showed it. `outside`: no op of torch wrote what it was given. `hidden`:
    the ops that read what it made make the same of it."""
    op: str
    module: str
    phase: str
    place: int
    times: int
    of: int
    apart: float | None
    outside: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Stratum:
    """One way of repeating, the worst of `repeats` comparisons; docs/NOISE.md explains the figures.
    `untestable` says why there are none. `first` is the first update that differs, 0: none does."""
    stratum: str
    untestable: str
    repeats: int = 0
    first: int = 0
    first_place: str = ""
    tensors: int = 0
    gradients_equal: int = 0
    updates_equal: int = 0
    gradient_ulp: float = 0.0
    weight_ulp: float = 0.0
    tensor_relative: float = 0.0
    tensor_worst: str = ""
    total_relative: float = 0.0
    loss: tuple[float, ...] = ()
    grad_norm: tuple[float, ...] = ()
    distance: tuple[float, ...] = ()
    share: tuple[float, ...] = ()
    moved: tuple[Moved, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether it was measured and every bit of every update is equal."""
        return not self.untestable and self.first == 0

    def line(self) -> str:
        """The row as it is printed."""
        if self.untestable:
            return f"  {self.stratum:<9}  untestable: {self.untestable}"
        if self.first == 0:
            return (f"  {self.stratum:<9}  bit-equal: {len(self.loss)} "
                    f"update{'s' if len(self.loss) > 1 else ''}, {self.tensors} tensors, "
                    f"{self.repeats} repeat{'s' if self.repeats > 1 else ''}")

        def share(x: float) -> str:
            """A number, or - where it is none."""
            return f"{'-':>9}" if x != x else f"{x:9.2e}"
        return (f"  {self.stratum:<9}  {100 * self.gradients_equal / self.tensors:5.1f} %  "
                f"{100 * self.updates_equal / self.tensors:5.1f} %  {self.gradient_ulp:8.0f}  "
                f"{share(self.tensor_relative)}  {share(self.total_relative)}  "
                f"{share(self.share[0])}  {share(self.share[-1])}  {self.first}: "
                f"{self.first_place}")


@dataclass(frozen=True, slots=True)
class Mode:
    """All strata with torch's deterministic algorithms on, or off."""
    deterministic: bool
    strata: tuple[Stratum, ...]
    ops: tuple[MovedOp, ...] = ()
    ops_untestable: str = ""
    ops_looked: bool = False

    def stratum(self, name: str) -> Stratum:
        """"repeat", "instance" or "process"."""
        return next(s for s in self.strata if s.stratum == name)

    @property
    def exact(self) -> bool:
        """Whether every stratum was measured and is bit-equal."""
        return all(s.equal for s in self.strata)

    @property
    def h21(self) -> str:
        """Hypothesis 21 (docs/CATALOG.md) here: do two instances in one process have other
        gradients at update 1?"""
        one = self.stratum("instance")
        if one.untestable:
            return f"untestable: {one.untestable}"
        if one.first != 1 or one.gradients_equal == one.tensors:
            return (f"no: all {one.tensors} gradients of update 1 are bit-equal in "
                    f"{one.repeats + 1} instances of one process")
        return (f"yes: {one.gradients_equal} of {one.tensors} gradients of update 1 are bit-equal, "
                f"norms up to {100 * one.tensor_relative:.2g} % apart"
                + (f" ({one.tensor_worst})" if one.tensor_worst else "")
                + f", {100 * one.total_relative:.2g} % over all")

    def lines(self) -> list[str]:
        """The table, the tensors and ops that move, and H21."""
        out = [f"deterministic algorithms {'on' if self.deterministic else 'off'}"]
        reasons = {s.untestable for s in self.strata}
        if len(reasons) == 1 and "" not in reasons:
            return [*out, f"  untestable: {reasons.pop()}"]
        out.append(HEAD)
        out += [s.line() for s in self.strata]
        worst = max((s for s in self.strata if s.moved), key=lambda s: s.moved[0].apart,
                    default=None)
        if worst is not None:
            out.append(f"  tensors that move, of {worst.tensors}, in stratum {worst.stratum} "
                       f"({len(worst.moved)}; farthest first):")
            out += [f"    {m.tensor}: |g-h|/|g| {m.apart:.2e}, {m.ulp:.0f} ulp, in {m.differs} of "
                    f"{worst.repeats}" for m in worst.moved[:8]]
        if self.ops_untestable:
            out.append(f"  ops that move: untestable: {self.ops_untestable}")
        elif self.ops_looked and not self.ops:
            out.append("  ops that move: none did in the repeats that were looked at op by op")
        elif self.ops:
            out.append("  ops that make other outputs of equal inputs:")
            out += [_op_line(op) for op in self.ops[:12]]
        out.append(f"  H21, two instances in one process: {self.h21}")
        return out


def _op_line(op: MovedOp) -> str:
    far = "" if op.apart is None else f", |a-b|/|a| {op.apart:.2e}" if op.apart > 0 \
        else ", in bits alone (the sign of a zero, a NaN)"
    if op.hidden:
        far += ", of which the ops that read it make the same"
    if op.outside:
        return (f"    before {op.op} in {op.module or 'the step'} ({op.phase}): its input was "
                f"written by no op of torch (an own kernel?), in {op.times} of {op.of}")
    return f"    {op.op} in {op.module or 'the step'} ({op.phase}): in {op.times} of {op.of}{far}"


@dataclass(frozen=True, slots=True)
class Noise:
    """How far repeats of one real step are apart. `modes`: as it was called, then the other
    setting of deterministic algorithms. `pairs`: how many A/A pairs were trained; `exact`: all of
    them and all strata, as the step was called, are bit-equal; of a step that keeps state between
    instances, all pairs of processes and that stratum. `output` is None where none was written."""
    name: str
    updates: int
    modes: tuple[Mode, ...]
    pairs: int
    protocol: str
    exact: bool
    notes: tuple[str, ...] = ()
    output: pathlib.Path | None = None

    def __str__(self) -> str:
        out = [f"{self.name}: {self.updates} update{'s' if self.updates > 1 else ''}"]
        for mode in self.modes:
            out += mode.lines()
        out += [f"note: {note}" for note in self.notes]
        if self.output is not None:
            out.append(f"written to {self.output}: {self.pairs} A/A pair"
                       f"{'s' if self.pairs > 1 else ''}{', exact' if self.exact else ''}")
        return "\n".join(out)


def rows(modes: tuple[Mode, ...], dtype: str, threads: int, updates: int) -> list[Row]:
    """The strata as a floor file has them."""
    out = []
    for mode in modes:
        for s in mode.strata:
            words = (f"deterministic {'on' if mode.deterministic else 'off'}", dtype, str(threads),
                     s.stratum, "", s.untestable, s.first_place, s.tensor_worst)
            figures = (s.repeats, s.first, s.tensors, s.gradients_equal, s.updates_equal,
                       s.gradient_ulp, s.weight_ulp, s.tensor_relative, s.total_relative)
            out.append(Row(words, tuple(map(float, figures)), s.share or (0.0,) * updates))
    return out


def parts(modes: tuple[Mode, ...], dtype: str) -> str:
    """Lines of `noise/parts`: the ops that move."""
    out = ""
    for mode in modes:
        for op in mode.ops:
            name = f"{op.phase} {op.module} {op.op}" + (" (outside)" if op.outside else "")
            words = (f"deterministic {'on' if mode.deterministic else 'off'}", dtype, "instance",
                     "op", " ".join(name.split()), str(op.of), str(op.of - op.times),
                     repr(0.0 if op.apart is None else op.apart), "0")
            out += "\t".join(words) + "\n"
    return out
