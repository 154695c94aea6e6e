# SPDX-License-Identifier: Apache-2.0
"""The noise floor of a user's own training step (docs/RECORD.md). Needs torch."""
from .measure import noise

__all__ = ["noise"]
