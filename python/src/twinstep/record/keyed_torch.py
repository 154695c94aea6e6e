# SPDX-License-Identifier: Apache-2.0
"""The sums of "keyed 1" of torch tensors, on the device that they are on.

A sum is a Python integer for memory of the host (C) and an i64 tensor of no dimension for a device,
or a place in a vector of it, so nothing waits for a device here. Shards of a DTensor give the sum
of what is local; those of all ranks add up to the tensor's. No random numbers, no gradients, no
change of the tensor."""
from __future__ import annotations

import functools
from operator import attrgetter, eq, le
from typing import Any, Callable, Iterator, NamedTuple, Sequence, Union

import torch

from . import digest, keyed_cuda


class Of(NamedTuple):
    """Number `place` of a vector of a device: a kernel sums many tensors into one."""
    vector: torch.Tensor
    place: int


Total = Union[int, torch.Tensor, Of]
DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.float64: "f64",
          torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2", torch.bool: "bool",
          torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32",
          torch.int64: "i64"}
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int32}
MASK = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFF}
SMALL = 1 << 22     # bytes that are summed before threads would have started
PIECE = 1 << 24     # words at a time on a device without the kernel: 128 MiB of i64
COPIES = 1 << 26    # bytes of copies of tensors that are not contiguous, held at a time
ADDRESSED = ("cpu", "cuda", "meta")     # devices whose tensors tell what memory they have
HOST = digest.load()[1]
_host_many = digest.load_many()


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


