# SPDX-License-Identifier: Apache-2.0
"""Whether a training still trains what its recording is of.

The columns of a recording are fixed: the weights that were trained when it began, and the groups
of the optimizers that it was given or saw before its first row. A training that leaves these behind
(a layer is thawed or replaced, a group is added, a new optimizer steps) would be recorded in part,
and two such parts can agree where the trainings do not. So that ends the recording, with a text for
the user."""
from __future__ import annotations

from itertools import chain
from operator import getitem, is_, itemgetter
from typing import Any, Callable, Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

import torch

from .keyed_torch import Look, Looks


class Changed(Exception):
    """The training went on to something that the recording has no columns for."""


def _ids(optimizer: torch.optim.Optimizer) -> list[list[int]]:
    return [list(map(id, group["params"])) for group in optimizer.param_groups]


class Watched:
    """The trained weights, by name, the frozen ones, and what each optimizer holds."""

    def __init__(self, tensors: Sequence[tuple[str, torch.Tensor]],
                 frozen: Iterable[tuple[str, torch.Tensor]]) -> None:
        self.tensors = list(tensors)
        self.places = {id(p): i for i, (_, p) in enumerate(self.tensors)}
        self.frozen = {id(p): (name, p) for name, p in frozen}  # held, so that no id comes again
        self._weights = [p for _, p in self.tensors]
        self._looks = Looks()
        self._look: Look | None = None          # at the end of the update before
        self._devices: set[torch.device] = set()
        self._ids: WeakKeyDictionary[Any, list[list[int]]] = WeakKeyDictionary()
        self._held: WeakKeyDictionary[Any, tuple[Any, list[int]]] = WeakKeyDictionary()

    def held(self, optimizer: torch.optim.Optimizer) -> list[int]:
        """Which of the tensors an optimizer holds, as numbers in `tensors`."""
        ids = self._ids.get(optimizer, [])
        known = self._held.get(optimizer)
        if known is None or known[0] != ids:
            known = self._held[optimizer] = ids, sorted(
                self.places[i] for some in ids for i in some if i in self.places)
        return known[1]

    def begin(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """The first row is laid out, with columns for the groups of `optimizers`. One of them that
        has not stepped yet is known from here on: its first steps can be skipped, or come later."""
        for optimizer in optimizers:
            self._ids.setdefault(optimizer, _ids(optimizer))

    def admit(self, optimizer: torch.optim.Optimizer, groups: int | None) -> None:
        """An optimizer is about to step. Raises Changed where rows are written, with columns for so
        many `groups` (None: not yet), and this one was not there before, or holds other weights, or
        holds them in other groups. Where none was there before, the first one is the recording's
        own, if there are columns for its groups."""
        now = _ids(optimizer)
        before = self._ids.get(optimizer)
        if groups is not None and before is None and self._ids:
            raise Changed(f"another optimizer ({type(optimizer).__name__}) steps weights of the "
                          "model; a recording has the groups of those that it saw in its first "
                          "update, so give Recorder all of them")
        if groups is not None and before is None and len(now) > groups:
            raise Changed(f"the optimizer ({type(optimizer).__name__}) first steps after the first "
                          f"update and has {len(now)} groups, where the recording has columns for "
                          f"{groups}; give it to Recorder")
        if groups is not None and before is not None and now != before:
            raise Changed("the optimizer holds other weights or groups than in the first update, "
                          "and a recording has no columns for these; begin another one there")
        self._ids[optimizer] = now

    def look(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has stepped. Raises Changed where that moved a weight which was frozen when
        the recording began."""
        for group in optimizer.param_groups if self.frozen else ():
            for p in group["params"]:
                if p.grad is not None and id(p) in self.frozen:
                    raise Changed(f"{self.frozen[id(p)][0]} was frozen when the recording began, "
                                  "and is trained now; begin another one there")

    @property
    def devices(self) -> set[torch.device]:
        """Where the trained weights are."""
        return self._devices or {p.device for p in self._weights}

    def look_at_weights(self) -> Look:
        """How the trained weights look at the end of an update. Raises Changed where one has
        another dtype or shape than at the end of the first one."""
        now = self._looks.now(self._weights)
        if now is not self._look:
            before = now.kinds if self._look is None else self._look.kinds
            for (name, _), old, new in zip(self.tensors, before, now.kinds):
                if new[:2] != old[:2]:
                    raise Changed(f"{name} was {old[0]} {list(old[1])} in the first update, and is "
                                  f"{new[0]} {list(new[1])} now; begin another one there")
            self._look, self._devices = now, {device for _, _, device in now.kinds}
        return now


def _swaps(models: Sequence[Any]) -> bool:
    """Whether FSDP is in a model. It puts other parameters into its modules and takes them out
    again, at times of its own, so what they hold says nothing of a layer that was replaced."""
    return any(hasattr(module, "_get_fsdp_state")
               or type(module).__name__ == "FullyShardedDataParallel"
               for model in models for module in model.modules())


class Held:
    """Whether the models still hold the weights that the recording is of, under their names. It
    looks at no frozen weight, because libraries that offload those replace them all the time."""

    def __init__(self, models: Sequence[Any], tensors: Sequence[tuple[str, torch.Tensor]],
                 frozen: Iterable[int],
                 named: Callable[[Sequence[Any]], Iterable[tuple[str, torch.Tensor]]]) -> None:
        """`frozen`: ids; `named`: the parameters of models, with the names of `tensors`."""
        self.models, self.named = [] if _swaps(models) else models, named
        self.names = {id(p): name for name, p in tensors}
        self.ours = dict(tensors)
        self.frozen = set(frozen)
        self.others = {id(p): p for _, p in named(self.models)      # held, as frozen ones are
                       if p.requires_grad and id(p) not in self.names}
        self._take()

    def _take(self) -> None:
        self._modules = [vars(module) for model in self.models for module in model.modules()]
        self._dicts = list(self._held())
        self._empty = [inside for inside in self._dicts if not inside]
        self._filled = [inside for inside in self._dicts if inside]
        places = [(inside, key, value) for inside in self._filled for key, value in inside.items()]
        self._owners, self._keys, self._contents = \
            (list(some) for some in (zip(*places) if places else ((), (), ())))

    def _held(self) -> Iterator[dict[str, Any]]:
        """The dicts in which modules hold parameters and modules."""
        return chain(map(itemgetter("_parameters"), self._modules),
                     map(itemgetter("_modules"), self._modules))

    def _is_as_before(self) -> bool:
        """Whether the modules hold the same objects under the same names. No loop of Python's own
        and no list, because this is asked in each update."""
        try:
            return all(map(is_, self._held(), self._dicts)) and not any(self._empty) \
                and sum(map(len, self._filled)) == len(self._keys) \
                and all(map(is_, map(getitem, self._owners, self._keys), self._contents))
        except KeyError:        # one has left
            return False

    def look(self) -> None:
        """Raises Changed where a weight of the recording has left its model, or another one that is
        trained has come, or has the name of one. A weight in a wrapper is still there."""
        if self._is_as_before():
            return
        found = set()
        for name, p in self.named(self.models):
            found.add(id(p))
            ours = self.ours.get(name)
            if ours is not None and ours is not p:
                raise Changed(f"{name} was replaced in the model by another tensor; begin another "
                              "recording there")
            if p.requires_grad and not (id(p) in self.names or id(p) in self.others
                                        or id(p) in self.frozen):
                raise Changed(f"{name} was added to the model after the recording began, and there "
                              "is no column for it; begin another one there")
        for i, name in self.names.items():
            if i not in found:
                raise Changed(f"{name} is not in the model any more; begin another recording there")
        self._take()
