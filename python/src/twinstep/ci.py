# SPDX-License-Identifier: Apache-2.0
"""Trainings as tests: two runs are the same, or the assertion says what the program found.

The tolerance is a measured floor, not a constant. What cannot be decided fails, too."""
import html
import os
import pathlib
from typing import Any

from twinstep.verbs import Path, compare

SAME = 0  # the exit status of compare; 1 differs, 3 cannot be decided
default_floor: Path | None = None  # of --twinstep-floor
summary: pathlib.Path | None = None  # the job's summary, with --twinstep where GitHub names one
told: list[str] = []  # what --twinstep prints at the end


def _printable(line: str) -> str:
    """Returns a line without control characters, which come from a log or a file's name and act on
    a terminal, line ends among them; and without "##[", which a GitHub Action takes for a command
    wherever it stands in a line (ActionCommand of actions/runner), written as the program does."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line).replace(
        "##[", "##\\u005b")


def _tell(text: str) -> None:
    """Keeps the text, and appends it to the job's summary, where nothing in it acts as markup."""
    told.append(text)
    if summary is not None:
        with summary.open("a", encoding="utf-8") as file:
            file.write(f"<pre>{html.escape(text)}</pre>\n\n")


def assert_same_training(a: Path, b: Path, *, floor: Path | None = None, **options: Any) -> None:
    """Asserts that run `b` is run `a`, a golden one say: logs or traces, as twinstep compare reads.

    With a floor file, loss and gradient norm may differ by as much as repeated runs do. Without
    one, and without --twinstep-floor, every column must agree to its printed precision. Raises
    AssertionError with verdict and columns, also where the evidence decides nothing, as where `b`
    ends while `a` goes on (common=True: only updates of both are meant). Options as
    twinstep.compare takes them."""
    found = compare(a, b, floor=default_floor if floor is None else floor, **options)
    # Every line begins with a word of ours: what begins with "::" is a command to a GitHub Action.
    lines = [f"training {os.fspath(b)} against {os.fspath(a)}: {found.verdict}: {found.why}"]
    judged = found.raw.get("floor")
    if judged is not None:
        lines.append(f"floor: {judged['verdict']}: {judged['words']} ({judged['pairs']} A/A pairs)")
    lines += [f"column {c.column}: {c.different} of {c.pairs} updates differ, from update "
              f"{c.first_update} on" for c in found.columns if c.first_update is not None]
    text = "\n".join(map(_printable, lines))
    _tell(text)
    if found.status != SAME:
        raise AssertionError(text)
