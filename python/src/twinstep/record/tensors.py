# SPDX-License-Identifier: Apache-2.0
"""Sums and norms of many tensors without waiting for a device, and one copy that brings them home.

A `Row` collects values that may still be tensors of a device: it stacks them there, begins one copy
per device when the row leaves, and has those added up that ranks hold parts of."""
from __future__ import annotations

from ctypes import string_at
from itertools import islice
from struct import unpack, unpack_from
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence, Union

import torch

from .keyed_torch import (DTYPES, WHOLE, Kind, Look, Of, Steady, Total, counts, is_partial,
                          is_plain, is_sharded, is_there, keyed_sums)
from .together import Parts, Ranks, members

AddUp = Callable[[Mapping[Ranks, Parts]], Mapping[Ranks, Parts]]
Label = tuple[str, str, tuple[int, ...], Ranks]     # name, dtype, shape, who holds parts of it
Vector = tuple[torch.Tensor, Union[int, list[int]]]     # and where it, or its numbers, belong
MASK = (1 << 64) - 1    # of a sum: a device has it as i64


def local(t: torch.Tensor) -> torch.Tensor:
    """What this rank holds of a tensor."""
    return t.to_local() if is_sharded(t) else t     # type: ignore[attr-defined]


def is_of_host(t: torch.Tensor) -> bool:
    """Whether a number can be read out of this tensor without a wait for a device."""
    return t.device.type == "cpu" and is_plain(t)


def _is_norm(t: Any) -> bool:
    """Whether a DTensor is a Euclidean norm of which each rank has that of its part."""
    return all(p.is_replicate() or getattr(p, "norm_type", None) == 2 for p in t.placements)


def _together(norms: Sequence[torch.Tensor], are_alike: bool = False) -> torch.Tensor:
    """Numbers of no dimension as f64, in one vector of the device of the first. `are_alike`: they
    are known to have one dtype and one device."""
    first = norms[0]
    if are_alike or all(n.dtype is first.dtype and n.device == first.device for n in norms):
        return torch.stack(list(norms)).to(torch.float64)   # one op, where each had one
    return torch.stack([n.to(first.device, torch.float64, non_blocking=True) for n in norms])


class Sums(NamedTuple):
    """Sums of tensors that were listed: u64 of the host, in the order of `places`."""
    places: Sequence[Any]
    labels: Sequence[Label]
    raw: bytes

    def keyed(self) -> Iterable[tuple[Any, tuple[Label, int]]]:
        """The place of each tensor, with its label and its sum."""
        return zip(self.places, zip(self.labels, unpack(f"<{len(self.places)}Q", self.raw)))


class Listed:
    """The tensors of a column that are digested again and again, and mostly stay where they are:
    `places` in the column, and names."""

    def __init__(self, column: str, places: Sequence[Any] = (), names: Sequence[str] = ()) -> None:
        self.column, self.places, self.names = column, list(places), list(names)
        self.labels: list[Label] = []
        self._steady = Steady()
        self._kinds: list[Kind] = []        # of `labels`

    def look(self, tensors: Sequence[torch.Tensor]) -> Look:
        """How the tensors look now."""
        return self._steady.look(tensors)

    def sums(self, tensors: Sequence[torch.Tensor],
             look: Look | None = None) -> torch.Tensor | None:
        """The sums of the tensors, as `Steady` has them, whose dtypes and shapes are in `labels`
        then."""
        look = self._steady.look(tensors) if look is None else look
        vector = self._steady.sums(tensors, look)
        if vector is not None and look.kinds != self._kinds:    # one object as long as they stay
            self._kinds = look.kinds
            self.labels = [(name, DTYPES[dtype], tuple(shape), ())
                           for name, (dtype, shape, _) in zip(self.names, look.kinds)]
        return vector


