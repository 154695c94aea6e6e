# SPDX-License-Identifier: Apache-2.0
"""The seals of a trace (docs/TRACE.md): digests over what no row's `check` covers. They find
damage, not forgery. docs/FOREIGN.md has the same, seal by seal; here one walk makes all three.

`record/writer.py` runs this file by its name, so it imports nothing of twinstep."""
from collections.abc import Iterator
from hashlib import sha256
from struct import pack
from typing import Any

import h5py
import numpy as np

OPENING, COMPLETE, UNFINISHED = b"opening", b"complete", b"unfinished"
_PIECE = 2**20


class Broken(ValueError):
    """The file does not agree with its seals."""


def _field(part: bytes) -> bytes:
    return pack("<Q", len(part)) + part


def _item(early: bool, *parts: bytes) -> tuple[bool, bytes]:
    return early, sha256(b"".join(map(_field, parts))).digest()


def _dataset(d: h5py.Dataset, path: bytes, rows: bool) -> Iterator[tuple[bool, bytes]]:
    text = h5py.check_string_dtype(d.dtype) is not None
    number = d.dtype.kind in "iuf" and h5py.check_enum_dtype(d.dtype) is None
    kind = b"text" if text else d.dtype.str.encode() if number else b"other"
    if d.ndim > 3:
        kind = b"other"
    yield _item(True, b"dataset", path, kind)
    if kind == b"other":
        return
    grows = d.ndim > 0 and d.maxshape[0] is None
    early = not grows and path.startswith((b"runs/", b"pairs/", b"snapshots/"))
    yield _item(early, b"shape", *[pack("<Q", n) for n in d.shape])
    if path.startswith(b"snapshots/") or (rows and grows):
        return                                  # a digest of their own
    if text:
        yield _item(early, b"texts", *[bytes(t) for t in np.ravel(d[()])])
    elif d.size:                                # pieces of at most 1 MiB, or of one row
        many = max(1, _PIECE // max(1, d.dtype.itemsize * d.size // (d.shape[0] if d.ndim else 1)))
        for k in range(0, d.shape[0] if d.ndim else 1, many):
            yield _item(early, b"bytes", (d[k:k + many] if d.ndim else d[()]).tobytes())


def _group(g: h5py.Group, path: bytes, rows: bool) -> Iterator[tuple[bool, bytes]]:
    yield _item(True, b"group", path)
    for name in sorted(g.attrs, key=str.encode):
        kind, value = g.attrs.get_id(name).dtype.kind, g.attrs[name]
        if np.ndim(value) == 0 and kind in "iufSO":
            raw = (value.encode() if isinstance(value, str) else
                   bytes(value) if kind == "S" else value.tobytes())
            yield _item(True, b"attribute", path, name.encode(), raw)
    rows = rows or (path.endswith(b"/steps") and "check" in g)
    for name in sorted(g, key=str.encode):
        below = (path + b"/" if path else b"") + name.encode()
        if below in (b"complete", b"seal"):
            continue
        link = g.get(name, getlink=True)
        if isinstance(link, h5py.HardLink):
            item = g[name]
            yield from (_group if isinstance(item, h5py.Group) else _dataset)(item, below, rows)
        elif isinstance(link, h5py.SoftLink):
            yield _item(True, b"link", below, link.path.encode())
        else:
            raise Broken(f"{below.decode()} is a link to another file")


def seals(file: h5py.File) -> dict[bytes, bytes]:
    """The three seals of what is in the file, by their words."""
    words = (OPENING, COMPLETE, UNFINISHED)
    chains = {word: sha256(_field(b"twinstep stream 1") + _field(b"seal " + word)).digest()
              for word in words}
    counts = dict.fromkeys(words, 0)
    for early, digest in _group(file, b"", False):
        for word in words if early else words[1:]:
            chains[word] = sha256(chains[word] + digest).digest()
            counts[word] += 1
    ends = {word: _field(b"twinstep stream end 1") + pack("<Q", counts[word]) + chains[word]
            for word in words}
    return {word: sha256(end).digest() for word, end in ends.items()}


def check(file: h5py.File) -> str:
    """Returns what the seals vouch for: none, opening, unfinished or whole, in the words of
    `certify --json`. Raises Broken where the file does not agree with them."""
    complete = "complete" in file and int(file["complete"][()]) == 1    # before what it vouches for
    stored = bytes(file["seal"][:]) if "seal" in file else bytes(64)
    opening, closing = stored[:32], stored[32:]
    if not any(opening) and int(file.attrs["twinstep_trace"]) == 3:
        raise Broken("its seals are gone")
    if not any(stored):
        return "none"
    made = seals(file)
    if any(opening) and opening != made[OPENING]:
        raise Broken("names, texts, axes or configurations are not those that were sealed")
    live = bool(file.swmr_mode)
    if (live or not any(closing)) and not complete:
        return "opening"
    if closing == made[COMPLETE]:
        return "whole"
    if complete or closing != made[UNFINISHED]:
        raise Broken("results are not those that were sealed")
    return "unfinished"


def write(file: h5py.File, word: bytes) -> None:
    """Writes the opening seal, or one of the closing ones, into the dataset `seal` of the file."""
    made: Any = np.frombuffer(seals(file)[word], "u1")
    file["seal"][0 if word == OPENING else 32:32 if word == OPENING else 64] = made
