# SPDX-License-Identifier: Apache-2.0
"""Find why two trainings that should agree do not.

Everything here is imported when it is first used, so `import twinstep` costs nothing and needs
neither numpy nor h5py; the tables below say which module has which name."""
import importlib
from typing import Any

__version__ = "0.1.0"

# name: the module that has it
_NAMES = {
    "ProgramError": "_program",
    "ProgramMissing": "_program",
    "Recorder": "record",
    "TwinstepCallback": "record",
    "program": "_program",
}
__all__ = ["__version__", *_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'twinstep' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
