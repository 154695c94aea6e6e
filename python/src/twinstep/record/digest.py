# SPDX-License-Identifier: Apache-2.0
"""The digest "keyed 1" (docs/FOREIGN.md) of memory on the host, and SHA-256 around its sums.

The sums are those of python/digest, a library that ctypes loads, or of numpy where it is not there;
both are the same numbers. Tensors of devices are summed by `keyed_torch`."""
from __future__ import annotations

import ctypes
import functools
import os
from hashlib import sha256
from pathlib import Path
from struct import pack
from typing import Any, Callable, Iterable, Sequence

NAME = "keyed 1"
LIBRARY = "_digest.so"
Sum = Callable[[int, int, int, int], int]
Piece = tuple[int, int, int, int]           # address, width, first, count
Sums = Callable[[Sequence[Piece], int], list[int]]


def _text(words: str) -> bytes:
    raw = words.encode()
    return pack("<Q", len(raw)) + raw


def head(name: str, dtype: str, shape: Sequence[int]) -> bytes:
    """What SHA-256 is given of a tensor before the sum of its elements (u64, little-endian)."""
    return (_text("twinstep keyed 1") + _text(name) + _text(dtype)
            + pack(f"<{1 + len(shape)}Q", len(shape), *shape))


@functools.lru_cache(maxsize=65536)     # a training has the same tensors in each update
def _begun(name: str, dtype: str, shape: tuple[int, ...]) -> Any:
    return sha256(head(name, dtype, shape))


def close(name: str, dtype: str, shape: Sequence[int], total: int) -> bytes:
    """The digest, 32 bytes, of a tensor whose elements sum to `total` (any integer, mod 2^64)."""
    whole = _begun(name, dtype, tuple(shape)).copy()
    whole.update(pack("<Q", total % (1 << 64)))
    digest: bytes = whole.digest()
    return digest


def list_head(name: str, parts: int) -> bytes:
    """What SHA-256 is given of a list before its digests."""
    return _text("twinstep list 1") + _text(name) + pack("<Q", parts)


def listed(name: str, parts: Iterable[bytes]) -> bytes:
    """The digest of a list of digests, as docs/CERTIFY.md has it."""
    whole = list(parts)
    return sha256(list_head(name, len(whole)) + b"".join(whole)).digest()


def _sum_by_numpy(address: int, width: int, first: int, count: int) -> int:
    import numpy as np
    if count == 0:
        return 0
    raw = (ctypes.c_uint8 * (width * count)).from_address(address)
    words = np.frombuffer(memoryview(raw), {1: "u1", 2: "<u2"}.get(width, "<u4"))
    first *= 2 if width == 8 else 1
    total = 0
    for at in range(0, words.size, 1 << 20):        # pieces, so that little memory is needed
        piece = words[at:at + (1 << 20)].astype(np.uint64)
        index = np.arange(first + at, first + at + piece.size, dtype=np.uint64)
        x = (index << np.uint64(32)) + piece + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        total += int((x ^ x >> np.uint64(31)).sum(dtype=np.uint64))
    return total % (1 << 64)


def find_library() -> Path | None:
    """The library: the one TWINSTEP_DIGEST names, else that of the package; None for neither."""
    named = os.environ.get("TWINSTEP_DIGEST")
    path = Path(named) if named else Path(__file__).parents[1] / LIBRARY
    return path if path.is_file() else None


def load() -> tuple[Sum, str]:
    """`sum(address, width, first, count)` over `count` elements of `width` bytes (1, 2, 4 or 8) in
    the host's memory, which are elements `first` and on of their tensor; and "c" or "numpy"."""
    path = find_library()
    if path is None:
        return _sum_by_numpy, "numpy"
    function = ctypes.CDLL(str(path)).twinstep_keyed_sum
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint64]
    return function, "c"


class _Piece(ctypes.Structure):
    _fields_ = [("elements", ctypes.c_void_p), ("width", ctypes.c_uint64),
                ("first", ctypes.c_uint64), ("count", ctypes.c_uint64)]


def load_many() -> Sums:
    """`sums(pieces, threads)` of many pieces of memory at once, by up to that many threads that end
    with the call; of numpy by one."""
    path = find_library()
    if path is None:
        return lambda pieces, threads: [_sum_by_numpy(*piece) for piece in pieces]
    function = ctypes.CDLL(str(path)).twinstep_keyed_sums
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int]

    def _sums(pieces: Sequence[Piece], threads: int) -> list[int]:
        given = (_Piece * len(pieces))(*(_Piece(*piece) for piece in pieces))
        out = (ctypes.c_uint64 * len(pieces))()
        function(given, len(pieces), out, threads)      # without the GIL
        return list(out)
    return _sums
