# SPDX-License-Identifier: Apache-2.0
"""One training that a user's function builds, with random generators of its own, and the path that
it leaves: losses, gradients before clipping and weights, update by update, copied to the host."""
from __future__ import annotations

import copy
import inspect
import math
import random
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..record import patches
from ..record.keyed_torch import is_sharded
from ..record.recorder import find_tensors, inner_optimizers
from ..record.tensors import squares

Build = Callable[[], Any]
Tensors = dict[str, torch.Tensor | None]


def generators() -> dict[str, Any]:
    """The states of Python's, numpy's and torch's generators, of all devices."""
    states: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_generators(states: dict[str, Any]) -> None:
    """Sets those generators that `states` holds."""
    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "numpy" in states:
        import numpy
        numpy.random.set_state(states["numpy"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])


ENDED = "an iterator that the step reads has ended: give update k its batch by k"
SEED = 77           # of the other states: any number that no program chose


def other_states(states: dict[str, Any], kinds: Collection[str]) -> dict[str, Any]:
    """The same states, but those of `kinds`, which no program has left there."""
    made = dict(states)
    if "python" in kinds:
        made["python"] = random.Random(SEED).getstate()
    if "torch" in kinds:
        made["torch"] = torch.Generator().manual_seed(SEED).get_state()
    if "numpy" in kinds:
        import numpy
        made["numpy"] = numpy.random.RandomState(SEED).get_state()
    if "cuda" in kinds:         # a seed, and then an offset
        made["cuda"] = [torch.cat((state[:1] ^ 1, state[1:])) for state in states["cuda"]]
    return made


@dataclass
class Path:
    """What `updates` updates left. Gradients are None where a tensor had none. `norms` are as the
    training itself computes them and logs print them, rounded to the dtype of the gradients."""
    start: Tensors
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    gradients: list[Tensors] = field(default_factory=list)
    weights: list[Tensors] = field(default_factory=list)

    def broken(self) -> str:
        """What of it is no number, "" where all is: such a path is equal to others that broke."""
        for update, loss in enumerate(self.losses, start=1):
            if not math.isfinite(loss):
                return f"the loss of update {update} is {loss}"
        for update, weights in enumerate(self.weights, start=1):
            for name, t in weights.items():
                if _breaks(self.start[name], t):
                    return f"{name} is not finite after update {update}"
        return ""

    def packed(self) -> dict[str, Any]:
        """The same as `torch.save` takes it."""
        return {"start": self.start, "losses": self.losses, "norms": self.norms,
                "gradients": self.gradients, "weights": self.weights}


def _breaks(before: torch.Tensor | None, after: torch.Tensor | None) -> bool:
    """Whether a weight that was finite is not."""
    if before is None or after is None or not after.dtype.is_floating_point:
        return False
    return not bool(after.isfinite().all()) and bool(before.isfinite().all())


def host(t: torch.Tensor | None) -> torch.Tensor | None:
    """A copy in the host's memory that nobody else writes to."""
    return None if t is None else t.detach().to("cpu", copy=True).contiguous()


class Watch:
    """Takes the gradients of one update before they are clipped, or else as the optimizer takes
    them. It listens as a recorder does (`record/patches.py`). Of several optimizers each takes
    those of its own weights when it steps: before, they can be of another one's backward pass."""

    def __init__(self, tensors: list[tuple[str, torch.nn.Parameter]], optimizers: int) -> None:
        self.tensors = tensors
        self.ours = {id(p) for _, p in tensors}
        self.several = optimizers > 1
        self.found: Tensors = {}
        self.norm: float | None = None
        self.square = 0.0                   # of the norm of what was taken
        self.fresh = False

    def __enter__(self) -> "Watch":
        patches.open_for(self)
        self.hook = register_optimizer_step_pre_hook(lambda o, a, k: self._on_step(o))
        return self

    def __exit__(self, *_: Any) -> None:
        self.hook.remove()
        patches.close_for(self)

    def _take(self, some: set[int]) -> None:
        """The gradients of some weights as they are now, but for those that were taken before."""
        now = [(name, p.grad) for name, p in self.tensors
               if id(p) in some and name not in self.found]
        with torch.no_grad():
            self.found.update((name, host(grad)) for name, grad in now)
            if self.norm is None:           # as the recorder measures it where nobody clips
                found = squares([grad for _, grad in now if grad is not None])
                self.square += float(found[()]) if found else 0.0

    def end(self) -> tuple[float, Tensors]:
        """The norm and the gradients of the update; those that nobody has taken as they are now."""
        self._take(self.ours)
        norm = self.square ** 0.5 if self.norm is None else self.norm
        return norm, {name: self.found[name] for name, _ in self.tensors}

    def _on_step(self, optimizer: Any) -> None:
        given = {id(p) for g in optimizer.param_groups for p in g["params"]}
        if self.fresh and given & self.ours:
            self._take(given if self.several else self.ours)

    def before_backward(self) -> None:
        """Nothing is needed before a backward pass."""

    def on_backward(self, tensors: Any, mark: Any) -> None:
        """Gradients are there from now on."""
        self.fresh = True

    def on_clip(self, parameters: Any, max_norm: Any, total: Any) -> None:
        """The last moment before they are clipped."""
        given = {id(p) for p in parameters}
        if self.fresh and given & self.ours:
            held = self.ours if self.several else {id(p) for _, p in self.tensors
                                                   if p.grad is not None}
            if self.norm is None and not self.found and total is not None and held <= given:
                self.norm = float(total)
            self._take(given if self.several else self.ours)

    def on_unscale(self, scaler: Any, optimizer: Any = None, *_: Any) -> None:
        """A scale is taken out before clipping: nothing to keep yet."""

    def on_zero(self, of: Any, *_: Any) -> None:
        """The last moment before they are dropped; of several optimizers, one sets those to zero
        that it is about to need, and those that it took are kept."""
        if self.fresh and not self.several:
            self._take(self.ours)


