# SPDX-License-Identifier: Apache-2.0
"""`twinstep merge`: the recordings of the ranks of one training as one recording.

What all ranks must have equal (rates, skips, weights) is held against each other update by update:
replicas that have drifted apart are told, with the first update and tensor, and not joined. Losses
are averaged, tokens added up, and digests of batches and generators listed by rank."""
from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from twinstep.record import digest, writer
from twinstep.trace import NotATrace, _open

WRITER = "twinstep.Recorder"
MEAN, SUM, LISTED = ("loss",), ("tokens",), ("digest_batch", "digest_rng")
# Without these equal, the ranks did not train one model; of others rank 0's values are kept.
SHARED = ("lr_applied", "wd_applied", "skipped", "optimizer_t", "tensors/digest_parameter")
INITIAL = "tensors/initial"     # digests of the weights before the first update
TEXTS = ("phases/phase", "tensors/tensor", "tensors/dtype", "tensors/shape", INITIAL)
NUMBERS = ("group", "byte", "tensors/group")
AXES = {"group": "group", "byte": "byte", "phase": "phases/phase", "tensor": "tensors/tensor"}
Array = npt.NDArray[Any]


class RanksDiffer(ValueError):
    """The ranks have unlike weights, rates or skips; the text says where first."""


@dataclass(frozen=True, slots=True)
class Merged:
    """One recording of `ranks` ranks. `notes`: columns of which rank 0's values were kept."""
    path: pathlib.Path
    ranks: int
    updates: int
    complete: bool
    notes: tuple[str, ...]


@dataclass
class _Rank:
    """A rank's recording, all of it."""
    path: pathlib.Path
    name: str
    rank: int
    world: int
    complete: bool
    attributes: dict[str, Any]
    texts: dict[str, list[str]]
    numbers: dict[str, Array]
    columns: dict[str, Array]
    described: dict[str, tuple[list[str], str, str]]


