# SPDX-License-Identifier: Apache-2.0
"""Lists of sums of which the writer makes digests, beside the training, as bytes behind a row.

A list is described once and has a number from then on, so that a row holds three words and the sums
as they came home: nothing is done for each tensor. `writer.Trace` reads them."""
from __future__ import annotations

import json
from dataclasses import dataclass
from struct import pack
from typing import TYPE_CHECKING, Any, Sequence

from . import digest

if TYPE_CHECKING:       # which needs torch
    from .tensors import Sums

SLOTS = 64      # numbers; the list that had one before is described again when it comes again


@dataclass
class Told:
    """A list: its number, its description until that was sent, and what its key is made of, so that
    no id comes again."""
    number: int
    text: bytes
    held: Any


class Closing:
    """What of lists the writer was told."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Told] = {}
        self._slots: dict[int, tuple[Any, ...]] = {}
        self._made = 0

    def pack(self, column: str, parts: Sequence[Sums], list_name: str | None = None) -> bytes:
        """The bytes of `parts`, which lie one behind the other. `list_name`: the column has the one
        digest of the list of that name, by the places of all; else each place has its own. The same
        bytes again, until `sent` is called."""
        held = [(part.places, part.labels) for part in parts]
        key = (column, *(id(of) for both in held for of in both))
        told = self._known.get(key)
        if told is None:
            number = self._made % SLOTS
            self._known.pop(self._slots.get(number, ()), None)
            told = self._known[key] = Told(
                number, json.dumps(self._describe(column, parts, list_name)).encode(), held)
            self._slots[number] = key
            self._made += 1
        raw = b"".join(part.raw for part in parts)
        return pack("<3Q", told.number, len(told.text), len(raw)) + told.text + raw

    def sent(self) -> None:
        """What was packed since the last call is on its way, so lists need no description."""
        for told in self._known.values():
            told.text = b""

    @staticmethod
    def _describe(column: str, parts: Sequence[Sums], list_name: str | None) -> dict[str, Any]:
        """The head of each digest, and where it goes: `places` in the column, or their `order` in a
        list, of which `before` is what its digest begins with. By the places of tensors: with
        several optimizers the order in which they step, and which of them do not, is no part of
        what they hold; of two at one place the last one counts."""
        labels = [label for part in parts for label in part.labels]
        told = {"column": column, "heads": [
            digest.head(name, dtype, shape).hex() for name, dtype, shape, _ in labels]}
        places = [(k, at) for k, part in enumerate(parts) for at in part.places]
        if list_name is None:
            return {**told, "places": [at for _, at in places]}
        weights = len(parts[0].places)
        last = {at: weights + j for j, (_, at) in enumerate(places[weights:])}
        order = [*range(weights),
                 *(last[at] for at in sorted(last, key=lambda at: (at[0], str(at[1]))))]
        return {**told, "order": order, "before": digest.list_head(list_name, len(order)).hex()}