def _optimizers(others: list[Any]) -> list[torch.optim.Optimizer]:
    """The torch optimizers; not that which a scheduler merely points to."""
    return inner_optimizers([t for t in others if not hasattr(t, "get_last_lr")])


def _parts(made: Any) -> tuple[list[Any], list[Any], Callable[..., Any]]:
    """The models, what else has a state, and the step. Raises TypeError that says what is wrong."""
    wanted = "step_fn: expected it to return (model, optimizer, ..., step)"
    if not isinstance(made, (tuple, list)):
        raise TypeError(f"{wanted}, got {type(made).__name__}")
    given = ", ".join(type(t).__name__ for t in made)
    if not made or not callable(made[-1]) or isinstance(made[-1], torch.nn.Module):
        raise TypeError(f"{wanted}, got ({given}): its last item is no step, the function that "
                        "does an update and returns its loss")
    *things, step = made
    for thing in things:
        if not (hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")):
            raise TypeError(f"{wanted}; {type(thing).__name__} has no state_dict to go back to")
    models = [t for t in things if isinstance(t, torch.nn.Module)]
    others = [t for t in things if not isinstance(t, torch.nn.Module)]
    if not models or not _optimizers(others):
        raise TypeError(f"{wanted}, got {', '.join(type(t).__name__ for t in things)}: no "
                        f"{'optimizer' if models else 'model'} among them")
    return models, others, step


class Training:
    """What `build` returned, its generators, and the way back to its start."""

    def __init__(self, build: Build, states: dict[str, Any]) -> None:
        set_generators(states)
        self.models, self.others, self.step = _parts(build())
        self.tensors = find_tensors(self.models)
        if any(is_sharded(p) for _, p in self.tensors):
            raise TypeError("step_fn: the model is sharded over ranks; noise is measured on one")
        try:
            self.counts = len(inspect.signature(self.step).parameters) > 0
        except (TypeError, ValueError):         # a function without a signature takes nothing
            self.counts = False
        self.states = generators()

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """The torch optimizers among what has a state."""
        return _optimizers(self.others)

    def keep(self) -> Any:
        """All that `restore` needs, as copies."""
        return (copy.deepcopy([t.state_dict() for t in self.models + self.others]),
                [None if p.grad is None else p.grad.clone() for _, p in self.tensors],
                [m.training for m in self.models], self.states)

    def restore(self, kept: Any) -> None:
        """Goes back to where `keep` was called."""
        dicts, gradients, modes, self.states = kept
        for thing, state in zip(self.models + self.others, copy.deepcopy(dicts)):
            thing.load_state_dict(state)
        for (_, p), gradient in zip(self.tensors, gradients):
            p.grad = None if gradient is None else gradient.clone()
        for model, mode in zip(self.models, modes):
            model.train(mode)

    def weights(self) -> Tensors:
        """Copies of all weights that are trained."""
        with torch.no_grad():
            return {name: host(p) for name, p in self.tensors}

    def advance(self, update: int) -> tuple[float, float, Tensors]:
        """Does update `update`, counted from 0; returns its loss, its gradients' norm and these."""
        before = generators()
        set_generators(self.states)
        try:
            with Watch(self.tensors, len(self.optimizers())) as watch:
                loss = self.step(update) if self.counts else self.step()
                norm, gradients = watch.end()
            self.states = generators()
        except StopIteration as error:
            raise RuntimeError(ENDED) from error
        finally:
            set_generators(before)
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            loss = loss.item()
        if isinstance(loss, bool) or not isinstance(loss, (int, float)):
            raise TypeError("step_fn: expected its step to return the loss, a number or a tensor "
                            f"of one element, got {type(loss).__name__}")
        return float(loss), norm, gradients

    def path(self, updates: int) -> Path:
        """Does that many updates."""
        path = Path(self.weights())
        for update in range(updates):
            loss, norm, gradients = self.advance(update)
            path.losses.append(loss)
            path.norms.append(norm)
            path.gradients.append(gradients)
            path.weights.append(self.weights())
        return path