@torch.no_grad()
def squares(tensors: Sequence[torch.Tensor],
            look: Look | None = None) -> dict[Ranks, torch.Tensor] | None:
    """The sum of squares of all elements (f64, on the device of the first tensor), by the ranks
    whose sums make it up; under () what this rank has all of. Of replicas one counts. None where
    it cannot be told from what the ranks hold. One pass over the memory, no copy to the host.
    `look`: how the tensors look now, where that is known."""
    if look is not None and look.are_whole and tensors:
        return {(): _together(torch._foreach_norm(list(tensors)), look.are_alike).square().sum()}
    if set(map(type, tensors)) <= WHOLE:        # which is quickly seen, and mostly so
        if not tensors or not all(map(is_there, tensors)):
            return None if tensors else {}
        return {(): _together(torch._foreach_norm(list(tensors))).square().sum()}
    if any(members(t) is None or is_partial(t) for t in tensors):
        return None
    if not all(is_there(local(t)) for t in tensors if is_plain(local(t))):
        return None         # torch would read memory that was freed
    by_ranks: dict[Ranks, list[int]] = {}
    for i, t in enumerate(tensors):
        by_ranks.setdefault(members(t) or (), [])
        if counts(t):
            by_ranks[members(t) or ()].append(i)
    try:
        norms = torch._foreach_norm([local(t.detach()) for t in tensors])
    except Exception:       # noqa: B902 what a foreign class raises is its own
        if all(is_plain(local(t)) for t in tensors):
            raise
        return None
    total = _together(norms).square()
    if list(by_ranks) == [()]:
        return {(): total.sum()}
    return {ranks: sum((total[i] for i in some), torch.zeros_like(total[0]))
            for ranks, some in by_ranks.items()}


