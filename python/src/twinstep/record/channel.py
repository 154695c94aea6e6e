# SPDX-License-Identifier: Apache-2.0
"""The training's end of the pipe to `writer.py`. Nothing here raises into a training, waits for a
disk or needs torch, numpy or h5py: where the writer died or does not take rows any more, recording
ends with one warning that says why."""
from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

WRITER = Path(__file__).with_name("writer.py")
LEFT = b"\0"    # `writer.LEFT`


def warn(words: str) -> None:
    """Warns, and raises nothing where the program made errors of warnings (`python -W error`)."""
    try:
        warnings.warn(words, RuntimeWarning, stacklevel=4)
    except Warning:
        print(words, file=sys.stderr)


def _framed(frame: bytes) -> bytes:
    return struct.pack("<Q", len(frame)) + frame


def _ready(descriptor: int, event: int, end: float) -> bool:
    """Waits until `end` for a descriptor. `select` would refuse one above 1023, which a training
    with many open files has."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(1000 * max(0.0, end - time.monotonic())))


class Channel:
    """A writer process and the pipe to it.

    The process starts at once and the file with `begin`. Nothing waits for either, because what
    can fail there is told by the first row that cannot be sent. `patience` is how long, in
    seconds, a row may wait for a full pipe before recording ends: 1 MiB is buffered.
    """

    def __init__(self, path: str, patience: float = 10.0) -> None:
        self.path, self.patience = path, patience
        self.stopped: str | None = None
        self.sent, self.begun = 0, False
        self.between = False        # the pipe holds whole frames
        self.process = subprocess.Popen(    # its own session: a Ctrl-C at the terminal is not its
            [sys.executable, "-P", str(WRITER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True, pipesize=1 << 20)
        assert self.process.stdin is not None
        self.pipe = self.process.stdin.fileno()
        os.set_blocking(self.pipe, False)

    def begin(self, header: dict[str, Any]) -> None:
        """Sends what the file is made from, as `writer.py` expects it."""
        self.begun = True
        problem = self._write(json.dumps(header).encode(), 60.0)
        if problem is not None:
            self._stop(problem)

    def _write(self, frame: bytes, patience: float) -> str | None:
        """Writes one frame; what went wrong, or None."""
        rest = memoryview(_framed(frame))
        end = time.monotonic() + patience
        self.between = False
        while rest:
            try:
                rest = rest[os.write(self.pipe, rest):]
            except BlockingIOError:
                if not _ready(self.pipe, select.POLLOUT, end):
                    return f"the writer took no row for {patience:g} s"
            except OSError:                 # a broken pipe: its last words say why it died
                return self._hear(5.0) or "the writer ended"
        self.between = True
        return None

    def _hear(self, patience: float) -> str | None:
        """Reads what the writer says last. None for "ok"; else what to say of it."""
        assert self.process.stdout is not None
        line, end = b"", time.monotonic() + patience
        while not line.endswith(b"\n"):
            if not _ready(self.process.stdout.fileno(), select.POLLIN, end):
                return f"the writer said nothing for {patience:g} s"
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                return f"the writer ended with status {self._status()}"
            line += piece
        words = line.decode(errors="replace").strip()
        return None if words == "ok" else words

    def _status(self) -> int | None:
        try:
            return self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            return None

    def _stop(self, problem: str) -> None:
        self.stopped = problem
        self._end()
        part = f"{self.path}.part"
        left = f". What was written so far is in {part}" \
            if os.path.exists(part) and "removed or replaced" not in problem else ""
        warn(f"twinstep: recording stopped after {self.sent} updates, and the training goes on: "
             f"{problem}{left}")

    def _end(self) -> None:
        for end in (self.process.stdin, self.process.stdout):
            if end is not None:
                try:
                    end.close()
                except OSError:
                    pass
        if self._status() is None:
            self.process.kill()
            self.process.wait()

    def let_go(self) -> None:
        """Ends the pipe and waits for nothing: the writer ends the file, as unfinished unless it
        was told before that it is complete."""
        if self.process.stdin is not None:
            try:
                if self.between:
                    os.write(self.pipe, _framed(LEFT))
                self.process.stdin.close()
            except (OSError, ValueError):
                pass

    def send(self, row: bytes) -> bool:
        """Hands one row over; False where recording has ended."""
        if self.stopped is not None:
            return False
        problem = self._write(row, self.patience)
        if problem is not None:
            self._stop(problem)
            return False
        self.sent += 1
        return True

    def close(self, complete: bool) -> bool:
        """Ends the file; True where all of it is on the disk under its name."""
        if self.stopped is not None:
            return False
        if not self.begun:
            self.stopped = "no update was recorded"
            self._end()
            return False
        # Said, since workers that the training forked hold the pipe open when this end is closed.
        # Behind a part of a row nothing can be said.
        problem = self._write(b"" if complete else LEFT, self.patience) \
            if complete or self.between else None
        assert self.process.stdin is not None
        if problem is None:
            self.process.stdin.close()
            problem = self._hear(60.0)
        if problem is not None:
            self._stop(problem)
            return False
        self.stopped = "closed"
        self._end()
        return True