def _word(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _read(path: pathlib.Path) -> _Rank:
    """A recording, checked as far as joining relies on it. Raises NotATrace, and OSError."""
    try:
        of = _read_unchecked(path)
    except KeyError as error:
        raise NotATrace(f"{path}: no whole recording: {error.args[0]}") from None
    rows = len(of.columns["step"])
    for name, column in of.columns.items():
        if len(column) < rows:
            raise NotATrace(f"{path}: {name} has {len(column)} rows, and step {rows}")
    return of


def _read_unchecked(path: pathlib.Path) -> _Rank:
    with _open(path) as f:
        kind, by = (_word(f.attrs.get(name, "")) for name in ("kind", "writer"))
        if (kind, by) != ("foreign", WRITER):
            raise NotATrace(f"{path}: expected a recording of {WRITER}, got another file")
        if len(f["runs"]) != 1:
            raise NotATrace(f"{path}: expected one run, got {len(f['runs'])}")
        (name, run), = f["runs"].items()
        steps = run["steps"]
        rows = int(steps["step"].shape[0])
        columns, described = {}, {}

        def take(place: str, of: Any) -> None:
            """Keeps one column with its axes."""
            if isinstance(of, h5py.Dataset) and place not in TEXTS + NUMBERS:
                columns[place] = of[:rows]
                axes = [axis[0].name.rsplit("/", 1)[-1] for axis in list(of.dims)[1:]]
                described[place] = (axes, _word(of.attrs["units"]), _word(of.attrs["long_name"]))
        steps.visititems(take)
        attributes = {**f.attrs, **{f"run.{k}": v for k, v in run.attrs.items()}}
        return _Rank(path, name, int(run.attrs["rank"]), int(run.attrs["world"]),
                     bool(f["complete"][()]),
                     {k: v.item() if isinstance(v, np.generic) else _word(v)
                      for k, v in attributes.items()},
                     {n: [_word(t) for t in steps[n][:]] for n in TEXTS if n in steps},
                     {n: steps[n][:] for n in NUMBERS if n in steps}, columns, described)


def _check(ranks: Sequence[_Rank]) -> None:
    first = ranks[0]
    for of in ranks:
        if of.world != len(ranks):
            raise ValueError(f"{of.path}: one of {of.world} ranks, and {len(ranks)} files were "
                             "given")
        if of.name != first.name:
            raise ValueError(f"{of.path}: run {of.name}; {first.path} has run {first.name}")
        if {**of.texts, INITIAL: []} != {**first.texts, INITIAL: []} or not np.array_equal(
                of.numbers.get("tensors/group", []), first.numbers.get("tensors/group", [])):
            raise ValueError(f"{of.path}: other tensors or phases than {first.path}")
        if list(of.columns) != list(first.columns):
            odd = sorted(set(of.columns) ^ set(first.columns))
            raise ValueError(f"{of.path}: other columns than {first.path}: {', '.join(odd)}")
    found = [of.rank for of in ranks]
    if found != list(range(len(ranks))):
        twice = next((r for r in found if found.count(r) > 1), None)
        raise ValueError(f"expected ranks 0 to {len(ranks) - 1}, each once; " + (
            f"rank {twice} came twice" if twice is not None else f"got {found}"))


def _part(name: str, a: Array, b: Array, ranks: Sequence[_Rank], other: int) -> str:
    """Where two ranks' columns part first."""
    row = next(k for k in range(len(a)) if a[k].tobytes() != b[k].tobytes())
    update = int(ranks[0].columns["step"][row])
    if name.startswith("tensors/"):
        place = next(i for i in range(len(a[row])) if a[row][i].tobytes() != b[row][i].tobytes())
        tensor = ranks[0].texts["tensors/tensor"][place]
        return f"update {update}, tensor {tensor}: {name} differs between rank 0 and rank {other}"
    return f"update {update}: {name} differs between rank 0 ({a[row]}) and rank {other} ({b[row]})"


def _differs(a: Array, b: Array) -> bool:
    return a.tobytes() != b.tobytes()


def _join(ranks: Sequence[_Rank], rows: int) -> tuple[dict[str, Array], list[str]]:
    columns: dict[str, Array] = {}
    notes: list[str] = []
    parted: list[str] = []
    for name in ranks[0].columns:
        of = [r.columns[name][:rows] for r in ranks]
        columns[name] = of[0]
        if name in MEAN:
            columns[name] = np.mean(of, axis=0)
        elif name in SUM:
            unknown = np.any([a == -1 for a in of], axis=0)
            columns[name] = np.where(unknown, -1, np.sum(of, axis=0))
        elif name in LISTED:
            columns[name] = np.array([_listed(name, [a[k].tobytes() for a in of])
                                      for k in range(rows)], "|u1").reshape(rows, 32)
        else:
            other = next((i for i, a in enumerate(of) if _differs(of[0], a)), None)
            if other is not None:
                words = _part(name, of[0], of[other], ranks, other)
                (parted if name in SHARED else notes).append(words)
    if parted:
        raise RanksDiffer("the ranks are no replicas of one training: " + "; ".join(
            sorted(parted, key=lambda w: int(w.split()[1].rstrip(",:")))))
    return columns, [f"{note}; rank 0's values are kept" for note in notes]


def _check_initial(ranks: Sequence[_Rank]) -> list[str]:
    """Takes the digests of the weights before the first update out of rank 0's where a rank has
    none or other ones, and says so. That is no training that parted: DDP sends rank 0's weights
    to all, which can come behind the start of a recording."""
    first, *others = (of.texts.get(INITIAL) for of in ranks)
    for rank, other in enumerate(others, 1):
        if other == first:
            continue
        ranks[0].texts.pop(INITIAL, None)
        name = next((n for n, a, b in zip(ranks[0].texts["tensors/tensor"], first or (),
                                          other or ()) if a != b), "")
        return ["weights before the first update are left out: " + (
            f"tensor {name} differs between rank 0 and rank {rank} there" if name else
            f"of ranks 0 and {rank} one alone recorded them")]
    return []


def _listed(name: str, parts: Sequence[bytes]) -> Array:
    """One digest of all ranks'; not measured where one was not."""
    missing = any(p == bytes(32) for p in parts)
    return np.frombuffer(bytes(32) if missing else digest.listed(f"{name} of ranks", parts), "u1")


def merge(*recordings: str | os.PathLike[str], output: str | os.PathLike[str],
          overwrite: bool = False) -> Merged:
    """Joins the recordings of all ranks of one training (twinstep merge).

    Raises RanksDiffer where rates, skips or weights differ, ValueError for files that are not the
    ranks of one training, NotATrace, FileExistsError; then nothing is written."""
    place = pathlib.Path(output)
    if len(recordings) < 2:
        raise ValueError(f"expected the recordings of at least two ranks, got {len(recordings)}")
    if place.exists() and not overwrite:
        raise FileExistsError(f"{place} exists: give another name, or overwrite")
    ranks = sorted((_read(pathlib.Path(r)) for r in recordings), key=lambda r: r.rank)
    _check(ranks)
    first = ranks[0]
    rows = min(len(r.columns["step"]) for r in ranks)
    for of in ranks:
        if _differs(of.columns["step"][:rows], first.columns["step"][:rows]):
            raise ValueError(f"{of.path}: other updates than {first.path}")
    columns, notes = _join(ranks, rows)
    notes += _check_initial(ranks)
    longest = max(ranks, key=lambda r: len(r.columns["step"]))
    if len(longest.columns["step"]) > rows:
        notes.append(f"rank {longest.rank} has {len(longest.columns['step'])} updates; {rows} are "
                     "of all ranks")
    lines = [set(r.attributes.get("run.configuration", "").splitlines()) for r in ranks]
    odd = sorted(set().union(*lines) - lines[0].intersection(*lines))
    notes += [f"configurations differ: {line}" for line in odd[:5]]
    complete = all(r.complete for r in ranks) and len(longest.columns["step"]) == rows
    _write(place, first, columns, len(ranks), complete, overwrite)
    return Merged(place, len(ranks), rows, complete, tuple(notes))


def _write(place: pathlib.Path, of: _Rank, columns: dict[str, Array], world: int, complete: bool,
           overwrite: bool) -> None:
    names = [*(n for n in columns if n != "step"), "step"]
    run = {k.removeprefix("run."): v for k, v in of.attributes.items() if k.startswith("run.")}
    root = {k: v for k, v in of.attributes.items() if not k.startswith("run.")}
    temporary = str(place) + f".merge{os.getpid()}"
    header = {
        "path": temporary, "run": of.name, "attributes": root,
        "run_attributes": {**run, "rank": 0, "world": world}, "texts": of.texts,
        "numbers": {n: [a.dtype.str, a.tolist()] for n, a in of.numbers.items()},
        "axes": {k: v for k, v in AXES.items() if v in of.texts or v in of.numbers},
        "columns": [{"name": n, "type": columns[n].dtype.str, "shape": columns[n].shape[1:],
                     "axes": of.described[n][0], "units": of.described[n][1],
                     "long_name": of.described[n][2]} for n in names]}
    try:
        trace = writer.Trace(header)
        for k in range(len(columns["step"])):
            trace.append([b"".join(np.ascontiguousarray(columns[n][k]).tobytes() for n in names)])
        trace.close(complete)
        if overwrite:
            os.replace(temporary, place)
        else:
            os.link(temporary, place)
    finally:
        for left in (temporary, temporary + ".part"):
            if os.path.exists(left):
                os.unlink(left)


def main(words: Sequence[str]) -> int:
    """`twinstep merge`. Returns 0, 1 where the ranks differ, 2 where the files cannot be joined."""
    parser = argparse.ArgumentParser(prog="twinstep merge", description=(
        "Joins the recordings of all ranks of one training: losses are averaged, tokens added up, "
        "digests of batches listed; rates, skips and weights must be equal on all ranks."),
        epilog="Exit status: 0 joined; 1 the ranks differ, where first is said; 2 error.")
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="run.rank0000.h5 ...")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="recording to write")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    asked = parser.parse_args(words)
    try:
        merged = merge(*asked.recordings, output=asked.output, overwrite=asked.overwrite)
    except RanksDiffer as error:
        print(f"twinstep: {error}")
        return 1
    except (OSError, ValueError, KeyError) as error:
        print(f"twinstep: error: {error}", file=sys.stderr)
        return 2
    print(f"{merged.path}: {merged.updates} updates of {merged.ranks} ranks"
          + ("" if merged.complete else ", not complete"))
    for note in merged.notes:
        print(f"note: {note}")
    return 0
