# SPDX-License-Identifier: Apache-2.0
"""The twinstep program, as a process: where it is, and how its --json is asked.

Its HDF5 never comes into this process. What the package does alone (recording, digests, reading
traces) needs no program."""
import json
import os
import pathlib
import subprocess
from collections.abc import Sequence
from typing import Any

BUNDLED = pathlib.Path(__file__).parent / "_program" / "twinstep"
WRAPPER = b"twinstep.__main__"  # stands in the script that pip makes of our entry point


class ProgramMissing(RuntimeError):
    """There is no twinstep program: neither in TWINSTEP_PROGRAM, nor in the wheel, nor on PATH."""


class ProgramError(RuntimeError):
    """The program refused (exit status 2), or died: its exit `status`, and its error `text`."""

    def __init__(self, words: Sequence[str], status: int, text: str) -> None:
        super().__init__(text.strip() or f"{' '.join(words)}: exit status {status}, without a word")
        self.status, self.text = status, text


def _is_program(path: pathlib.Path) -> bool:
    if not (path.is_file() and os.access(path, os.X_OK)):
        return False
    with path.open("rb") as file:
        return WRAPPER not in file.read(4096)


def program() -> pathlib.Path:
    """Returns the program's path: $TWINSTEP_PROGRAM, else that of the wheel, else that on PATH.

    Raises ProgramMissing, which says what to do."""
    named = os.environ.get("TWINSTEP_PROGRAM")
    if named:
        if not _is_program(pathlib.Path(named)):
            raise ProgramMissing(f"TWINSTEP_PROGRAM is {named!r}, which is no program of twinstep")
        return pathlib.Path(named)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for path in [BUNDLED, *(pathlib.Path(folder or ".", "twinstep") for folder in folders)]:
        if _is_program(path):
            return path
    raise ProgramMissing("the twinstep program is not there: install a wheel that holds it, or "
                         "build it (docs/INSTALL.md) and put it on PATH or into TWINSTEP_PROGRAM")


def ask(words: Sequence[str | os.PathLike[str]]) -> tuple[int, Any]:
    """Runs the program with these words and --json; returns exit status (0, 1 or 3) and the result.

    Raises ProgramMissing, and ProgramError with the program's own text where it refuses."""
    command = [str(program()), *(os.fspath(word) for word in words)]
    command.insert(command.index("--") if "--" in command else len(command), "--json")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise ProgramError(command, done.returncode, done.stderr.decode("utf-8", "replace"))
    return done.returncode, json.loads(done.stdout)


def tell(words: Sequence[str | os.PathLike[str]], text: str | None = None) -> str:
    """Runs the program with these words, `text` on its standard input; returns what it prints.

    Raises ProgramMissing, and ProgramError with the program's own text for exit status 2."""
    command = [str(program()), *(os.fspath(word) for word in words)]
    done = subprocess.run(command, input=(text or "").encode(), capture_output=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise ProgramError(command, done.returncode, done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "replace")