GOLDEN, FIRST, SECOND = (_signed(v) for v in (
    0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _mixed(words: torch.Tensor, index: torch.Tensor, mask: int) -> torch.Tensor:
    """The terms' sum. i64 wraps as u64 does; its right shift is arithmetic, so bits are masked."""
    x = (index << 32) + (words.to(torch.int64) & mask) + GOLDEN
    x = (x ^ (x >> 30 & (1 << 34) - 1)) * FIRST
    x = (x ^ (x >> 27 & (1 << 37) - 1)) * SECOND
    return (x ^ (x >> 31 & (1 << 33) - 1)).sum()


def _run(words: torch.Tensor, first: torch.Tensor, mask: int) -> torch.Tensor:
    index = torch.arange(words.numel(), dtype=torch.int64, device=words.device) + first
    return _mixed(words, index, mask)


def is_plain(t: torch.Tensor) -> bool:
    """Whether the elements of `t` are in memory of its own. A subclass with __torch_dispatch__
    (quantized weights, results of asynchronous collectives) may keep them in other tensors, and
    then its own address is 0."""
    return type(t).__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def is_there(t: torch.Tensor) -> bool:
    """Whether a plain strided tensor has the memory of all its elements. FSDP frees that of weights
    between two uses; a kernel, of torch or of ours, would read address 0 all the same. A tensor
    that torch.func wraps (`grad`, `vmap`) has none."""
    if t.numel() == 0 or t.layout is not torch.strided or t.device.type not in ADDRESSED:
        return True
    if torch._C._functorch.is_functorch_wrapped_tensor(t):
        return False
    last = t.storage_offset() + (t.numel() - 1 if t.is_contiguous() else
                                 sum((n - 1) * s for n, s in zip(t.shape, t.stride())))
    storage = t.untyped_storage()
    return bool((last + 1) * t.element_size() <= storage.nbytes()) and storage.data_ptr() != 0


def _run_of(local: torch.Tensor) -> torch.Tensor:
    """The elements in their order in memory, with the signs that they are read with."""
    return local.resolve_neg().contiguous()


def _flat_words(local: torch.Tensor) -> torch.Tensor:
    return _run_of(local).reshape(-1).view(WORDS[local.element_size()])


def device_sum(local: torch.Tensor, first: int = 0) -> torch.Tensor:
    """The sum over a contiguous run of elements that begins at element `first`, on their device."""
    width = local.element_size()
    words = _flat_words(local)
    first *= 2 if width == 8 else 1
    total = torch.zeros((), dtype=torch.int64, device=local.device)
    for at in range(0, words.numel(), PIECE):
        start = torch.full((), first + at, dtype=torch.int64, device=local.device)
        total = total + _run(words[at:at + PIECE], start, MASK[width])
    return total


def _scattered(local: torch.Tensor, shape: tuple[int, ...],
               offset: tuple[int, ...]) -> torch.Tensor:
    """Of a shard that is no contiguous run of its tensor: each element's index is computed."""
    index = torch.zeros((), dtype=torch.int64, device=local.device)
    stride = 1
    for d in reversed(range(local.dim())):
        place = torch.arange(local.shape[d], dtype=torch.int64, device=local.device) + offset[d]
        index = index + (place * stride).view([-1] + [1] * (local.dim() - 1 - d))
        stride *= shape[d]
    index = index.expand(local.shape).reshape(-1)
    if local.element_size() == 8:
        index = torch.stack([2 * index, 2 * index + 1], 1).reshape(-1)
    return _mixed(_flat_words(local), index, MASK[local.element_size()])


@functools.lru_cache(maxsize=64)
def _is_of_shards(kind: type) -> bool:
    return hasattr(kind, "to_local") and hasattr(kind, "placements")


def is_sharded(t: Any) -> bool:
    """Whether this is a DTensor, whose sum needs those of the other ranks of its mesh."""
    kind: Any = type(t)
    return _is_of_shards(kind)


def is_partial(t: Any) -> bool:
    """Whether ranks hold terms of this DTensor's elements, so that none has a value of it."""
    return is_sharded(t) and any(p.is_partial() for p in t.placements)


def counts(t: Any) -> bool:
    """Whether what this rank holds of `t` enters sums over ranks: of replicas the first does."""
    if not is_sharded(t):
        return True
    place = t.device_mesh.get_coordinate() or []
    return all(c == 0 for c, p in zip(place, t.placements) if p.is_replicate())


def _shard(t: Any) -> tuple[torch.Tensor, tuple[int, ...], bool]:
    """What of a DTensor is local, where it begins, and whether it enters sums over ranks."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    if is_partial(t):
        raise ValueError("a DTensor with a partial placement has no value on one rank")
    _, offset = compute_local_shape_and_global_offset(t.shape, t.device_mesh, t.placements)
    return t.to_local(), tuple(offset), counts(t)


def _local(t: torch.Tensor) -> tuple[torch.Tensor, int] | int | torch.Tensor | None:
    """What this rank holds of `t` and the number of its first element, where it is a contiguous run
    of the tensor; else the sum of it, or None as `keyed_sums` has it. Raises as `keyed_sum`."""
    if t.dtype not in DTYPES or t.layout is not torch.strided:
        raise ValueError(f"{t.dtype} in {t.layout}: keyed 1 does not know it")
    first, shape = 0, tuple(t.shape)
    if is_sharded(t):
        t, offset, taken = _shard(t)
        if not taken or t.numel() == 0:
            return 0
        if tuple(t.shape[1:]) != shape[1:]:
            if not is_plain(t):
                return _by_operations(lambda: _scattered(t, shape, offset))
            return _scattered(t, shape, offset) if is_there(t) else None
        first = offset[0] * (t.numel() // t.shape[0]) if shape else 0
    if not is_plain(t):
        return _by_operations(lambda: device_sum(t, first))
    return (t.detach() if t.requires_grad else t, first) if is_there(t) else None


def _by_operations(taken: Callable[[], torch.Tensor]) -> torch.Tensor | None:
    """The sum of a subclass by its own operations; None where it has not all that are needed, as
    quantized weights have not."""
    try:
        return taken()
    except Exception:       # noqa: B902 what a foreign class raises is its own
        return None


@torch.no_grad()
def keyed_sum(t: torch.Tensor) -> int | torch.Tensor:
    """The sum of `t`, or of what this rank holds of it. Raises ValueError for a dtype or a layout
    that "keyed 1" does not know, and where the elements cannot be read."""
    total = keyed_sums([t])[0]
    if total is None:
        raise ValueError(f"{type(t).__name__}: its elements cannot be read")
    return total.vector[total.place] if isinstance(total, Of) else total


@torch.no_grad()
def keyed_sums(tensors: Sequence[torch.Tensor]) -> list[Total | None]:
    """The sums of many tensors; None of one whose memory was freed, or whose class does not do what
    a sum needs. Those of the host are taken by as many threads as torch uses."""
    totals: list[Total | None] = []
    runs: dict[torch.device, list[tuple[int, torch.Tensor, int]]] = {}
    for i, t in enumerate(tensors):
        found = _local(t)
        if isinstance(found, tuple):
            runs.setdefault(found[0].device, []).append((i, *found))
            totals.append(None)
        else:
            totals.append(found)
    for device, some in runs.items():
        for part in _parts(some):
            for (i, _, _), total in zip(part, _sums_there(device, [(t, f) for _, t, f in part])):
                totals[i] = total
            part.clear()        # its copies go before the next ones are made
    return totals


def _parts(some: Sequence[tuple[int, torch.Tensor, int]]
           ) -> Iterator[list[tuple[int, torch.Tensor, int]]]:
    """The same as contiguous tensors, in lists that hold at most COPIES bytes of copies, or one."""
    part: list[tuple[int, torch.Tensor, int]] = []
    held = 0
    for i, t, first in some:
        is_run = t.is_contiguous() and not t.is_neg()
        size = 0 if is_run else t.numel() * t.element_size()
        if size and held and held + size > COPIES:
            yield part
            part, held = [], 0
        held += size
        part.append((i, t if is_run else _run_of(t), first))
    yield part


def _sums_there(device: torch.device, items: Sequence[keyed_cuda.Item]) -> Sequence[Total]:
    if device.type != "cpu":
        kernel = keyed_cuda.kernel_of(device, device_sum)
        if kernel is None:
            return [device_sum(t, f) for t, f in items]
        vector = kernel.sums(items)
        return [Of(vector, i) for i in range(len(items))]
    pieces = [(t.data_ptr(), t.element_size(), first, t.numel()) for t, first in items]
    threads = torch.get_num_threads() if sum(p[1] * p[3] for p in pieces) > SMALL else 1
    return _host_many(pieces, threads)


Kind = tuple[torch.dtype, torch.Size, torch.device]
_KIND = attrgetter("dtype", "shape", "device")
WHOLE = {torch.Tensor, torch.nn.Parameter}  # of whose tensors this process has all


def _guard_of(tensors: Sequence[torch.Tensor]) -> Any:
    """What says in one call whether tensors have the classes, dtypes, devices, shapes, strides and
    signs that they have now."""
    guards: Any = torch._C._dynamo.guards.TensorGuards
    return guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


@functools.lru_cache(maxsize=1)
def _has_guards() -> bool:
    """Whether torch has such a thing and it sees what it has to see. It is what torch.compile asks
    before it uses a graph again, and no part of torch's documented interface."""
    try:
        one, two = (torch.zeros(2, 3, device="cpu") for _ in range(2))
        guard = _guard_of([one, two])
        others = (torch.zeros(3, 2, device="cpu"), torch.zeros(3, 2, device="cpu").t(),
                  two.view(torch.int32), torch._neg_view(two), torch.nn.Parameter(two),
                  torch.zeros(2, 3, device="meta"))
        return guard(one, two) is True and not any(guard(one, t) for t in others)
    except Exception:       # noqa: B902 each tensor is asked without it
        return False


class Look(NamedTuple):
    """What tensors look like without their elements: `types`, `kinds`, and, where all have an
    address and are strided, `rest`: addresses, strides and signs. A tensor that is elsewhere, whose
    memory was freed or that is read otherwise looks otherwise. What follows from that:
    `are_whole` where all are of torch's own classes and have the memory of all their elements,
    `are_alike` where all have one dtype and one device."""
    types: list[type]
    kinds: list[Kind]
    rest: tuple[list[int], list[tuple[int, ...]], list[bool]] | None
    are_whole: bool
    are_alike: bool


def _are_there(tensors: Sequence[torch.Tensor], kinds: Sequence[Kind]) -> bool:
    """Whether `is_there` of each strided one. Mostly each has a memory of its own, of its size."""
    if all(device.type in ADDRESSED for device in {device for _, _, device in kinds}) \
            and all(map(torch.Tensor.is_contiguous, tensors)) \
            and not any(map(torch.Tensor.storage_offset, tensors)):
        memories = list(map(torch.Tensor.untyped_storage, tensors))
        sizes = map(torch.UntypedStorage.nbytes, memories)
        if all(map(torch.UntypedStorage.data_ptr, memories)) \
                and all(map(le, map(attrgetter("nbytes"), tensors), sizes)):
            return True
    return all(map(is_there, tensors))


class Looks:
    """Looks at the same tensors again and again. Mostly nothing has changed, which torch says of
    all of them in two calls for each one's five: of the address, and of the rest. The guard is
    asked where all addresses are as before, because it ends the process where a tensor has no
    strides, which none can have come to at its old address."""

    def __init__(self) -> None:
        self._look = Look([], [], None, True, True)
        self._guard: Any = None

    def now(self, tensors: Sequence[torch.Tensor]) -> Look:
        """How they look now: the same object as before where nothing has changed."""
        kept = self._look
        if self._guard is not None and kept.rest is not None and len(tensors) == len(kept.types) \
                and all(map(eq, map(torch.Tensor.data_ptr, tensors), kept.rest[0])) \
                and self._guard(*tensors):
            return kept
        types, rest = list(map(type, tensors)), None
        if all(is_plain(t) and not is_sharded(t) and t.layout is torch.strided for t in tensors):
            rest = (list(map(torch.Tensor.data_ptr, tensors)),
                    list(map(torch.Tensor.stride, tensors)),
                    list(map(torch.Tensor.is_neg, tensors)))
        kinds, are_own = list(map(_KIND, tensors)), set(types) <= WHOLE
        if types != kept.types or kinds != kept.kinds or rest != kept.rest:
            self._look = kept = Look(
                types, kinds, rest, are_own and rest is not None and _are_there(tensors, kinds),
                len({(dtype, device) for dtype, _, device in kinds}) < 2)
        self._guard = None
        if rest is not None and are_own and types and _has_guards():
            self._guard = _guard_of(tensors)
        return kept


class Host:
    """What `Steady` sums tensors of the host with; `keyed_cuda.Kernel` does those of a device."""
    device = torch.device("cpu")

    @staticmethod
    def prepare(items: Sequence[keyed_cuda.Item]) -> list[digest.Piece]:
        """The memory of tensors, for as long as they stay where they are."""
        return [(t.data_ptr(), t.element_size(), first, t.numel()) for t, first in items]

    @staticmethod
    def take(pieces: list[digest.Piece]) -> torch.Tensor:
        """The sums as they are now."""
        threads = torch.get_num_threads() if sum(p[1] * p[3] for p in pieces) > SMALL else 1
        return torch.tensor(list(map(_signed, _host_many(pieces, threads))), dtype=torch.int64,
                            device="cpu")

    @staticmethod
    def stream() -> int:
        """Memory of the host has none."""
        return 0


class Steady:
    """Sums the same tensors again and again, as weights are in every update. Where all are plain
    and on one CUDA device, or on the host, a table says where they are, and as long as none of them
    has moved it is made once: a sum is then one launch, or one call of C, and Python does little
    for each tensor."""

    def __init__(self) -> None:
        self.prepared = 0           # how often the table was made
        self._kernel: keyed_cuda.Kernel | Host | None = None
        self._looks = Looks()
        self._look: Look | None = None      # what the table was made of, and for which stream
        self._stream = 0
        self._table: Any = None

    def sums(self, tensors: Sequence[torch.Tensor],
             look: Look | None = None) -> torch.Tensor | None:
        """The sums, in one vector of their device; None where `keyed_sums` has to take them.
        `look`: of the tensors as they are now, if it is known."""
        if not tensors:
            return None
        look = self._looks.now(tensors) if look is None else look
        device = look.kinds[0][2]
        if self._kernel is None or self._kernel.device != device:
            self._look = None
            self._kernel = keyed_cuda.kernel_of(device, device_sum) \
                or (Host() if device.type == "cpu" else None)
        if self._kernel is None or look.rest is None:
            return None
        stream = self._kernel.stream()
        if look is not self._look or stream != self._stream:
            if look != self._look or stream != self._stream:
                self._table = self._prepare(self._kernel, tensors, look)
            self._look, self._stream = look, stream
        return None if self._table is None else self._kernel.take(self._table)

    def _prepare(self, kernel: Any, tensors: Sequence[torch.Tensor], look: Look) -> Any:
        self.prepared += 1
        if all(device == kernel.device and dtype in DTYPES
               for dtype, device in {(dtype, device) for dtype, _, device in look.kinds}) \
                and all(map(torch.Tensor.is_contiguous, tensors)) \
                and look.rest is not None and not any(look.rest[2]) \
                and (look.are_whole or all(map(is_there, tensors))):
            return kernel.prepare([(t, 0) for t in tensors])
        return None

    def look(self, tensors: Sequence[torch.Tensor]) -> Look:
        """How the tensors look now, for `sums` of the same ones."""
        return self._looks.now(tensors)
