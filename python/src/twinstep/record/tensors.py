# SPDX-License-Identifier: Apache-2.0
"""Sums and norms of many tensors without waiting for a device, and one copy that brings them home.

A `Row` collects values that may still be tensors of a device: it stacks them there, adds up those
that ranks hold parts of, and copies once per device when the row is closed."""
from __future__ import annotations

from typing import Any, Iterable, Sequence

import torch

from . import digest
from .keyed_torch import DTYPES, Total, is_sharded, keyed_sums


def whole(value: Any) -> Any:
    """A plain tensor for a DTensor: a collective, so it runs on every rank or on none."""
    return value.full_tensor() if is_sharded(value) else value


def local(t: torch.Tensor) -> torch.Tensor:
    """What this rank holds of a tensor."""
    return t.to_local() if is_sharded(t) else t     # type: ignore[attr-defined]


@torch.no_grad()
def square(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor | None, bool]:
    """The sum of squares of all elements (f64, on the device of the first tensor), and whether it
    is a part that other ranks add to. One pass over the memory, no copy to the host."""
    if not tensors:
        return None, False
    norms = torch._foreach_norm([local(t.detach()) for t in tensors])
    first = norms[0].device
    total = torch.stack([n.to(first, torch.float64, non_blocking=True) for n in norms])
    return total.square().sum(), any(is_sharded(t) for t in tensors)


class Row:
    """The values of one update, by the names of `layout.COLUMNS`.

    `put` takes numbers and tensors of no dimension; `put_digest` a tensor whose digest is wanted.
    `close` returns what `Layout.pack` takes."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sums: dict[tuple[str, Any], tuple[str, str, tuple[int, ...], Total, bool]] = {}
        self.roots: dict[str, Any] = {}         # squares whose roots are wanted
        self.shared: set[str] = set()           # squares that ranks hold parts of

    def put(self, name: str, value: Any) -> None:
        """Keeps a number, or a copy of a tensor of one element."""
        if isinstance(value, torch.Tensor):     # the caller may change its tensor afterwards
            value = whole(value).detach().to(torch.float64, copy=True).reshape(())
        self.values[name] = value

    def put_norm(self, name: str, tensors: Sequence[torch.Tensor]) -> None:
        """The norm over all `tensors`; over those of all ranks where they are shards."""
        total, parts = square(tensors)
        if total is not None:
            self.roots[name] = total
            if parts:
                self.shared.add(name)

    def put_digest(self, column: str, at: Any, name: str, t: torch.Tensor) -> None:
        """The digest of `t` under `name`: entry `at` of `column`. Of no known dtype: none."""
        self.put_digests(column, [(at, name, t)])

    def put_digests(self, column: str, some: Iterable[tuple[Any, str, torch.Tensor]]) -> None:
        """The same of many tensors, which is faster: (at, name, tensor) each."""
        known = [(at, name, t) for at, name, t in some
                 if t.dtype in DTYPES and t.layout is torch.strided]
        for (at, name, t), total in zip(known, keyed_sums([t for _, _, t in known])):
            self.sums[column, at] = (name, DTYPES[t.dtype], tuple(t.shape), total, is_sharded(t))

    def close(self) -> dict[str, Any]:
        """Everything as numbers of the host; adds up shards over the ranks first."""
        places = list(self.sums)
        totals = self._add_up([self.sums[p][3] for p in places], [self.sums[p][4] for p in places],
                              torch.int64)
        names = list(self.roots)
        squares = self._add_up([self.roots[n] for n in names], [n in self.shared for n in names],
                               torch.float64)
        row = dict(zip(self.values, home(list(self.values.values()))))
        row.update({n: None if s is None else s ** 0.5 for n, s in zip(names, squares)})
        columns: dict[str, dict[Any, bytes]] = {}
        for (column, at), total in zip(places, totals):
            name, dtype, shape = self.sums[column, at][:3]
            columns.setdefault(column, {})[at] = digest.close(name, dtype, shape, int(total))
        row["digests"] = columns
        return row

    @staticmethod
    def _add_up(values: list[Any], shared: list[bool], dtype: torch.dtype) -> list[Any]:
        if not any(shared):
            return home(values, dtype)
        import torch.distributed as dist
        device = next(v.device for v, s in zip(values, shared) if isinstance(v, torch.Tensor)) \
            if any(isinstance(v, torch.Tensor) for v in values) else torch.device("cpu")
        parts = [v if isinstance(v, torch.Tensor) else torch.tensor(
            v - (1 << 64) if v >> 63 else v, dtype=dtype) for v in values]
        vector = torch.stack([p.to(device, dtype) for p in parts])
        added = vector.clone()
        dist.all_reduce(added)
        return torch.where(torch.tensor(shared, device=device), added, vector).tolist()


def home(values: Sequence[Any], dtype: torch.dtype = torch.float64) -> list[Any]:
    """The same list with tensors as numbers: one copy, and one wait, per device."""
    result = list(values)
    by_device: dict[torch.device, list[int]] = {}
    for i, v in enumerate(values):
        if isinstance(v, torch.Tensor):
            by_device.setdefault(v.device, []).append(i)
    for places in by_device.values():
        for i, number in zip(places, torch.stack([values[i].to(dtype) for i in places]).tolist()):
            result[i] = number
    return result


def state_tensors(state: Any) -> Iterable[tuple[str, torch.Tensor]]:
    """The tensors of one parameter's optimizer state, by their key's order."""
    return ((k, state[k]) for k in sorted(state, key=str) if isinstance(state[k], torch.Tensor))
