# SPDX-License-Identifier: Apache-2.0
"""The ranks that hold parts of the same tensors, and what they add up, once per update.

They meet over gloo connections of the recorder's own, so no call here can pair with one of the
training's. Before anything is added up each rank says whether it still records: one that has
stopped says so once, and then all stop. A rank that leaves closes its connections, which ends the
others' wait, and nothing here runs at the exit of a program."""
from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

import torch

from .keyed_torch import is_sharded

Ranks = tuple[int, ...]     # of the whole world, in their order
PATIENCE = timedelta(minutes=30)    # as torch's own: a rank may write a checkpoint meanwhile
_made: dict[Ranks, int] = {}        # how often this process has met these ranks


class RanksEnded(RuntimeError):
    """Another rank has stopped recording, or records something else."""


@functools.lru_cache(maxsize=256)
def _members(mesh: Any) -> Ranks | None:
    if mesh.get_coordinate() is None:
        return None
    ranks = tuple(sorted(mesh.mesh.flatten().tolist()))
    return ranks if len(ranks) > 1 else ()


def members(t: Any) -> Ranks | None:
    """The ranks of this tensor's own mesh; () where this rank holds all of it, None where it holds
    nothing of it because it is outside of the mesh."""
    return _members(t.device_mesh) if is_sharded(t) else ()


@dataclass
class Parts:
    """What one rank adds: `totals` (mod 2^64) by `names`, and `squares` by `roots`; the names are
    equal on all ranks that meet."""
    names: list[Any] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)


def _add(group: Any, values: torch.Tensor, how: Any) -> torch.Tensor:
    options = torch.distributed.AllreduceOptions()
    options.reduceOp = how
    group.allreduce([values], options).wait()
    return values


def _halves(totals: Sequence[int]) -> torch.Tensor:
    """Two words of 32 bits each in i64, whose sums over fewer than 2^31 ranks do not overflow."""
    return torch.tensor([[t & 0xFFFFFFFF, t >> 32 & 0xFFFFFFFF] for t in totals], dtype=torch.int64)


class Together:
    """The meetings of one recorder. `groups`: every set of ranks that it meets in each update."""

    def __init__(self, groups: Iterable[Ranks]) -> None:
        # One order on all ranks, so that no two wait for each other in different meetings.
        self.closed: set[Ranks] = set()
        self._groups: dict[Ranks, Any] = {ranks: None for ranks in sorted(groups)}

    @property
    def open(self) -> bool:
        """Whether some ranks expect this one in their next meeting."""
        return len(self.closed) < len(self._groups)

    def __contains__(self, ranks: Ranks) -> bool:
        return ranks in self._groups

    def _group(self, ranks: Ranks) -> Any:
        if self._groups[ranks] is None:
            dist = torch.distributed
            if not dist.is_gloo_available():
                raise RanksEnded("this build of torch has no gloo, over which shards are added up")
            _made[ranks] = number = _made.get(ranks, 0) + 1
            name = sha256(repr((ranks, number)).encode()).hexdigest()
            store = dist.PrefixStore(f"twinstep/{name}/",
                                     dist.distributed_c10d._get_default_store())
            self._groups[ranks] = dist.ProcessGroupGloo(
                store, ranks.index(dist.get_rank()), len(ranks), timeout=PATIENCE)
        return self._groups[ranks]

    def _meet(self, ranks: Ranks, step: int, parts: Parts | None) -> Parts | None:
        """Adds up `parts`; None for a rank that has stopped. Raises RanksEnded."""
        op = torch.distributed.ReduceOp
        group = self._group(ranks)
        own = torch.distributed.get_rank()
        names = None if parts is None else (parts.names, parts.roots)
        key = int.from_bytes(sha256(repr(names).encode()).digest()[:7], "little")
        said = [own + 1 if parts is None else 0, key, -key, step, -step]
        ended, most, least, last, first = _add(group, torch.tensor(said), op.MAX).tolist()
        if ended or parts is None:
            raise RanksEnded(f"rank {ended - 1} has stopped recording")
        if most != -least or last != -first:
            raise RanksEnded("the ranks do not record the same tensors in the same updates")
        found = Parts(parts.names, roots=parts.roots)
        if parts.totals:
            words = _add(group, _halves(parts.totals), op.SUM).tolist()
            found.totals = [low + (high << 32) for low, high in words]
        if parts.squares:
            found.squares = _add(group, torch.tensor(parts.squares, dtype=torch.float64),
                                 op.SUM).tolist()
        return found

    def add_up(self, step: int, parts: Mapping[Ranks, Parts] | None) -> dict[Ranks, Parts]:
        """The sums over each set of ranks. `parts` None: this rank has stopped recording, and says
        so. Raises RanksEnded where one did, after the meetings of all sets."""
        found: dict[Ranks, Parts] = {}
        problem: Exception | None = None
        for ranks in [r for r in self._groups if r not in self.closed]:
            try:
                mine = None if parts is None else parts.get(ranks, Parts())
                sums = self._meet(ranks, step, mine)
                if sums is not None:
                    found[ranks] = sums
            except Exception as error:      # noqa: B902 a lost connection is a RuntimeError
                self._leave(ranks)
                problem = error
        if problem is not None and parts is not None:
            raise problem if isinstance(problem, RanksEnded) else RanksEnded(
                f"another rank is gone, or did not end its update within {PATIENCE}: {problem}")
        return found

    def _leave(self, ranks: Ranks) -> None:
        self.closed.add(ranks)
        self._groups[ranks] = None          # the last reference: the connections close

    def leave(self) -> None:
        """Meets nobody any more, which the others see at once."""
        for ranks in self._groups:
            self._leave(ranks)