class Row:
    """The values of one update, by the names of `layout.COLUMNS`.

    `put` takes numbers and tensors of no dimension; `put_digest` a tensor whose digest is wanted.
    `leave` begins to bring them home, after which nothing is put; `close` returns what
    `Layout.pack` takes. Nothing but `close` waits for a device, or needs another rank."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sums: dict[tuple[str, Any], tuple[Label, Total]] = {}  # by column and place in it
        # sums in one vector: column, places, labels
        self.lists: list[tuple[str, list[Any], list[Label], torch.Tensor]] = []
        self.roots: dict[str, dict[Ranks, torch.Tensor]] = {}   # squares whose roots are wanted
        self.unknown: set[str] = set()      # norms of which a part cannot be told
        self.left_out: dict[str, list[str]] = {}    # column: names of what cannot be read
        self._coming: Coming | None = None

    def has(self, name: str) -> bool:
        """Whether there is such a value."""
        return name in self.values or name in self.roots

    def put(self, name: str, value: Any) -> bool:
        """Keeps a number, or a copy of a tensor of one element, in place of what was measured
        under this name; False where a DTensor is neither replicated nor a norm."""
        if is_sharded(value):
            if not _is_norm(value) or members(value) is None:
                return False
            if is_partial(value):
                square = value.to_local().detach().to(torch.float64).reshape(()).square()
                self.roots[name] = {members(value) or (): square * float(counts(value))}
                self.values.pop(name, None)
                return True
            value = value.to_local()
        if isinstance(value, torch.Tensor) and is_of_host(value) and value.is_floating_point():
            value = value.item()                # which waits for nothing, as AdamW's count of steps
        elif isinstance(value, torch.Tensor):   # the caller may change its tensor afterwards
            value = value.detach()
            value = value.clone() if value.dtype is torch.float64 else value.double()
            value = value.reshape(()) if value.dim() else value
        self.values[name] = value
        self.roots.pop(name, None)
        return True

    def put_norm(self, name: str, tensors: Sequence[torch.Tensor],
                 look: Look | None = None) -> None:
        """The norm over all `tensors` that it is given in an update; over those of all ranks where
        they are shards. `look`: how they look now, where that is known."""
        found = squares(tensors, look)
        if found is None:
            self.unknown.add(name)
            self.roots.pop(name, None)
        if not found or name in self.unknown:
            return
        into = self.roots.setdefault(name, {})
        for ranks, square in found.items():
            into[ranks] = into[ranks] + square.to(into[ranks].device) if ranks in into else square

    def drop_norm(self, name: str) -> None:
        """Takes back what was measured under this name, if anything was."""
        self.roots.pop(name, None)
        self.unknown.discard(name)

    def put_digest(self, column: str, at: Any, name: str, t: torch.Tensor) -> None:
        """The digest of `t` under `name`: entry `at` of `column`. Of no known dtype: none."""
        self.put_digests(column, [(at, name, t)])

    def put_digests(self, column: str, some: Iterable[tuple[Any, str, torch.Tensor]]) -> None:
        """The same of many tensors, which is faster: (at, name, tensor) each."""
        known = [(at, name, t, ranks) for at, name, t in some for ranks in (members(t),)
                 if ranks is not None and t.dtype in DTYPES and t.layout is torch.strided
                 and not is_partial(t)]
        for (at, name, t, ranks), total in zip(known, keyed_sums([t for _, _, t, _ in known])):
            if total is None:
                self.left_out.setdefault(column, []).append(name)
                continue
            self.sums[column, at] = (name, DTYPES[t.dtype], tuple(t.shape), ranks), total

    def put_listed(self, listed: Listed, tensors: Sequence[torch.Tensor],
                   look: Look | None = None) -> None:
        """The same of tensors that are listed, which is faster again where they stayed where they
        were: little is done for each of them. `look` is theirs now, as `Looks` has it."""
        vector = listed.sums(tensors, look)
        if vector is None:
            self.put_digests(listed.column, (
                (at, name, t.detach())
                for at, name, t in zip(listed.places, listed.names, tensors)))
        else:
            self.lists.append((listed.column, listed.places, listed.labels, vector))

    def drop_digest(self, column: str, at: Any) -> None:
        """Takes back entry `at` of `column`, if there is one."""
        self.sums.pop((column, at), None)

    def _roots(self) -> list[tuple[str, Ranks]]:
        return [(name, ranks) for name, found in self.roots.items() for ranks in found]

    def leave(self) -> bool:
        """Begins to bring everything home; whether it is there, so that `close` will not wait."""
        self._coming = Coming([*(total for _, total in self.sums.values()),
                               *(self.roots[name][ranks] for name, ranks in self._roots()),
                               *self.values.values()], [vector for *_, vector in self.lists])
        return self._coming.is_here

    def close(self, add_up: AddUp | None = None) -> dict[str, Any]:
        """Everything as numbers of the host. Of the tensors whose digests are wanted there are
        label and sum under "totals", by column and place in it, and those that were listed
        under "lists", by column. `add_up` adds up what ranks hold parts of; what it does not return
        is not measured."""
        if self._coming is None:
            self.leave()
        assert self._coming is not None
        numbers = iter(self._coming.numbers())
        roots = self._roots()
        totals = list(islice(numbers, len(self.sums)))
        parted = list(islice(numbers, len(roots)))
        row = dict(zip(self.values, numbers))
        parts: dict[Ranks, Parts] = {}
        whole: dict[Any, Any] = {}
        for (place, (label, _)), total in zip(self.sums.items(), totals):
            if total is None:
                self.left_out.setdefault(place[0], []).append(label[0])
                continue
            total = int(total) & MASK
            ranks = label[3]
            if ranks:
                parts.setdefault(ranks, Parts()).names.append(place)
                parts[ranks].totals.append(total)
            else:
                whole[place] = total
        for (name, ranks), square in zip(roots, parted):
            if square is None:
                continue
            if ranks:
                parts.setdefault(ranks, Parts()).roots.append(name)
                parts[ranks].squares.append(square)
            else:
                whole[name, ranks] = square
        for ranks, sums in (add_up(parts) if add_up is not None else {}).items():
            whole.update(zip(sums.names, sums.totals))
            whole.update(((name, ranks), s) for name, s in zip(sums.roots, sums.squares))
        for name, found in self.roots.items():
            if all((name, ranks) in whole for ranks in found):
                row[name] = sum(whole[name, ranks] for ranks in found) ** 0.5
        columns: dict[str, dict[Any, tuple[Label, int]]] = {}
        for (column, at), (label, _) in self.sums.items():
            if (column, at) in whole:
                columns.setdefault(column, {})[at] = label, whole[column, at]
        row["totals"] = columns
        lists: dict[str, list[Sums]] = {}
        for (column, places, labels, _), raw in zip(self.lists, self._coming.vectors):
            lists.setdefault(column, []).append(Sums(places, labels, raw))
        row["lists"] = lists
        return row


def depart(whole: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """Begins to bring whole numbers of a device to the host: where they will be, and the event
    after which they are there; None where they are, because nothing had to be waited for or it
    was."""
    if whole.device.type != "cuda" or not is_plain(whole):
        return whole.cpu(), None
    there = torch.empty(whole.shape, dtype=whole.dtype, device="cpu", pin_memory=True)
    with torch.cuda.device(whole.device):
        there.copy_(whole, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
    return there, event


class Coming:
    """Numbers that are on their way home: one copy per device, begun when this is made. It brings
    what the tensors hold now, whatever becomes of them; `numbers` waits for what is not there.

    A tensor of floats comes as the bits of f64 beside those of integers. Tensors of a subclass with
    operations of its own are brought in the same way where their copy is a plain tensor, else one
    by one, at once; None of one that cannot be read. An `Of` is a number of a vector of i64, and
    vectors come whole, behind the tensors of no dimension: those of `Of`, and `vectors`, whose
    bytes are in the attribute of that name, in the same order, when `numbers` has returned."""

    def __init__(self, values: Sequence[Any], vectors: Sequence[torch.Tensor] = ()) -> None:
        self._values = list(values)
        self.vectors = [b""] * len(vectors)
        # where each copy's numbers of no dimension belong, which of them are reals, its vectors and
        # where theirs belong, the copy, its event
        self._copies: list[tuple[list[int], list[bool], list[Vector], torch.Tensor, Any]] = []
        by_kind: dict[tuple[torch.device, Any], list[int]] = {}
        whole: list[Vector] = [(vector, i) for i, vector in enumerate(vectors)]
        named: dict[int, list[int]] = {}        # of `Of`: by the vector's id, where numbers belong
        for i, v in enumerate(values):
            if isinstance(v, Of):
                vector, place = v
                if id(vector) not in named:
                    named[id(vector)] = [-1] * len(vector)
                    whole.append((vector, named[id(vector)]))
                named[id(vector)][place] = i
            elif isinstance(v, torch.Tensor):
                by_kind.setdefault((v.device, None if is_plain(v) else type(v)), []).append(i)
        for vector, _ in whole:
            by_kind.setdefault((vector.device, None), [])
        for (device, kind), places in by_kind.items():
            some = [values[i] for i in places]
            here = [w for w in whole if w[0].device == device] if kind is None else []
            begun = _begun(some, [vector for vector, _ in here]) if kind is None \
                else _begun_of_subclass(some)
            if begun is not None:
                self._copies.append((places, [t.is_floating_point() for t in some], here, *begun))
            for i, t in zip(places, some):
                self._values[i] = _item(t) if begun is None else None

    @property
    def is_here(self) -> bool:
        """Whether `numbers` waits for nothing."""
        return all(event is None for *_, event in self._copies)

    def numbers(self) -> list[Any]:
        """The list with tensors as numbers."""
        for places, are_real, vectors, there, event in self._copies:
            if event is not None:
                event.synchronize()
            raw, at = string_at(there.data_ptr(), 8 * len(there)), 8 * len(places)
            numbers = unpack_from("<" + "".join("qd"[is_real] for is_real in are_real), raw)
            for i, number in zip(places, numbers):
                self._values[i] = number
            for vector, into in vectors:
                some = raw[at:at + 8 * len(vector)]
                at += len(some)
                if isinstance(into, int):
                    self.vectors[into] = some
                    continue
                for i, number in zip(into, unpack(f"<{len(into)}q", some)):
                    if i >= 0:          # else one that nobody asked for any more
                        self._values[i] = number
        self._copies.clear()
        return self._values


def home(values: Sequence[Any]) -> list[Any]:
    """The same list with tensors as numbers: one copy, and one wait, per device."""
    return Coming(values).numbers()


def _begun(some: Sequence[torch.Tensor],
           vectors: Sequence[torch.Tensor] = ()) -> tuple[torch.Tensor, Any] | None:
    """The copy of `some`, of no dimension, and behind them that of `vectors` of i64."""
    parts = [(t if t.dtype is torch.float64 else t.to(torch.float64)).view(torch.int64)
             if t.is_floating_point() else t.to(torch.int64) for t in some]
    parts = [t.unsqueeze(0) for t in parts] + list(vectors)
    there, event = depart(parts[0] if len(parts) == 1 else torch.cat(parts))
    return (there, event) if is_plain(there) else None


def _begun_of_subclass(some: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Any] | None:
    try:
        return _begun(some)
    except Exception:       # noqa: B902 what a foreign class raises is its own
        return None


def _item(t: torch.Tensor) -> Any:
    try:
        return t.item()
    except Exception:       # noqa: B902 as above
        return None


def _state_tensors(state: Any) -> Iterable[tuple[str, torch.Tensor]]:
    """The tensors of one parameter's optimizer state, by their key's order."""
    return ((k, state[k]) for k in sorted(state, key=str) if isinstance(state[k], torch.Tensor))


def state_lists(tensors: Sequence[tuple[str, torch.Tensor]], states: Mapping[Any, Any]
                ) -> Iterable[tuple[list[Any], list[torch.Tensor]]]:
    """The tensors that an optimizer keeps of the weights `tensors`, by lists for each device: their
    places, which are (number of the weight, key), and themselves."""
    by_device: dict[torch.device, tuple[list[Any], list[torch.Tensor]]] = {}
    for i, (_, p) in enumerate(tensors):
        for key, value in _state_tensors(states.get(p, {})):
            places, found = by_device.setdefault(value.device, ([], []))
            places.append((i, key))
            found.append(value)
    return by_device.values()
