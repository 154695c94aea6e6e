# SPDX-License-Identifier: Apache-2.0
"""`twinstep.ablate`: which difference between two ways to call a function makes the gap of what it
returns (docs/ABLATE.md).

The program plans and judges, as it does for commands. Each of its runs is a small process
(_caller.py) that asks this one, over a socket, to call the function; so the function is called
here, in the thread that called `ablate`, with the objects that it was given."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twinstep import _safetensors
from twinstep._decode import decode
from twinstep._program import ProgramError, program
from twinstep.results import Ablation

CALLER = pathlib.Path(__file__).with_name("_caller.py")
NAME = re.compile(r"[A-Za-z0-9_./-]{1,47}")  # of a factor, as the program reads it
ARMS = ("baseline-", "test-")  # how the program names runs of the two arms


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """What a run leaves: weights by name (arrays of numpy or torch), the loss of each update."""
    weights: Mapping[str, Any] | None = None
    losses: Sequence[float] | None = None


def _left(returned: Any) -> Left:
    """Returns what the function returned as Left. Raises TypeError where it left nothing known."""
    if isinstance(returned, Left):
        left = returned
    elif isinstance(returned, Mapping):
        left = Left(weights=returned)
    elif hasattr(returned, "state_dict"):
        left = Left(weights=returned.state_dict())
    elif isinstance(returned, (list, tuple)):
        left = Left(losses=returned)
    elif isinstance(returned, float):
        left = Left(losses=[returned])
    else:
        raise TypeError("run_fn must return weights by name, a module, losses or twinstep.Left, "
                        f"got {type(returned).__name__}")
    if left.weights is None and left.losses is None:
        raise TypeError("run_fn left neither weights nor losses")
    if (left.losses is not None and not len(left.losses)) or (left.weights is not None
                                                              and not len(left.weights)):
        raise TypeError("run_fn returned no " + ("losses: expected that of each update"
                                                 if left.losses is not None and not len(left.losses)
                                                 else "weights: expected them by name"))
    return left


def _write(left: Left, folder: pathlib.Path) -> None:
    if left.weights is not None:
        _safetensors.save(left.weights, folder / "weights.safetensors")
    if left.losses is not None:
        with (folder / "log.jsonl").open("x", encoding="utf-8") as file:
            for update, loss in enumerate(left.losses, start=1):
                file.write(json.dumps({"step": update, "loss": float(loss)}) + "\n")


def _name(value: Any) -> str | None:
    """Returns what a function or a class is called. A lambda has no name."""
    name = getattr(value, "__name__", None)
    return name if callable(value) and isinstance(name, str) and name.isidentifier() else None


def _words(values: Sequence[Any]) -> list[str]:
    """Returns what the two levels of a factor are called: the objects' own short text, of functions
    and classes their names, if it tells them apart; else whose they are, which is no value."""
    short = [_name(value) or repr(value) for value in values]
    return short if short[0] != short[1] and max(map(len, short)) <= 40 else ["baseline", "test"]


def _are_same(a: Any, b: Any) -> bool:
    """Whether two levels are one for certain. Objects of other classes may have one text, and do
    other things in a function."""
    return a is b or type(a) is type(b) and repr(a) == repr(b) \
        and isinstance(a, (bool, int, float, complex, str, bytes))


def _traceback(error: Exception) -> str:
    """The traceback of an error of the user's function, without the frames of this file."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame)).rstrip()


def _kinds(left: Left) -> set[str]:
    given = {"weights": left.weights, "log": left.losses}
    return {kind for kind, value in given.items() if value is not None}


class _Calls:
    """Answers the program's runs by calling the function."""

    def __init__(self, run_fn: Callable[..., Any], factors: Mapping[str, Sequence[Any]]) -> None:
        self.run_fn, self.factors = run_fn, factors
        self.words = [_words(values) for values in factors.values()]
        # The program has to be told what runs leave, so the baseline is called before there is a
        # plan. What this call left is no run of the baseline: it always comes first, when nothing
        # is warm and no program waits, and a floor takes runs that differ in nothing but chance.
        self.kinds = _kinds(self.call([0] * len(factors)))

    def call(self, levels: Sequence[int]) -> Left:
        """Calls the function with one level of each factor; raises what it raises."""
        values = zip(self.factors, self.factors.values(), levels)
        return _left(self.run_fn(**{name: of[level] for name, of, level in values}))

    def leave(self, levels: Sequence[int], folder: pathlib.Path) -> None:
        """Calls the function and writes what it left."""
        left = self.call(levels)
        if _kinds(left) != self.kinds:
            raise TypeError(f"expected {' and '.join(sorted(self.kinds))} as of the baseline, got "
                            f"{' and '.join(sorted(_kinds(left)))}")
        _write(left, folder)

    def answer(self, line: socket.socket) -> None:
        """Does one run. What goes wrong in an arm is raised; in a hybrid that run has failed."""
        with line, line.makefile("rb") as file:
            words = file.readline()
            if not words.endswith(b"\n"):
                return  # it was ended before it could ask
            asked = json.loads(words)
            levels = [words.index(word) for words, word in zip(self.words, asked["levels"])]
            try:
                self.leave(levels, pathlib.Path(asked["dir"]))
                reason = ""
            except Exception as error:
                if asked["run"].startswith(ARMS):
                    raise
                reason = _traceback(error)
            line.sendall(json.dumps(reason).encode())


