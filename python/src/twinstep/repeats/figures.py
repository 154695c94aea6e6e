# SPDX-License-Identifier: Apache-2.0
"""How far two paths are apart: the figures of `twinstep noise` (experiment/noise/noise_path.c)."""
from __future__ import annotations

import math

import torch

from .noise_report import Moved, Stratum
from .training import Path, Tensors

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def gap(a: float, b: float) -> float:
    """|a - b|; none between two NaNs, an infinite one between a NaN and a number."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return math.inf if math.isnan(a - b) else abs(a - b)


def relative(a: float, b: float) -> float:
    """|a - b| / |a|."""
    distance = gap(a, b)
    if distance == 0.0:
        return 0.0
    return math.inf if a == 0.0 or math.isnan(distance / abs(a)) else distance / abs(a)


def _bits(t: torch.Tensor) -> torch.Tensor:
    return t.reshape(-1).view(INTEGERS[t.element_size()])


def equal(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Whether all bits are equal; no tensor equals no tensor."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bits(a), _bits(b))


def ulps(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    """The largest distance of two elements, in representable numbers between them."""
    if a is None or b is None or a.numel() == 0 or not a.dtype.is_floating_point:
        return 0.0

    def ordered(t: torch.Tensor) -> torch.Tensor:
        """The bits as integers that grow with the number, as f64, which rounds those of f64."""
        raw = _bits(t)
        least = torch.iinfo(raw.dtype).min
        signed = raw.to(torch.float64)
        return torch.where(raw < 0, float(least) - signed, signed)
    return float((ordered(a) - ordered(b)).abs().max())


def norm(t: torch.Tensor | None) -> float:
    """The Euclidean norm in f64."""
    return 0.0 if t is None else float(torch.linalg.vector_norm(t.to(torch.float64)))


def distance(a: Tensors, b: Tensors) -> float:
    """The Euclidean distance over all tensors; infinite where it is none. Tensors of equal bits
    are no distance apart, also where they hold NaN."""
    whole = 0.0
    for name, x in a.items():
        y = b[name]
        if x is not None and y is not None and not equal(x, y):
            whole += norm(x.to(torch.float64) - y.to(torch.float64)) ** 2
    return math.inf if math.isnan(whole) else math.sqrt(whole)


def whole_norm(of: Tensors) -> float:
    """The norm over all tensors."""
    return math.sqrt(sum(norm(t) ** 2 for t in of.values()))


def _first_place(a: Path, b: Path, update: int) -> str:
    """Where two paths part first in an update, as it computes: loss, gradients from the last tensor
    to the first, weights. "" where nothing differs."""
    if gap(a.losses[update], b.losses[update]) != 0.0:
        return "forward: the loss"
    for what, one, other, names in (
            ("gradient", a.gradients, b.gradients, reversed(a.start)),
            ("update", a.weights, b.weights, iter(a.start))):
        for name in names:
            if not equal(one[update][name], other[update][name]):
                return f"{what} {name}"
    return ""


def alike(a: Path, b: Path) -> bool:
    """Whether two paths have the same losses and end in the same weights, bit for bit."""
    return (all(gap(x, y) == 0.0 for x, y in zip(a.losses, b.losses))
            and all(equal(t, b.weights[-1].get(name)) for name, t in a.weights[-1].items()))


class Figures:
    """The worst of several comparisons of a path with others."""

    def __init__(self, base: Path) -> None:
        self.base, self.count, self.first, self.place = base, 0, 0, ""
        names = list(base.start)
        self.gradients_equal = self.updates_equal = len(names)
        self.gradient_ulp = self.weight_ulp = self.total = 0.0
        steps = len(base.losses)
        self.loss, self.norm, self.far = [0.0] * steps, [0.0] * steps, [0.0] * steps
        self.share = [math.nan] * steps
        self.moved: dict[str, list[float]] = {n: [0, 0.0, 0.0, 0.0] for n in names}

    def add(self, other: Path) -> None:
        """Compares one more path. Before the first update that differs all bits were equal."""
        self.count += 1
        first = 0
        for k in range(len(self.base.losses)):
            self._grow(other, k)
            place = "" if first else _first_place(self.base, other, k)
            if place:
                first = k + 1
                self._look(other, k)
                if self.first == 0 or first < self.first:
                    self.first, self.place = first, place

    def _grow(self, other: Path, k: int) -> None:
        a = self.base
        self.loss[k] = max(self.loss[k], gap(a.losses[k], other.losses[k]))
        self.norm[k] = max(self.norm[k], relative(a.norms[k], other.norms[k]))
        far, travel = distance(a.weights[k], other.weights[k]), distance(a.start, a.weights[k])
        self.far[k] = max(self.far[k], far)
        if travel > 0 or far == 0:
            share = far / travel if far else 0.0
            self.share[k] = share if math.isnan(self.share[k]) else max(self.share[k], share)

    def _look(self, other: Path, k: int) -> None:
        a, same, stayed = self.base, 0, 0
        for name, entry in self.moved.items():
            x, y = a.gradients[k][name], other.gradients[k][name]
            alike = equal(x, y)
            same += alike
            stayed += equal(a.weights[k][name], other.weights[k][name])
            self.weight_ulp = max(self.weight_ulp, ulps(a.weights[k][name], other.weights[k][name]))
            if not alike:
                u = ulps(x, y)
                self.gradient_ulp = max(self.gradient_ulp, u)
                entry[0] += 1
                entry[1] = max(entry[1], relative(norm(x), norm(y)))
                entry[2] = max(entry[2], self._apart(x, y))
                entry[3] = max(entry[3], u)
        self.gradients_equal = min(self.gradients_equal, same)
        self.updates_equal = min(self.updates_equal, stayed)
        self.total = max(self.total, relative(whole_norm(a.gradients[k]),
                                              whole_norm(other.gradients[k])))

    @staticmethod
    def _apart(x: torch.Tensor | None, y: torch.Tensor | None) -> float:
        if x is None or y is None:
            return math.inf
        far, size = norm(x.to(torch.float64) - y.to(torch.float64)), norm(x)
        return math.inf if math.isnan(far) or size == 0 else far / size

    def stratum(self, name: str) -> Stratum:
        """The row of the table."""
        worst = max(self.moved, key=lambda n: self.moved[n][1])
        relative_worst = self.moved[worst][1]
        moved = sorted((Moved(n, int(e[0]), e[1], e[2], e[3]) for n, e in self.moved.items()
                        if e[0]), key=lambda m: (-m.apart, m.tensor))
        return Stratum(
            name, "", self.count, self.first, self.place, len(self.moved), self.gradients_equal,
            self.updates_equal, self.gradient_ulp, self.weight_ulp, relative_worst,
            worst if relative_worst > 0 else "", self.total, tuple(self.loss), tuple(self.norm),
            tuple(self.far), tuple(self.share), tuple(moved))
