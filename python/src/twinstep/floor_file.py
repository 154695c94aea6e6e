# SPDX-License-Identifier: Apache-2.0
"""Writes floor files (docs/NOISE.md) with h5py: a trace without runs, which `twinstep compare` and
`assert_same_training` judge against. The layout and the digest over all of it are those of
determinism/floor_file.c; tests/python/test_floor_file.py lets the program read what is written."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from struct import pack
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from twinstep._hdf5 import open_file

COLUMNS = {"loss": ("nat", "|a - b| of the loss of an A/A pair"),
           "grad_norm": ("1", "|a - b| / |a| of the gradient norm of an A/A pair"),
           "distance": ("1", "|a - b| of the weights of an A/A pair")}
TEXTS = ("scenario", "configuration", "strata", "twin_tensors")     # in the order of the digest
BLOCK = 65536
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of strata: eight words, nine figures, and |a-b|/|a-a0| by update."""
    words: tuple[str, ...]
    figures: tuple[float, ...]
    share: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a floor file holds. `columns`: (pairs, updates) of each of COLUMNS; `distance`, or it
    and `grad_norm`, may be left out."""
    scenario: str
    arm: str
    writer: str
    configuration: str
    protocol: str
    exact: bool
    steps: int
    columns: Mapping[str, npt.NDArray[np.float64]]
    strata: Sequence[Row] = ()
    parts: str = ""


def _text(words: bytes) -> bytes:
    return pack("<Q", len(words)) + words


def _turn(v: Words, n: int) -> Words:
    return v << np.uint32(n) | v >> np.uint32(32 - n)


def _stir(v: Words) -> Words:
    v = (v ^ v >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    v = (v ^ v >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return v ^ v >> np.uint32(16)


def digest_bytes(name: str, raw: bytes) -> bytes:
    """The digest of docs/CERTIFY.md: a hash of 32 lanes for each 64 KiB, and SHA-256 over them."""
    whole = sha256(_text(b"twinstep bytes 1") + _text(name.encode()) + pack("<Q", len(raw)))
    for at in range(0, len(raw), BLOCK):
        block = raw[at:at + BLOCK]
        words = np.frombuffer(block + bytes(-len(block) % 4), "<u4").astype(np.uint32)
        lane = np.arange(1, 33, dtype=np.uint32)
        a, b = lane * np.uint32(0x9E3779B9), lane * np.uint32(0xC2B2AE3D)
        for i in range(0, len(words), 32):
            w = words[i:i + 32]
            n = len(w)
            a[:n] = _turn((a[:n] ^ w) * np.uint32(0x9E3779B1), 13)
            b[:n] = _turn((b[:n] + w) * np.uint32(0x85EBCA77), 18)
        a = _stir(a ^ np.uint32(len(block)))
        lanes = np.stack([a, _stir(b + a)], 1).astype("<u4")
        whole.update(pack("<Q", len(block)) + lanes.tobytes())
    return whole.digest()


def _plain(word: str) -> str:
    """A word without the tabs and line ends that would make other words of it."""
    return "".join(c if c.isprintable() else " " for c in word)


def _digest(texts: Mapping[str, bytes], arrays: Sequence[npt.NDArray[np.float64] | None],
            parts: bytes) -> str:
    digests = [digest_bytes(f"noise/{name}", texts[name]) for name in TEXTS]
    digests += [digest_bytes("array", b"" if a is None else a.astype("<f8").tobytes())
                for a in arrays]
    if parts:
        digests.append(digest_bytes("noise/parts", parts))
    return sha256(_text(b"twinstep list 1") + _text(b"floor") + pack("<Q", len(digests))
                  + b"".join(digests)).hexdigest()


def _check(contents: Contents) -> int:
    """The number of pairs. Raises ValueError for what no floor can hold."""
    shapes = {name: np.shape(values) for name, values in contents.columns.items()}
    pairs = shapes.get("loss", (0,))[0]
    if contents.steps < 1 or list(shapes) not in (list(COLUMNS)[:n] for n in (1, 2, 3)) \
            or any(s != (pairs, contents.steps) for s in shapes.values()):
        raise ValueError(f"columns: expected (pairs, {contents.steps}) for loss, grad_norm and "
                         f"distance, got {shapes}")
    for name, values in contents.columns.items():
        if not (np.asarray(values) >= 0).all():     # false for NaN, too
            raise ValueError(f"{name}: expected distances >= 0, got {np.min(values)}")
    for row in contents.strata:
        if (len(row.words), len(row.figures), len(row.share)) != (8, 9, contents.steps):
            raise ValueError(f"{row.words}: expected 8 words, 9 figures, {contents.steps} shares")
    return pairs


def write(path: str | os.PathLike[str], contents: Contents, overwrite: bool = False) -> None:
    """Writes the file, whole or not at all. Raises FileExistsError where it is there already,
    unless `overwrite`, and ValueError for what no floor can hold."""
    pairs = _check(contents)
    place = os.fspath(path)
    part = f"{place}.part{os.getpid()}"
    if os.path.exists(place) and not overwrite:
        raise FileExistsError(f"{place} exists: give another name, or overwrite=True")
    rows = contents.strata
    texts = {"scenario": b"", "configuration": contents.configuration.encode(),
             "strata": "".join("\t".join(map(_plain, r.words)) + "\n" for r in rows).encode(),
             "twin_tensors": b""}
    arrays = {f"pairs_{name}": np.asarray(contents.columns[name], "<f8")
              if pairs and name in contents.columns else None for name in COLUMNS}
    arrays["figures"] = np.array([r.figures for r in rows], "<f8") if rows else None
    arrays["share"] = np.array([r.share for r in rows], "<f8") if rows else None
    parts = contents.parts.encode()
    sealed = _digest(texts, [*arrays.values(), None, None], parts)
    attributes = {
        "version": "2" if parts else "1", "scenario_name": contents.scenario, "arm": contents.arm,
        "determines": sha256(texts["configuration"]).hexdigest(), "protocol": contents.protocol,
        "twin_weight": "", "steps": str(contents.steps), "pairs": str(pairs),
        "strata_count": str(len(rows)), "writer": contents.writer,
        "exact": str(int(contents.exact))}
    if len(contents.columns) < len(COLUMNS):
        attributes["without"] = " ".join(n for n in COLUMNS if n not in contents.columns)
    try:
        with open_file(part, "w", libver=("v110", "v110"), track_order=True) as f:
            _fill(f, attributes, {**texts, "sha256": sealed.encode(),
                                  **({"parts": parts} if parts else {})}, arrays)
        if overwrite:
            os.replace(part, place)
        else:
            os.link(part, place)            # unlike a rename, a link overwrites nothing
    finally:
        if os.path.exists(part):
            os.unlink(part)


def _say(of: Any, name: str, value: str) -> None:
    """An attribute of fixed length, which is what the program reads."""
    raw = _plain(value).encode()
    of.attrs[name] = np.array(raw, h5py.string_dtype("utf-8", max(len(raw), 1)))


def _fill(f: Any, attributes: Mapping[str, str], texts: Mapping[str, bytes],
          arrays: Mapping[str, npt.NDArray[np.float64] | None]) -> None:
    f.attrs["twinstep_trace"] = np.int64(1)
    f["complete"] = np.int64(1)
    noise = f.create_group("noise", track_order=True)
    for name, value in attributes.items():
        _say(noise, name, value)
    for name, array in arrays.items():
        if array is not None:
            noise[name] = array
            units, words = COLUMNS.get(name.removeprefix("pairs_"), ("1", "docs/NOISE.md"))
            _say(noise[name], "units", units)
            _say(noise[name], "long_name", words)
    for name, raw in texts.items():
        noise.create_dataset(name, data=np.frombuffer(raw, "u1"), maxshape=(None,),
                             chunks=(max(len(raw), 1),))    # one that can grow is a text
