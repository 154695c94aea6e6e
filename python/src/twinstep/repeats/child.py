# SPDX-License-Identifier: Apache-2.0
"""The other process of the stratum `process`: it builds the training again and leaves its path."""
from __future__ import annotations

import multiprocessing
import os
import tempfile
import traceback
from typing import Any

import torch

from ..record import facts
from .training import Build, Path, Training, set_generators


class NoProcess(RuntimeError):
    """Another process could not do the same; the text says why."""


def settings() -> dict[str, Any]:
    """What a program may have set in torch before the step, beside what its code sets again."""
    return {"threads": torch.get_num_threads(), "dtype": torch.get_default_dtype(),
            "switches": facts.switches()}


def _set(to: dict[str, Any]) -> None:
    torch.set_num_threads(to["threads"])
    torch.set_default_dtype(to["dtype"])
    facts.set_switches(to["switches"])


def work(build: Build, states: Any, to: dict[str, Any], updates: int, out: str) -> None:
    """What the other process does: `out` gets the path, or the words of an error."""
    made: dict[str, Any]
    try:
        _set(to)
        set_generators(states)
        training = Training(build, states)
        made = training.path(updates).packed()
    except BaseException as error:              # noqa: B036 the parent says what it was
        line = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
        made = {"error": line}
    torch.save(made, out + ".part")
    os.rename(out + ".part", out)


def path_of_process(build: Build, states: Any, updates: int, timeout: float) -> Path:
    """The path of a new process. Raises NoProcess."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "path.pt")
        process = context.Process(target=work, args=(build, states, settings(), updates, out))
        try:
            process.start()
        except Exception as error:      # noqa: B902 a function that cannot be named to it
            raise NoProcess(f"another process cannot import step_fn: {error}") from error
        process.join(timeout)
        if process.is_alive():
            process.kill()
            process.join()
            raise NoProcess(f"the process took more than {timeout:g} s")
        if not os.path.exists(out):
            raise NoProcess(f"the process ended with status {process.exitcode} before its last "
                            "update: step_fn must be importable, and a script must begin its work "
                            "below `if __name__ == \"__main__\":`")
        made = torch.load(out, weights_only=True)
    if "error" in made:
        raise NoProcess(f"in the process: {made['error']}")
    return Path(made["start"], made["losses"], made["norms"], made["gradients"], made["weights"])


__all__ = ["NoProcess", "path_of_process", "settings", "work"]
