# SPDX-License-Identifier: Apache-2.0
"""The process that writes a recording, beside the training and never inside it.

It reads frames from its standard input and appends them to a foreign trace (docs/FOREIGN.md) in
HDF5's SWMR mode: all objects are made first, every update goes to the file before `step` names it,
so a kill at any moment leaves every update that `step` names readable. It needs h5py and numpy
alone, and is started by its file name (`record/channel.py`), so it imports nothing of twinstep; the
seals (`_seal.py`) and what opens a file (`_hdf5.py`) are run by file name, too.

A frame is its length (u64, little-endian) and as many bytes. The first one is JSON: `path`,
`attributes` of the file, `run` with its attributes, fixed datasets (`texts`, `numbers`) and
`columns`. Each further one is a row: the bytes of all columns in their order, `step` last. Of a
column with `heads` a row has a byte for each tensor, 1 where it has a sum, and the sums (u64); the
digest is SHA-256 of the tensor's head and its sum, and is made here, beside the training. Behind
the columns a row can have lists of sums: the number of a list, the length of its description (0
where it was told before) and of its sums, all u64, the description and the sums, u64 each. A
description is JSON: `column`, `heads`, and `places` in the column; or `order`, where the column has
one digest, SHA-256 of `before` and of the list's digests in that order. A frame of length 0 says
that the training ran to its end, one of length 1 that it ended before. Behind either, and at the
end of the input, OUT.part gets its name: processes that the training forked (the workers of a
DataLoader) hold the pipe open as long as they live, so the end of the input can be late.
What went wrong is one line on the standard output; "ok" there says that all of it is in the file.
"""
from __future__ import annotations

import fcntl
import json
import os
import runpy
import select
import struct
import sys
import time
from hashlib import sha256
from typing import Any

OK = b"ok\n"
LEFT = b"\0"    # a frame: the training ended before its end


class Frames:
    """The frames of a pipe; `next` waits for one and `waiting` says whether one is there."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.buffer, self.ended = descriptor, bytearray(), False
        self.parent = os.getppid()

    def _fill(self, patience: float) -> bool:
        if self.ended or not select.select([self.descriptor], [], [], patience)[0]:
            # Another process that the training forked can hold the pipe open after its death.
            self.ended = self.ended or (patience > 0 and os.getppid() != self.parent)
            return False
        piece = os.read(self.descriptor, 1 << 20)
        self.ended = not piece
        self.buffer += piece
        return bool(piece)

    def _whole(self) -> bool:
        return (len(self.buffer) >= 8
                and len(self.buffer) >= 8 + struct.unpack_from("<Q", self.buffer)[0])

    def waiting(self) -> bool:
        """Whether a whole frame can be had without waiting."""
        while not self._whole() and self._fill(0):
            pass
        return self._whole()

    def next(self) -> bytes | None:
        """The next frame, or None at the end of the input; half a frame at the end is left out."""
        while not self._whole():
            if not self._fill(1.0) and self.ended:
                return None
        length = struct.unpack_from("<Q", self.buffer)[0]
        frame = bytes(self.buffer[8:8 + length])
        del self.buffer[:8 + length]
        return frame


def chunk_rows(row_bytes: int) -> int:
    """Rows of a chunk: 64, fewer by halves while it exceeds 64 KiB (docs/TRACE.md)."""
    rows = 64
    while rows > 1 and rows * row_bytes > 65536:
        rows //= 2
    return rows


def beside(name: str) -> dict[str, Any]:
    """What the package's file `name` defines, without an import of the package."""
    here = os.path.dirname(os.path.abspath(__file__))
    return runpy.run_path(os.path.join(here, "..", name))


def create(part: str) -> Any:
    """An empty HDF5 file in place of `part`. Who looks at the file in the moment before HDF5 has
    locked it (a plot, `compare` of a live trace) holds a lock itself and lets it go soon; HDF5 does
    not wait for that, so this does, up to a second."""
    open_file = beside("_hdf5.py")["open_file"]
    for _ in range(50):
        try:
            return open_file(part, "w", libver=("v110", "v110"))
        except BlockingIOError:
            time.sleep(0.02)
    return open_file(part, "w", libver=("v110", "v110"))


