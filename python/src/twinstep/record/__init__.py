# SPDX-License-Identifier: Apache-2.0
"""Records PyTorch trainings as foreign traces (docs/RECORD.md, docs/FOREIGN.md). The recorder needs
torch, so it is imported when it is first asked for; the writer and the digests do not."""
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .callbacks import TwinstepCallback
    from .recorder import Recorder

__all__ = ["Recorder", "TwinstepCallback"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "callbacks" if name == "TwinstepCallback" else "recorder"
    return getattr(importlib.import_module(f"{__name__}.{place}"), name)
