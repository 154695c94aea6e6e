# SPDX-License-Identifier: Apache-2.0
"""Find why two trainings that should agree do not.

Everything here is imported when it is first used, so `import twinstep` costs nothing and needs
neither numpy nor h5py; _MODULES says which module has which name."""
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a type checker reads; the test Import compares it with _MODULES
    from twinstep._program import ProgramError, ProgramMissing, program
    from twinstep.calls import Left, ablate
    from twinstep.ci import assert_same_training
    from twinstep.ranks import Merged, RanksDiffer, merge
    from twinstep.record import Recorder, TwinstepCallback
    from twinstep.repeats import noise
    from twinstep.tokens import NotTokenized, tokenize
    from twinstep.trace import NotATrace, Trace, load
    from twinstep.verbs import attribute, check_log, compare, fit, init, readback, rollout, run

__version__ = "0.1.0"

# module: the names that it gives
_MODULES = {
    "_program": ("ProgramError", "ProgramMissing", "program"),
    "calls": ("Left", "ablate"),
    "ci": ("assert_same_training",),
    "ranks": ("Merged", "RanksDiffer", "merge"),
    "record": ("Recorder", "TwinstepCallback"),
    "repeats": ("noise",),
    "tokens": ("NotTokenized", "tokenize"),
    "trace": ("NotATrace", "Trace", "load"),
    "verbs": ("attribute", "check_log", "compare", "fit", "init", "readback", "rollout", "run"),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = ["__version__", *_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'twinstep' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
