# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, which pytest finds by itself: --twinstep tells every verdict, those of tests
that passed, too, at the end and in the job summary of a GitHub Action."""
import os
import pathlib
from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Adds --twinstep and --twinstep-floor."""
    group = parser.getgroup("twinstep")
    group.addoption("--twinstep", action="store_true", help="tell the verdict of every assert_same_"
                    "training at the end, and in the file that GITHUB_STEP_SUMMARY names")
    group.addoption("--twinstep-floor", metavar="FILE", help="floor file of every "
                    "assert_same_training that names none")


def pytest_configure(config: Any) -> None:
    """Takes the options over. twinstep is imported here, as pytest loads this in every project."""
    from twinstep import ci
    ci.told.clear()
    ci.default_floor = config.getoption("twinstep_floor")
    named = os.environ.get("GITHUB_STEP_SUMMARY")
    ci.summary = pathlib.Path(named) if named and config.getoption("twinstep") else None


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Prints what was told."""
    from twinstep import ci
    if config.getoption("twinstep") and ci.told:
        terminalreporter.section("twinstep")
        for text in ci.told:
            terminalreporter.write_line(text)