def _plan(name: str, calls: _Calls, floor: Mapping[str, Any], hybrids: str) -> dict[str, Any]:
    levels = {factor: [word.replace("{", "{{").replace("}", "}}") for word in words]
              for factor, words in zip(calls.factors, calls.words)}
    paths = {"weights": "{dir}/weights.safetensors", "log": "{dir}/log.jsonl"}
    return {"ablate": 1, "name": name,
            "command": [sys.executable, "-SE", str(CALLER), "{dir}", "{run}",
                        *(f"{{factor:{factor}}}" for factor in levels)],
            "factors": levels,
            "read": {kind: paths[kind] for kind in sorted(calls.kinds)},
            "floor": dict(floor), "hybrids": hybrids, "run": {"shared": True}}


def _serve(calls: _Calls, words: Sequence[str], folder: pathlib.Path) -> tuple[int, dict[str, Any]]:
    """Runs the program in `folder` and answers its runs until it ends."""
    with (tempfile.TemporaryDirectory() as short, tempfile.TemporaryFile() as said,
          tempfile.TemporaryFile() as wrong, socket.socket(socket.AF_UNIX) as listener):
        place = os.path.join(short, "calls")  # a socket's path has at most 107 bytes
        listener.bind(place)
        listener.listen()
        process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=said,
                                   stderr=wrong, env={**os.environ, "TWINSTEP_CALLS": place})
        try:
            while process.poll() is None:
                ready = select.poll()
                ready.register(listener, select.POLLIN)
                if ready.poll(100):
                    calls.answer(listener.accept()[0])
        except BaseException:
            process.send_signal(signal.SIGTERM)  # it ends its run, and says nothing here
            process.wait()
            raise
        said.seek(0)
        wrong.seek(0)
        if process.returncode not in (0, 1, 3):
            raise ProgramError(words, process.returncode, wrong.read().decode("utf-8", "replace"))
        return process.returncode, json.loads(said.read())


def ablate(run_fn: Callable[..., Any], factors: Mapping[str, Sequence[Any]], *,
           name: str = "ablate", folder: str | os.PathLike[str] | None = None, runs: int = 2,
           noisy: int = 5, noisy_hybrids: int = 3, alpha: float = 0.01,
           hybrids: str = "all") -> Ablation:
    """Says which factor makes how much of the gap between two ways to call `run_fn`.

    `factors` are the differences: {"lr": (1e-3, 5e-4), "fused": (False, True)}, baseline first,
    any objects. `run_fn(lr=..., fused=...)` is called for both arms, again for a floor, and for
    hybrids, some 2^k + 8 times for k factors, up to five, where repeats agree; a factor whose name
    is none of Python's, as "optim.lr", comes to a function that takes **levels. It returns weights
    by name, a module, the losses of its updates, or twinstep.Left. It has to begin each time from
    the same state: seed generators, make the model anew. All calls share this process, so what one
    leaves behind, the next one finds, and the verdict says that no repeat was made in another one.

    `runs` of each arm, `noisy` where these differ, `noisy_hybrids` of each hybrid then, `alpha` of
    the test; hybrids="single" leaves out those that only shares need. `folder` keeps what the runs
    left, and must not exist. Raises what `run_fn` raises in an arm, ValueError for factors that the
    program cannot name, TypeError for what cannot be saved, ProgramMissing, and ProgramError."""
    for factor, levels in factors.items():
        if not isinstance(levels, (tuple, list)) or len(levels) != 2:
            raise ValueError("factors: expected NAME: (baseline, test), got "
                             f"{factor!r}: {levels!r}")
        if not isinstance(factor, str) or not NAME.fullmatch(factor):
            raise ValueError("factors: expected a name of letters, digits and _-./, at most 47 of "
                             f"them, got {factor!r}")
        if _are_same(*levels):
            raise ValueError(f"factors: {factor!r}: both levels are the same, {levels[0]!r}")
    if not factors:
        raise ValueError("factors: expected at least one, NAME: (baseline, test)")
    words = [str(program()), "ablate", f"{name}.json", "--quiet"]
    if folder is not None and os.path.exists(folder):
        raise FileExistsError(f"{os.fspath(folder)} exists: an ablation of a function cannot go on "
                              "in it")
    floor = {"runs": runs, "noisy": noisy, "hybrids": noisy_hybrids, "alpha": alpha}
    calls = _Calls(run_fn, factors)
    with tempfile.TemporaryDirectory() as own:
        place = pathlib.Path(own)
        if folder is not None:
            place = pathlib.Path(folder)
            place.mkdir(mode=0o700, parents=True)
        plan = _plan(name, calls, floor, hybrids)
        (place / f"{name}.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")
        status, given = _serve(calls, [*words, "--json"], place)
        # Everything is done or has failed, so this runs nothing and prints the verdict in words.
        told = subprocess.run(words, cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
    text = told.stdout.decode("utf-8", "replace")
    if folder is None:  # what the runs left is gone with its folder
        text = text.replace(f", in {given['folder']}\n", "\n")
    return dataclasses.replace(decode(Ablation, given), status=status, text=text)
