# SPDX-License-Identifier: Apache-2.0
"""Records PyTorch trainings as foreign traces (docs/RECORD.md, docs/FOREIGN.md). Needs torch."""
from .callbacks import TwinstepCallback
from .recorder import Recorder

__all__ = ["Recorder", "TwinstepCallback"]