def mark(descriptor: int) -> None:
    """Marks a file as being written, as twinstep does (determinism/trace/trace_path.c): a lock on a
    byte that no file has, which ends with this process. A run that asks to overwrite what another
    one left is refused while it is there. Where a file system has no locks, nobody is told."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 1 << 62)
    except OSError:
        pass


def inode_of(info: os.stat_result) -> tuple[int, int]:
    """What tells a file from another one that has its name."""
    return info.st_dev, info.st_ino


class Trace:
    """The file. `append` takes rows, and `close` gives it its name."""

    def __init__(self, header: dict[str, Any]) -> None:
        import h5py
        import numpy as np
        self.np, self.path = np, header["path"]
        self.part = self.path + ".part"
        os.close(os.open(self.part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        self.file = f = create(self.part)
        self.inode = inode_of(os.fstat(f.id.get_vfd_handle()))
        mark(f.id.get_vfd_handle())
        for name, value in header["attributes"].items():
            f.attrs[name] = np.int64(value) if isinstance(value, int) else value
        f["complete"] = np.int64(0)
        run = f.create_group("runs/" + header["run"])
        for name, value in header["run_attributes"].items():
            run.attrs[name] = np.int64(value) if isinstance(value, int) else value
        self.steps = steps = run.create_group("steps")
        for name, texts in header["texts"].items():
            width = max(len(t.encode()) for t in texts)
            kind = h5py.string_dtype("utf-8", max(width, 1))
            steps.create_dataset(name, data=np.array([t.encode() for t in texts], kind), dtype=kind)
        for name, (kind, values) in header["numbers"].items():
            steps[name] = np.array(values, kind)
        self.columns = []
        self.heads = {c["name"]: [sha256(bytes.fromhex(head)) for head in c["heads"]]
                      for c in header["columns"] if c.get("heads")}
        self.row = np.dtype([self._field(c) for c in header["columns"]])
        for c in header["columns"]:
            self.columns.append(self._column(c))
        self._scales(header)
        self.lists: dict[int, tuple[dict[str, Any], list[Any]]] = {}
        self.rows = 0
        self.seal = beside("_seal.py")["write"]
        f.create_dataset("seal", data=np.zeros(64, "u1"))
        self.seal(f, b"opening")
        f.swmr_mode = True

    def _field(self, c: dict[str, Any]) -> tuple[Any, ...]:
        """A column in the bytes of a row."""
        some = len(c.get("heads", ()))
        if some:
            return c["name"], [("there", "?", (some,)), ("sum", "V8", (some,))]
        return c["name"], c["type"], tuple(c["shape"])

    def _closed(self, name: str, rows: Any) -> Any:
        """The digests of a column of sums; zeros where a tensor has none."""
        found = self.np.zeros((*rows["there"].shape, 32), "u1")
        for row, there, sums in zip(found, rows["there"].tolist(), rows["sum"].tolist()):
            for i, (head, is_there, raw) in enumerate(zip(self.heads[name], there, sums)):
                if is_there:
                    whole = head.copy()
                    whole.update(raw)
                    row[i] = self.np.frombuffer(whole.digest(), "u1")
        return found

    def _column(self, c: dict[str, Any]) -> Any:
        shape = tuple(c["shape"])
        kind = self.np.dtype(c["type"])
        fill = {"f": float("nan"), "i": -1, "u": 0}[kind.kind]
        size = kind.itemsize
        for length in shape:
            size *= length
        column = self.steps.create_dataset(
            c["name"], (0, *shape), kind, maxshape=(None, *shape),
            chunks=(chunk_rows(size), *shape), fillvalue=fill)
        column.attrs["units"], column.attrs["long_name"] = c["units"], c["long_name"]
        if kind.kind == "f":
            column.attrs["_FillValue"] = self.np.float64("nan")
        return column

    def _scales(self, header: dict[str, Any]) -> None:
        """Dimension scales, without which xarray sees no axes."""
        for name in ("step", *header["axes"].values()):
            self.steps[name].make_scale(name.rsplit("/", 1)[-1])
        in_folder = {name.rpartition("/")[0]: name for name in header["axes"].values()
                     if "/" in name}
        for name in (*header["texts"], *header["numbers"]):
            scale = in_folder.get(name.rpartition("/")[0])
            if scale not in (None, name):       # what is fixed of each tensor: dtype, shape, group
                self.steps[name].dims[0].attach_scale(self.steps[scale])
        for column, c in zip(self.columns, header["columns"]):
            for i, axis in enumerate(["step", *c["axes"]]):
                name = header["axes"].get(axis, axis)
                if c["name"] != name:
                    column.dims[i].attach_scale(self.steps[name])

    def _put_lists(self, row: Any, frame: bytes, at: int) -> None:
        """Reads the lists behind a row, and puts their digests into it."""
        while at < len(frame):
            number, described, summed = struct.unpack_from("<3Q", frame, at)
            at += 24
            if described:
                told = json.loads(frame[at:at + described])
                self.lists[number] = told, [sha256(bytes.fromhex(h)) for h in told["heads"]]
                at += described
            told, heads = self.lists[number]
            closed = []
            for i, head in enumerate(heads):
                whole = head.copy()
                whole.update(frame[at + 8 * i:at + 8 * i + 8])
                closed.append(whole.digest())
            at += summed
            if "order" in told:
                parts = b"".join(closed[i] for i in told["order"])
                whole = sha256(bytes.fromhex(told["before"]) + parts)
                row[told["column"]][:] = list(whole.digest())
            else:
                for i, digest in zip(told["places"], closed):
                    row[told["column"]][i] = list(digest)

    def append(self, frames: list[bytes]) -> None:
        """Adds rows; they are in the file, and named by `step`, when this returns."""
        size = self.row.itemsize
        rows = self.np.frombuffer(bytearray().join(f[:size] for f in frames), self.row)
        for row, frame in zip(rows, frames):
            self._put_lists(row, frame, size)
        first, self.rows = self.rows, self.rows + len(rows)
        for column, name in zip(self.columns, self.row.names or ()):
            if name == "step":      # the last one: everything else is in the file before
                self.file.flush()
            column.resize(self.rows, axis=0)
            column[first:] = self._closed(name, rows[name]) if name in self.heads else rows[name]
        self.file.flush()

    def close(self, complete: bool) -> None:
        """Closes the file and gives it its name; raises FileExistsError if that is taken, and
        FileNotFoundError if the file is not under its live name any more."""
        self.seal(self.file, b"complete" if complete else b"unfinished")
        self.file.flush()
        if complete:
            self.file["complete"][()] = 1
        self.file.close()
        if not os.path.exists(self.part) or inode_of(os.lstat(self.part)) != self.inode:
            raise FileNotFoundError(f"{self.part} was removed or replaced by another process")
        try:
            os.link(self.part, self.path)   # unlike a rename, a link overwrites nothing
        except FileExistsError:
            raise
        except OSError:                     # a file system without hard links
            if os.path.exists(self.path):
                raise
            os.rename(self.part, self.path)
            return
        os.unlink(self.part)


def tell(line: bytes) -> None:
    """Says something to the training, which may be gone."""
    try:
        os.write(1, line)
    except OSError:
        pass                                # the training is gone, and nobody listens


def write_all(descriptor: int) -> None:
    """Writes what comes until the input ends."""
    frames = Frames(descriptor)
    header = frames.next()
    if header is None:
        return
    trace = Trace(json.loads(header))
    end = None
    while end is None and (frame := frames.next()) is not None:
        rows: list[bytes] = []
        while frame is not None and len(frame) > len(LEFT):     # no row is so short
            rows.append(frame)
            if len(rows) >= 64 or not frames.waiting():
                break
            frame = frames.next()
        else:
            end = frame
        if rows:
            trace.append(rows)
    trace.close(end == b"")
    tell(OK)


def stand_back() -> None:
    """Leaves the processor to the training where both want it: a process of this policy does not
    interrupt another one when a row wakes it, which otherwise stops the training inside its `write`
    for as long as the row takes (Linux, sched(7): SCHED_BATCH). Elsewhere nothing is changed."""
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except (AttributeError, OSError):
        pass


def main() -> int:
    """Returns 0; ends the process with 3 where something went wrong."""
    stand_back()
    try:
        write_all(0)
    except BaseException as error:          # noqa: B036 whatever it was is the parent's to know
        tell(f"{type(error).__name__}: {error}".replace("\n", " ").encode()[:2000] + b"\n")
        os._exit(3)                         # no exit handler of HDF5: it would write again
    return 0


if __name__ == "__main__":
    sys.exit(main())
