# SPDX-License-Identifier: Apache-2.0
"""`Recorder`: what a PyTorch training does, update by update, in a trace that twinstep judges.

It listens (`patches`, the optimizers' global hooks, one forward hook) and reads; it changes no
tensor, draws no random number and waits for no device inside of an update: the row of one comes
home while the next one runs. Whatever fails in it ends the recording with one warning and never
the training."""
from __future__ import annotations

import atexit
import functools
import multiprocessing
import multiprocessing.util
import os
import sys
import threading
import time
from collections import deque
from operator import attrgetter, eq, is_
from threading import get_ident
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from weakref import WeakKeyDictionary

import torch
from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                   register_optimizer_step_pre_hook)

from . import digest, facts, patches
from .channel import Channel, warn
from .closing import Closing
from .ended import GRADIENTS, INITIAL, WEIGHTS, Ended, Weights, weights_of
from .keyed_torch import DTYPES, is_sharded, keyed_sums
from .layout import COLUMNS, PAIRS, READBACK, Layout
from .readback import Reader
from .tensors import Listed, Row, home, local, state_lists
from .together import Parts, Ranks, Together, members
from .watched import Changed, Held, Watched

# What counts a scheduler's steps: torch's, DeepSpeed's and Megatron's.
COUNTS = ("last_epoch", "last_batch_iteration", "num_steps")

WRAPPED = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "module.")

IN_EVAL = ("twinstep: update {}: the model is in eval mode, and gradients are taken: no dropout, "
           "and batch norms use the means that they keep. Neither its forward passes nor digests "
           "of its batches are recorded in this mode; if you do not want it, call model.train() "
           "before the update, as behind each evaluation and generation")

UNTRAINED = ("twinstep: update {}: neither a forward or backward pass of the model nor a step was "
             "seen, so the row says that the update was skipped. A training that goes on with "
             "another model (one that was copied or loaded again) is not recorded: begin another "
             "recording with that model")

DROPPED = ("twinstep: update {}: gradients of a backward pass were dropped before a step took "
           "them, and its loss is in the row all the same, added to those behind it. Where a batch "
           "is left out, call update(skipped=True) behind it, or give the loss by update(loss=...)")

TWICE = ("twinstep: update {}: {} stepped more than once between two calls of update(), each time "
         "behind a backward pass of its own. The row is of all of it: the losses add up, and the "
         "gradients are those of the first step. If these are several updates, call update() "
         "behind each")

NO_PASS = ("twinstep: update {}: an optimizer stepped, and no backward pass of the model was "
           "seen, so neither the loss nor a norm or digest of the gradients is recorded. So it is "
           "where torch.autograd.grad or a formula made them, where a graph was compiled with its "
           "backward pass, or where that runs in another thread than the forward pass: give "
           "update(loss=..., grad_norm=...)")

UNREAD = ("twinstep: {}: without memory of its own at this time, or of a class without the "
          "operations that a digest needs, so its digest is left out, here and wherever this is so")


# The mark of a backward pass in another thread than the one that trains: it is of another model.
# Nothing of ours is looked at there, because torch takes no care of a gradient that one thread
# reads while another one drops it (2.15: the process dies).
ELSEWHERE = object()

_GRADIENT = attrgetter("grad")
_VERSION = attrgetter("_version")


def _main_gradient(p: torch.Tensor) -> torch.Tensor | None:
    """Where Megatron's DDP adds a weight's gradient up: in a buffer of its own, and `grad` goes."""
    found = getattr(p, "main_grad", None)
    return found if isinstance(found, torch.Tensor) else p.grad


def _mark_of(grad: torch.Tensor | None) -> Any:
    """What of a gradient is another one when a backward pass added to it."""
    return None if grad is None else (id(grad), local(grad)._version)


def _updates(count: int) -> str:
    return f"{count} update{'' if count == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """A recorder's own error ends the recording; its time is counted as its cost. A Ctrl-C can come
    at any line, so autograd is put back as it was found by whoever catches one: one that comes
    inside of `with torch.no_grad()` as it begins would leave it off. What `torch.set_grad_enabled`
    calls is called itself, because that is a class, and ten hooks of an update would make 30."""
    @functools.wraps(method)
    def _call(self: "Recorder", *args: Any, **kw: Any) -> Any:
        me = get_ident()
        if self._ended or self._inside == me or self._is_copy():
            return None
        # Another thread that trains another model tells of its passes, too, and waits here.
        with self._lock:
            return _taken(self, me, *args, **kw) if not self._ended else None

    @functools.wraps(method)
    def _taken(self: "Recorder", me: int, *args: Any, **kw: Any) -> Any:
        start, grad = time.perf_counter(), torch.is_grad_enabled()
        try:
            try:
                self._inside = me
                torch._C._set_grad_enabled(False)
                return method(self, *args, **kw)
            except Changed as error:
                self._give_up(str(error))
                return None
            except Exception as error:      # noqa: B902 nothing of ours may reach the training
                self._give_up(f"{type(error).__name__}: {error}")
                return None
            finally:
                torch._C._set_grad_enabled(grad)
                self._inside = 0
                self.seconds += time.perf_counter() - start
        except BaseException:               # a Ctrl-C
            torch._C._set_grad_enabled(grad)
            self._inside = 0
            self._interrupt()
            raise
    return _call


def _steps_on_the_way(optimizer: Any) -> int:
    """How many calls of the optimizer's `step` are on the way. Torch calls no hook where a step
    ends by an exception, so the stack is asked for the function that calls the hooks
    (`Optimizer.profile_hook_step`, torch 2.15)."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch.optim.optimizer":
            count += any(value is optimizer for value in frame.f_locals.values())
        frame = frame.f_back
    return count


def clean_name(name: str) -> str:
    """A parameter's name as the model has it without DDP, FSDP, checkpoint and torch.compile."""
    for word in WRAPPED[:3]:
        name = name.replace(word, "")
    return name.removeprefix("module.")


def _leaves(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in lists and dicts, each with its way there; dicts by the order of their keys."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{name}.{i}")
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], f"{name}.{key}")


def inner_optimizers(wrapped: Any) -> list[torch.optim.Optimizer]:
    """The torch optimizers inside of Accelerate's, torchtitan's, Lightning's or a list of them."""
    if wrapped is None:
        return []
    if isinstance(wrapped, (list, tuple)):
        return [o for w in wrapped for o in inner_optimizers(w)]
    for name in ("optimizers", "optimizer"):
        inside = getattr(wrapped, name, None)
        if isinstance(inside, (list, tuple, torch.optim.Optimizer)):
            return inner_optimizers(inside)
    return [wrapped] if hasattr(wrapped, "param_groups") else []


def _is_container(optimizer: Any) -> bool:
    """Whether its steps are those of optimizers inside, which tell of them: torchtitan's container
    of several is an optimizer of torch itself, whose hooks are called, too."""
    inner = inner_optimizers(optimizer)
    return bool(inner) and not any(o is optimizer for o in inner) \
        and all(isinstance(o, torch.optim.Optimizer) for o in inner)


def _holds_back(models: Sequence[Any]) -> bool:
    """Whether FSDP2 adds up gradients of further micro-batches where no parameter shows them
    (`set_requires_gradient_sync(False)`). True for an FSDP2 whose insides are not those known."""
    for module in (m for model in models for m in model.modules()):
        if not hasattr(module, "_get_fsdp_state"):
            continue
        state = module._get_fsdp_state()
        groups = getattr(state, "_fsdp_param_groups", None) \
            or [getattr(state, "_fsdp_param_group", None)]
        if any(not getattr(g, "reduce_grads", False) for g in groups if g is not None):
            return True
    return False


def rank_path(path: str, rank: int, world: int) -> str:
    """trace.h5 of one process; trace.rank0003.h5 of several."""
    if world == 1:
        return path
    stem, end = os.path.splitext(path)
    return f"{stem}.rank{rank:04d}{end}"


def _named(models: Sequence[Any]) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters of models, by the names that recordings have."""
    for m, module in enumerate(models):
        for name, p in module.named_parameters():
            name = clean_name(name)
            yield f"{m}.{name}" if len(models) > 1 else name, p


def find_tensors(models: Sequence[Any]) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters that are trained, each once, by the names that recordings have.

    Raises ValueError where there is none."""
    found, seen = [], set()
    for name, p in _named(models):
        if p.requires_grad and p.dtype in DTYPES and id(p) not in seen:
            seen.add(id(p))
            found.append((name, p))
    if not found:
        raise ValueError("the model has no parameter that is trained")
    return found


def _others(models: Sequence[Any]) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters that are not trained, or whose dtype "keyed 1" does not know."""
    for module in models:
        for name, p in module.named_parameters():
            if not p.requires_grad or p.dtype not in DTYPES:
                yield clean_name(name), p


def _frozen(models: Sequence[Any]) -> dict[str, str]:
    """One digest of all weights that are not trained, so that another base model is seen; and the
    names of those without a digest, because their dtype has none or they cannot be read."""
    known, unknown = [], []
    for name, p in _others(models):
        if p.dtype not in DTYPES:
            unknown.append(f"{name} ({str(p.dtype).removeprefix('torch.')})")
        elif not is_sharded(p):
            known.append((name, p))
    sums = home(keyed_sums([p for _, p in known]))      # one wait for all of them
    parts = [digest.close(name, DTYPES[p.dtype], tuple(p.shape), total)
             for (name, p), total in zip(known, sums) if total is not None]
    unread = [name for (name, _), total in zip(known, sums) if total is None]
    if unread:
        warn(UNREAD.format(_some(unread)))
        unknown += [f"{name} (cannot be read)" for name in unread]
    lines = {"frozen": digest.listed("frozen", parts).hex()} if parts else {}
    return {**lines, "not_recorded": ", ".join(unknown)} if unknown else lines


def configuration(models: Sequence[Any], optimizers: Sequence[torch.optim.Optimizer],
                  devices: Iterable[torch.device], config: Mapping[str, Any]) -> dict[str, Any]:
    """What a recording, or a floor, says that its runs were made with, by key."""
    return {**config, **_frozen(models), **facts.optimizers(optimizers),
            **facts.environment(devices)}


def _modules_of(model: Any, optimizer: Any) -> list[torch.nn.Module]:
    """The models to record. Raises TypeError for what is none, and for a model in the place of the
    optimizer."""
    models = list(model) if isinstance(model, (list, tuple)) else [model]
    for m in models:
        if not isinstance(m, torch.nn.Module):
            hint = "; the model is the first argument, the optimizer the second" \
                if hasattr(m, "param_groups") else ""
            raise TypeError(f"model: expected a torch.nn.Module or a list of them, got "
                            f"{type(m).__name__}{hint}")
    if isinstance(optimizer, torch.nn.Module) and not inner_optimizers(optimizer):
        raise TypeError(f"optimizer: expected an optimizer, got {type(optimizer).__name__}, which "
                        "is a model")
    return models


class Recorder:
    """Records a training of `model` by `optimizer` into `path` (HDF5, docs/FOREIGN.md).

        with twinstep.Recorder(model, optimizer, scheduler=scheduler, path="a.h5") as recorder:
            for batch in loader:
                ...                         # forward, backward, clip, step, scheduler, zero_grad
                recorder.update()           # the last line of an update

    or `start()`, `update()` and `close()` in a loop without `with`.

    model       the module whose forward the loop calls (also DDP, FSDP2, compiled), or several
    optimizer   a torch optimizer, a wrapper with `.optimizer`, or a list; None: the first one that
                steps parameters of the model
    scheduler   shows where it stepped even when the learning rate stays; may be left out
    every       gradients' and optimizer states' digests at updates 1, 1 + every, ...; those of the
                weights at every update
    readback    0: off. N: at updates 1, 1 + N, ... the learning rate and the decay are read from a
                copy of the weights (its size in bytes is `readback_bytes`)
    config      what the run was made with, {key: value}, or the arguments of a trainer of
                transformers or TRL, as TwinstepCallback records them; `causes` {key: cause} for
                `compare`
    first       the number of the first update: 1 + those that a training made which goes on from a
                checkpoint, so that its rows have the numbers of the rows before
    forward     False: no hook on the model, so no place of `forward` and no `digest_batch`
    hook        False: as above, and the caller tells of batches by `on_forward(args, kwargs)`

    Raises OSError where the folder of `path` cannot be written to, FileExistsError where `path` or
    its .part exists, ValueError for a model without parameters or a key of `config` or `causes`
    without a printable character, TypeError for another `config`, and for a model or an optimizer
    that is none. Errors after that are warnings."""

    # Of the update at hand: _clear() sets them.
    _batches: int
    _clips: list[float] | None              # limits to which norms were clipped; None: otherwise
    _finished: bool
    _inner: int
    _is_again: bool                         # the optimizer's closure is called once more
    _dropped: bool
    _versions: int
    _logged: Any
    _losses: int                            # of backward passes, in the row as `losses/i`
    _skipped: bool | None
    _stepping: Any                          # the optimizer whose step has begun

    def __init__(self, model: Any, optimizer: Any = None, scheduler: Any = None, *,
                 path: str | os.PathLike[str], every: int = 16, readback: int = 0,
                 config: Any = None, causes: Mapping[str, str] | None = None,
                 forward: bool = True, run: str = "main", quiet: bool = False,
                 hook: bool = True, first: int = 1) -> None:
        if every < 1 or readback < 0:
            raise ValueError("every: expected at least 1, readback: expected at least 0; "
                             f"got {every} and {readback}")
        if first < 1:
            raise ValueError(f"first: expected the number of an update, 1 or later; got {first}")
        dist = torch.distributed
        together = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if together else 0
        self.world = dist.get_world_size() if together else 1
        self.path = rank_path(os.path.abspath(path), self.rank, self.world)
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise OSError(f"{folder}: no folder that can be written to")
        for name in (self.path, self.path + ".part"):
            if os.path.exists(name):
                raise FileExistsError(f"{name} exists: give another path, or remove it")
        self.models = _modules_of(model, optimizer)
        self.tensors = find_tensors(self.models)
        self._weights = [p for _, p in self.tensors]
        self._none = [None] * len(self._weights)    # marks of gradients where there is none
        self.optimizers = inner_optimizers(optimizer)
        self.scheduler, self.every, self.readback, self.run = scheduler, every, readback, run
        self.config, self.causes = facts.arguments(config), dict(causes or {})
        facts.check_keys("causes", self.causes)
        self.forward, self.hook, self.quiet = forward, forward and hook, quiet
        self.step, self.seconds, self.readback_bytes = first - 1, 0.0, 0
        self._channel: Channel | None = None
        self._layout: Layout | None = None
        self._closing = Closing()
        self._coming: deque[Ended] = deque()    # updates whose rows were not sent yet
        self._handles: list[Any] = []
        self._finalizer: Any = None             # of a child of multiprocessing
        self._inside = 0                # the thread that a hook runs in
        self._lock = threading.RLock()
        self._thread: int | None = None     # the one that trains, as far as was seen
        self._ended = self._started = self._due = self._met = False
        self._delivers = False          # waits for rows of updates that have ended, or sends them
        self._told_left_out = self._told_unseen = self._told_eval = False
        self._told_untrained = self._told_dropped = self._told_twice = self._told_no_pass = False
        # sums of weights, of the last row sent; of the start where steps may not be seen
        self._last: Weights | None = None
        groups = {members(p) or () for _, p in self.tensors} - {()}
        self._together = Together(groups) if groups else None
        self._in_eval = False           # called in eval mode since the last backward pass of ours
        self._called = not forward      # since the last backward pass of ours; unknown: always
        self._all = Listed(WEIGHTS, range(len(self.tensors)), [name for name, _ in self.tensors])
        self._lists: dict[Any, Listed] = {}     # of gradients and optimizers' tensors
        self._known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        self._watched = Watched(self.tensors, ((name, p) for name, p in _others(self.models)
                                               if not p.requires_grad))
        self._held = Held(self.models, self.tensors, self._watched.frozen, _named)
        self._begun, self._process = time.perf_counter(), os.getpid()
        self._reader = Reader()
        self._gradient: Callable[[Any], Any] = _GRADIENT    # shows whether a backward pass is ours
        self._told_groups: list[Mapping[str, Any]] = []     # of an engine's last step
        self._clear()

    # ---- the calls of a loop ----

    def start(self) -> "Recorder":
        """Begins to listen. `with` calls it."""
        if self._ended and not self._is_copy():
            warn(f"twinstep: the recorder of {self.path} has ended, so nothing more is recorded by "
                 "it; each training needs a Recorder of its own, with another path")
        elif not self._started:
            self._started, self._begun = True, time.perf_counter()
            self._process = os.getpid()     # which can be one that was forked since the recorder
            self._listen()
        return self

    @_guarded
    def _listen(self) -> None:
        if any(hasattr(p, "main_grad") for p in self._weights):
            self._gradient = _main_gradient
        self._generators = facts.generators(self._devices())
        unknown = [name for name, p in _others(self.models)
                   if p.requires_grad and p.dtype not in DTYPES]
        if unknown:
            warn(f"twinstep: {', '.join(unknown)}: of a dtype that has no digest, so nothing of it "
                 "is recorded")
        if not self._are_known() and self._together is None:
            self._last = self._weights_now()
        # Their sums come home with the first row, where ranks meet, too: no wait of their own.
        self._row.put_listed(Listed(INITIAL, self._all.places, self._all.names), self._weights)
        self._channel = Channel(self.path)
        patches.open_for(self)
        # They return None: a pair would replace the arguments of step. A step that is compiled
        # breaks its graph where torch calls hooks (2.15), so they run as they are, untraced.
        self._handles += [register_optimizer_step_pre_hook(torch.compiler.disable(
            lambda o, a, k: self.on_step(o, [*a[1:], k.get("closure")] != [None] * len(a)))),
                          register_optimizer_step_post_hook(torch.compiler.disable(
                              lambda o, a, k: self.on_stepped(o)))]
        for module in self.models:
            # A hook on a module that compiles its own call would be traced into the graph.
            if self.hook and getattr(module, "_compiled_call_impl", None) is None:
                self._handles.append(module.register_forward_pre_hook(
                    patches.ForwardHook(self), with_kwargs=True))
        atexit.register(self._at_exit)
        # Forked children of multiprocessing end by os._exit, after finalizers and without atexit.
        if multiprocessing.parent_process() is not None:
            self._finalizer = multiprocessing.util.Finalize(None, self._at_exit, exitpriority=0)

    def __enter__(self) -> "Recorder":
        return self.start()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close(complete=kind is None)

    def update(self, *, loss: Any = None, lr_logged: Any = None, tokens: int | None = None,
               epoch: int | None = None, skipped: bool | None = None,
               grad_norm: Any = None) -> None:
        """Ends an update and sends its row. All arguments may be left out: they are for what the
        recorder cannot see. `lr_logged`: what the log prints, a number or one per group."""
        try:
            self._due = True            # first, so that no Ctrl-C loses an update without a word
            if not self._started and not self._ended:
                self._give_up("update() was called before start(); call start(), or put the loop "
                              "into `with recorder:`, before its first forward pass")
            self.finish()
            self.note(loss=loss, lr_logged=lr_logged, tokens=tokens, epoch=epoch, skipped=skipped,
                      grad_norm=grad_norm)
            self.send()
        except BaseException:           # a Ctrl-C
            if self._due:
                self._interrupt()
            raise

    def close(self, complete: bool = True) -> None:
        """Ends the recording. `complete`: the training ran to its end."""
        try:
            if not self._is_copy():
                self._close(complete)
        except Exception as error:      # noqa: B902 nothing of ours may reach the training
            warn(f"twinstep: the recording could not be closed: {type(error).__name__}: {error}")
        except BaseException:           # a Ctrl-C
            if not self._ended:
                self._give_up("interrupted while the recording was closed")
            else:
                self._stop_listening()
                if self._channel is not None:
                    self._channel.let_go()
            raise

    def _close(self, complete: bool) -> None:
        # A row with shards needs the other ranks, who come only where the training ran to its end.
        if complete or self._together is None:
            self.send()
        self._send_coming()
        if self._together is not None:
            self._together.leave()
        if self._ended:
            return
        self._ended = True
        self._stop_listening()
        if complete and self._channel is not None and self._channel.sent == 0:
            warn(f"twinstep: nothing is recorded in {self.path}: " + (
                "the optimizer stepped, but no update was ended; recorder.update() has to be the "
                "last line of an update" if self._stepped else
                "no update was ended, and no step of an optimizer of torch was seen"))
        elif complete and self._stepped:
            warn(f"twinstep: the optimizer stepped behind update {self.step}, the last one that "
                 f"was ended, and that is not in {self.path}; recorder.update() has to be the last "
                 "line of an update")
        if self._channel is not None and self._channel.close(complete) and not self.quiet:
            print(self.cost(), file=sys.stderr)

    def cost(self) -> str:
        """What recording took of the training's own time so far, as a sentence."""
        whole = time.perf_counter() - self._begun
        share = 100 * self.seconds / whole if whole > 0 else 0.0
        memory = f"; copies for read-back took {self.readback_bytes} bytes" if self.readback else ""
        sent = 0 if self._channel is None else self._channel.sent
        return (f"twinstep: {_updates(sent)} recorded in {self.path}; the recorder took "
                f"{self.seconds:.3f} of {whole:.3f} s ({share:.2f} %){memory}")

    # ---- the calls for engines without a torch optimizer (DeepSpeed, Megatron) ----

    @_guarded
    def before_step(self, groups: Iterable[Mapping[str, Any]] = (), *,
                    loss_scale: Any = None) -> None:
        """Says that the engine is about to step, with its parameter groups (`lr` is read).
        `loss_scale`: what losses were multiplied by before they went backward, where the engine
        divides gradients by it as it steps."""
        if loss_scale is not None:
            self._row.put("loss_scale", loss_scale)
            self._scaled = isinstance(loss_scale, torch.Tensor) or loss_scale != 1
        self._fresh_gradients()
        self._in_engine = True
        self._event("optimize")
        self._told_groups = list(groups)
        self._rates = self._read_rates()
        self._read_groups(self._told_groups, 0)

    @_guarded
    def after_step(self, grad_norm: Any = None, skipped: bool | None = None) -> None:
        """Says that it has stepped. `grad_norm`: before clipping, where the engine returns it."""
        self._stepped, self._in_engine = True, False
        if id(None) in self._normed and grad_norm is not None:
            self._row.drop_norm("grad_norm_taken")      # measured before a clip of the engine's own
        if grad_norm is not None:
            self._row.put("grad_norm", grad_norm)
            self._said.add("grad_norm")
            self._told = True
        self._skipped = skipped

    # ---- what listeners tell ----

    @_guarded
    def on_forward(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """The model is called in training: digests of the tensors that it is given. A call inside
        of a backward pass computes anew what a checkpoint of the whole model threw away."""
        if patches.going_back():
            return
        self._called = True
        self._see_thread()
        self._event("forward")
        given = {} if self._is_again else {**{str(i): v for i, v in enumerate(args)}, **kwargs}
        some = [(name, local(value.detach())) for name, value in _leaves(given, "")]
        self._row.put_digests("batch", ((self._batches + i, *leaf) for i, leaf in enumerate(some)))
        self._batches += len(some)

    @_guarded
    def on_eval(self) -> None:
        """The model is called in eval mode, and not without gradients."""
        self._in_eval = True

    def _see_thread(self) -> None:
        """What the model or the optimizer is called in trains. Inside of a backward pass that can
        be a thread of the device (a model that is checkpointed as a whole, a hook that steps)."""
        if not patches.going_back():
            self._thread = get_ident()

    @_guarded
    def before_backward(self) -> Any:
        """A mark of all gradients, to see afterwards whether the backward pass was ours."""
        if self._thread not in (None, get_ident()):
            return ELSEWHERE
        self._stepped_back = False
        return self._mark()

    def _mark(self) -> list[Any]:
        if set(map(type, map(self._gradient, self._weights))) == {type(None)}:
            return self._none           # as behind most calls of zero_grad
        return list(map(_mark_of, map(self._gradient, self._weights)))

    def _moved(self, mark: Sequence[Any]) -> bool:
        """Whether a gradient is another one than `mark` says. Mostly the first one is, and each
        look at a gradient makes an object of Python."""
        return not all(map(eq, mark, map(_mark_of, map(self._gradient, self._weights))))

    @_guarded
    def on_backward(self, tensors: Any, mark: Any) -> None:
        """A backward pass has ended. `mark` was taken before it: it is ours if it moved."""
        if mark is ELSEWHERE:
            return
        moved = mark is None or self._moved(mark) or self._called and _holds_back(self.models)
        if not moved and not self._stepped_back:
            return
        if self._in_eval and not self._called and not self._told_eval:
            self._told_eval = True
            warn(IN_EVAL.format(self.step + 1))
        self._called, self._in_eval = not self.forward, False
        self._event("backward")
        if moved:
            self._fresh = True
            self._spent.clear()
        self._used = self._batches
        some = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        again = self._is_again or self._dropped and self._versions != self._sum_versions()
        if all(isinstance(t, torch.Tensor) and t.numel() == 1 for t in some) and not again:
            if not self._losses:
                self._versions = self._sum_versions()
            elif self._dropped and mark is not None and not any(mark) and not self._told_dropped:
                self._told_dropped = True
                warn(DROPPED.format(self.step + 1))
            for t in some:
                if not self._row.put(f"losses/{self._losses}", t):
                    raise ValueError("backward was called on a DTensor of which each rank holds a "
                                     "part, so no loss can be recorded")
                self._losses += 1

    @_guarded
    def on_unscale(self, scaler: Any, optimizer: Any = None, *_: Any) -> None:
        """A GradScaler is about to divide the gradients by its scale."""
        if self._is_ours(optimizer):
            self._event("unscale")
            self._unscaled = True
            # Of a step that the scaler leaves out in the first update nothing else is seen.
            inner = inner_optimizers(optimizer)[0]
            if self._layout is None and inner not in self.optimizers:
                self.optimizers.append(inner)
            if scaler.is_enabled() and scaler._scale is not None:
                self._row.put("loss_scale", scaler._scale)

    @_guarded
    def on_clip(self, parameters: Sequence[torch.Tensor], max_norm: Any, total: Any) -> None:
        """Gradients are about to be clipped to `max_norm`; their norm is `total`. Without one they
        are clipped otherwise: by value, or by a norm that is not Euclidean."""
        # Mostly they are all weights in the model's order, which is quickly seen.
        has_all = len(parameters) == len(self._weights) and all(map(is_, parameters, self._weights))
        given = self._watched.places.keys() if has_all else set(map(id, parameters))
        has_all = has_all or given >= self._watched.places.keys()
        if not any(grad is not None for grad in map(_GRADIENT, self._weights if has_all else [
                p for p in self._weights if id(p) in given])):
            return
        self._event("clip")
        if not self._fresh or self.optimizers and self._spent.issuperset(map(id, self.optimizers)):
            return                      # clipped after the step: what it sees, no step takes
        # Of several optimizers a gradient that is not there yet may come for another one.
        told = total is not None and (has_all or len(self.optimizers) < 2 and all(
            p.grad is None or id(p) in given for p in self._weights))
        if told and self._clips is not None and self._row.put(f"clips/{len(self._clips)}", total):
            self._clips.append(float(max_norm))
            if not self._row.has("grad_norm") and self._row.put("grad_norm", total):
                self._told = True
        else:
            self._clips = None
        self._take_gradients(range(len(self.tensors)) if len(self.optimizers) < 2 else
                             [i for i, (_, p) in enumerate(self.tensors) if id(p) in given],
                             measure=not self._told)

    @_guarded
    def on_zero(self, of: Any, *_: Any) -> None:
        """A module or an optimizer is about to drop its gradients."""
        ours = self._watched.places
        if self._is_ours(of) if not isinstance(of, torch.nn.Module) else \
                any(id(p) in ours for p in of.parameters()):
            self._look_for_a_step_that_failed()
            self._end_evaluation()
            # A step that waits for its closure drops those of before it (SAM's own class does).
            self._dropped = self._dropped or self._fresh and (not self._spent or self._waits)
            self._event("zero")

    def _sum_versions(self) -> int:
        """A number that grows with every change of a weight in place. Where gradients were dropped
        that no step took, and weights were moved since the first backward pass, what follows is of
        other weights than the update began with (SAM): it adds nothing to the loss."""
        return sum(map(_VERSION, self._weights))

    def _look_for_a_step_that_failed(self, optimizer: Any = None) -> None:
        """A step that an exception ended leaves its batch, loss and gradient in the row, and
        perhaps weights that it moved: what follows would be told with them as one update.
        `optimizer` begins a step of its own, which shows that its last one is over."""
        if self._stepping is not None and (
                self._stepping is optimizer or not _steps_on_the_way(self._stepping)):
            raise Changed(f"a step of the optimizer ({type(self._stepping).__name__}) ended by an "
                          "exception, and the training went on; a recording cannot tell what of "
                          "that step stays")

    def _end_evaluation(self) -> None:
        """Gradients go. Where a step has its closure called more than once (LBFGS), batch, loss and
        gradient of the update are those of the first call, of the weights that the step began with:
        those of the last one are of weights that it has moved. What the model was given since the
        last backward pass belongs to the next call, whose forward comes before its zero_grad."""
        if self._stepping is not None and self._is_fresh(self._stepping):
            self._fresh_gradients(self._stepping)
            self._is_again = True
            for i in range(self._used, self._batches):
                self._row.drop_digest("batch", i)
            self._batches = self._used

    @_guarded
    def on_step(self, optimizer: Any, has_closure: bool = False) -> None:
        """An optimizer is about to step: rates, and gradients if they are this update's. What a
        closure finds may be of some of the micro-batches only, as Lightning has it, so it waits for
        what the closure adds."""
        if not self._is_ours(optimizer) or _is_container(optimizer):
            return
        self._see_thread()
        if self._stepping is optimizer and _steps_on_the_way(optimizer) > 1:
            self._inner += 1            # the class of a user whose step calls that of torch's class
            return
        self._look_for_a_step_that_failed(optimizer)
        if patches.going_back() and not self._stepped_back:
            # Hooks that step as soon as a gradient is there, and drop it: it is this update's.
            self._event("backward")
            self._fresh = self._stepped_back = True
            self._spent.clear()
        if id(optimizer) in self._stepped_once and self._is_fresh(optimizer):
            self._twice = type(optimizer).__name__
        self._stepped_once.add(id(optimizer))
        self._watched.admit(optimizer, None if self._layout is None else self._layout.groups)
        if optimizer not in self.optimizers:
            self.optimizers.append(optimizer)
        self._event("optimize")
        before = self.optimizers[:self.optimizers.index(optimizer)]
        self._read_groups(optimizer.param_groups, sum(len(o.param_groups) for o in before))
        scale = getattr(optimizer, "grad_scale", None)
        found = getattr(optimizer, "found_inf", None)
        if scale is not None:
            self._row.put("loss_scale", scale)
        if found is not None:
            self._row.put("found_inf", found)
        if not self._in_engine:
            self._scaled = scale is not None and not self._unscaled
        self._waits = has_closure and self._is_fresh(optimizer)
        if not has_closure:
            self._fresh_gradients(optimizer)
        self._spent.add(id(optimizer))  # a closure's backward pass takes it out again
        self._stepping = optimizer
        if self.readback and self.step % self.readback == 0:
            self.readback_bytes = self._reader.keep(optimizer)

    @_guarded
    def on_stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        if not self._is_ours(optimizer) or _is_container(optimizer):
            return
        if self._inner:
            self._inner -= 1
            return
        self._stepped, self._stepping, self._is_again = True, None, False
        self._watched.look(optimizer)
        if self._is_fresh(optimizer):   # the step ran a closure: what it did came before the step
            self._places.pop("optimize", None)
            self._event("optimize")
        elif self._waits:               # the closure added nothing
            self._spent.discard(id(optimizer))
        self._fresh_gradients(optimizer)
        self._spent.add(id(optimizer))
        self._waits = False
        self._put_count(optimizer)
        before = self.optimizers[:self.optimizers.index(optimizer)]
        first = sum(len(o.param_groups) for o in before)
        for (column, g), value in self._reader.read(optimizer).items():
            self._row.put(f"{column}/{first + g}", value)

    def finish(self) -> None:
        """Ends what is seen of an update; `note` may still add to its row until `send`."""
        self._due = True
        self._finish()

    @_guarded
    def _finish(self) -> None:
        if self._finished:
            return
        self._event(None)
        if self._twice and not self._told_twice:
            self._told_twice = True
            warn(TWICE.format(self.step + 1, self._twice))
        self._held.look()
        # Behind its steps a training can still move weights (clamp or prune them, take masters
        # over), and what did not step is recorded, too: all is what the update leaves.
        look = self._watched.look_at_weights()
        self._row.put_listed(self._all, self._weights, look)
        if self.step % self.every == 0:
            self._row.put_norm("param_norm", self._weights, look)
            for optimizer in self.optimizers:
                if isinstance(optimizer, torch.optim.Optimizer):
                    self._digest_state(optimizer)
        self._rng = facts.moved(self._generators, facts.generators(self._devices()))
        self._finished = True

    @_guarded
    def note(self, *, lr_logged: Any = None, skipped: bool | None = None, **values: Any) -> None:
        """Adds what a log or a caller says of the update that `finish` ended."""
        if lr_logged is not None:
            if "log" not in self._places:
                self._event("log")
            self._logged = lr_logged
        if skipped is not None:
            self._skipped = skipped
        for name, value in values.items():
            if value is not None:
                self._row.put(name, value)
                self._said.add(name)

    def send(self) -> None:
        """Sends the row of the update that `finish` ended, if there is one."""
        if not self._due or self._is_copy():
            return
        self._due, self._met = False, False
        self._send()
        if self._ended and not self._met and self._together is not None:
            self._together.add_up(self.step, None)      # the other ranks wait for this one

    def _add_up(self, parts: Mapping[Ranks, Parts]) -> Mapping[Ranks, Parts]:
        if self._together is None:
            return {}
        self._met = True
        return self._together.add_up(self.step, parts)

    @_guarded
    def _send(self) -> None:
        self.step += 1
        ended = self._end()
        # Shards are added up at once: a rank that met the others later than they do would have them
        # wait inside of an update of the training, where that needs this rank.
        is_here = ended.row.leave() or self._together is not None
        if self._layout is None:
            self._tell_other_weights()
            self._watched.begin(self.optimizers)
            self._layout = self._make_layout(ended)
        self._coming.append(ended)      # before the wait, in which a Ctrl-C can come
        self._clear()
        self._deliver(0 if is_here else 1)

    def _end(self) -> Ended:
        """The update as it is now; its row does not change any more."""
        logged, width = self._logged, self._width()
        if logged is not None:
            logged = [float(r) for r in logged] if isinstance(logged, (list, tuple)) \
                else [float(logged)] * max(width, 1)
        return Ended(self.step, self._row, self._losses, self._places, frozenset(self._said),
                     self._scaled, tuple(self._clips or ()), logged, self._skipped, self._stepped,
                     self._are_known(), self._unscaled, self._rng, width, len(self.tensors))

    def _are_known(self) -> bool:
        """Whether there are optimizers, and all call torch's hooks when they step."""
        return bool(self.optimizers) and all(
            isinstance(o, torch.optim.Optimizer) for o in self.optimizers)

    def _deliver(self, later: int = 0) -> None:
        """Sends the rows that were not sent yet, but for the last `later`, and waits where one is
        not home. At the end of an update that leaves its own, so the device has work meanwhile. A
        row stays the first one until it is home, so that what ends the wait loses none."""
        self._delivers = True
        while len(self._coming) > later and not self._ended:
            ended = self._coming[0]
            row = ended.close(self._add_up, self._last)     # where it raises, no later row is sent
            self._last = row[WEIGHTS]
            self._tell_left_out(ended.row)
            self._tell_unseen(ended, row)
            assert self._channel is not None and self._layout is not None
            packed = self._layout.pack(row)
            if row["closing"]:
                packed += b"".join(self._closing.pack(*some) for some in row["closing"])
            try:
                if not self._channel.begun:
                    self._layout.initial = row.get(INITIAL, [])
                    self._channel.begin(self._layout.header())
                self._coming.popleft()
                is_sent = self._channel.send(packed)
                if row["closing"]:
                    self._closing.sent()
            except BaseException as error:
                self._ended = True      # a part of it may be in the pipe, where no row can follow
                if not isinstance(error, Exception):
                    self._give_up("interrupted while a row was written")
                raise
            if not is_sent:
                self._ended = True
                self._stop_listening()
        self._delivers = False

    @_guarded
    def _send_coming(self) -> None:
        self._deliver()

    # ---- readings ----

    def _weights_now(self) -> Weights:
        row = Row()
        row.put_digests(WEIGHTS, (
            (i, name, p.detach()) for i, (name, p) in enumerate(self.tensors)))
        found = row.close()
        return weights_of(found["totals"], found["lists"], len(self.tensors))

    def _clear(self) -> None:
        self._row = Row()
        self._places: dict[str, int] = {}
        self._events = self._batches = self._used = 0   # used: batches that went backward, too
        self._losses = 0
        self._said: set[str] = set()
        self._groups = 0
        self._clips = []
        self._logged = self._skipped = None
        self._rng = bytes(32)
        self._fresh = self._stepped = self._finished = False
        self._stepped_back = False
        self._stepping = None
        self._inner = 0                     # steps of its own class inside of it
        self._waits = False                 # its gradients are taken when its closure has run
        self._is_again = False
        self._dropped = False       # gradients went before a step took them
        self._versions = 0          # of the weights at the first backward pass
        self._unscaled = self._scaled = self._in_engine = False
        self._told = False                  # whether the norm of all gradients is the training's
        self._taken: set[int] = set()       # tensors whose gradients were, by their numbers
        self._stepped_once: set[int] = set()    # optimizers that stepped in this update
        self._twice = ""                    # the class of one that stepped again
        self._spent: set[int] = set()       # optimizers that stepped since the last backward pass
        self._normed: set[int] = set()      # optimizers whose gradients are in grad_norm_taken
        self._counted: set[int] = set()     # tensors whose gradients are in it
        self._rates = self._read_rates()

    def _devices(self) -> set[torch.device]:
        return self._watched.devices

    def _is_ours(self, optimizer: Any) -> bool:
        inner = inner_optimizers(optimizer)
        if not inner:
            return False
        optimizer = inner[0]
        if optimizer not in self._known:
            ours = self._watched.places
            self._known[optimizer] = optimizer in self.optimizers \
                or any(id(p) in ours for g in optimizer.param_groups for p in g["params"])
        return self._known[optimizer]

    def _read_rates(self) -> Any:
        """What tells that a scheduler ran: rates, and the count of the scheduler that is known."""
        rates = [g.get("lr") for g in self._told_groups]
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                rates.append(group.get("lr"))
        for i, rate in enumerate(rates):
            if isinstance(rate, torch.Tensor):
                rates[i] = id(rate), rate._version
        scheduler = self.scheduler
        while scheduler is not None:
            for name in COUNTS:
                if hasattr(scheduler, name):
                    return rates, getattr(scheduler, name)
            scheduler = getattr(scheduler, "scheduler", None)
        return rates, None

    def _event(self, phase: str | None) -> None:
        rates = self._read_rates()
        if rates != self._rates and len(rates[0]) == len(self._rates[0]):
            self._place("schedule")
        self._rates = rates
        if phase is not None:
            self._place(phase)

    def _place(self, phase: str) -> None:
        if phase not in self._places:
            self._places[phase] = self._events
            self._events += 1

    def _read_groups(self, groups: Sequence[Mapping[str, Any]], first: int) -> None:
        for g, group in enumerate(groups):
            self._row.put(f"lr_applied/{first + g}", group.get("lr"))
            self._row.put(f"wd_applied/{first + g}", group.get("weight_decay"))
        self._groups = max(self._groups, first + len(groups))

    def _is_fresh(self, optimizer: Any) -> bool:
        return self._fresh and id(optimizer) not in self._spent

    def _fresh_gradients(self, optimizer: Any = None) -> None:
        """Gradients of this update, before clipping, where nobody clips them; and their norm as the
        optimizer takes them. A stale gradient of the last update is never read: of several
        optimizers, each takes those of its own weights, for the others' come later."""
        if not self._is_fresh(optimizer):
            return
        some: Sequence[int] = range(len(self.tensors))
        if len(self.optimizers) > 1 and optimizer is not None:
            some = self._watched.held(optimizer) or some
        # Of an engine's own optimizer they are what its clip has left.
        if (len(self.optimizers) > 1 or "clip" not in self._places) \
                and not (self._in_engine and optimizer is not None):
            self._take_gradients(some, measure=not self._told)
        if self.step % self.every == 0 and id(optimizer) not in self._normed:
            if optimizer is not None and id(None) in self._normed:
                # The engine whose step was told steps an optimizer of torch, behind its own clip.
                self._normed.clear()
                self._row.drop_norm("grad_norm_taken")
                self._counted.clear()
            self._normed.add(id(optimizer))
            # An optimizer can hold a part of the weights that have gradients: a head alone.
            some = (self._watched.held(optimizer) if optimizer is not None else []) or some
            some, grads, listed = self._gradients(some, self._counted)
            self._counted.update(some)
            self._row.put_norm("grad_norm_taken", grads, listed.look(grads))

    def _gradients(self, some: Iterable[int], but: set[int]
                   ) -> tuple[list[int], list[torch.Tensor], Listed]:
        """Those of `some` that have a gradient and are not in `but`, their gradients, and what
        digests them. A list of tensors is known again by the first one."""
        some = [i for i in some if i not in but] if but else list(some)
        found = list(map(_GRADIENT, map(self._weights.__getitem__, some)))
        if type(None) in set(map(type, found)):
            some = [i for i, grad in zip(some, found) if grad is not None]
            found = [grad for grad in found if grad is not None]
        return some, found, self._listed(
            GRADIENTS, some, lambda: [self.tensors[i][0] for i in some])

    def _listed(self, column: str, places: list[Any], names: Callable[[], list[str]]) -> Listed:
        key = column, places[0] if places else None, len(places)
        listed = self._lists.get(key)
        if listed is None or listed.places != places:
            listed = self._lists[key] = Listed(column, places, names())
        return listed

    def _take_gradients(self, some: Iterable[int], measure: bool) -> None:
        """Norm and digests of those gradients of `some` that were not taken yet."""
        digests = self.step % self.every == 0 and not self._scaled
        if not measure and not digests:
            return
        some, grads, listed = self._gradients(some, self._taken)
        self._taken.update(some)
        look = listed.look(grads)
        if measure:
            self._row.put_norm("grad_norm", grads, look)
        if digests and grads:
            self._row.put_listed(listed, grads, look)

    def _digest_state(self, optimizer: Any) -> None:
        for places, tensors in state_lists(self.tensors, optimizer.state):
            self._row.put_listed(self._listed("state", places, lambda: [
                f"{self.tensors[i][0]}/{key}" for i, key in places]), tensors)

    def _put_count(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for p in group["params"]:
                count = optimizer.state.get(p, {}).get("step")
                if count is not None and "optimizer_t" not in self._row.values:
                    self._row.put("optimizer_t", count)
                    return

    # ---- the row and the file ----

    def _tell_left_out(self, row: Row) -> None:
        if row.left_out and not self._told_left_out:
            self._told_left_out = True
            warn(UNREAD.format(_some(list(dict.fromkeys(sum(row.left_out.values(), []))))))

    def _tell_unseen(self, ended: Ended, row: Mapping[str, Any]) -> None:
        if ended.skipped is None and row["skipped"] and not self._told_untrained \
                and not {"forward", "backward", "unscale", "clip", "optimize"} & set(ended.places):
            self._told_untrained = True
            warn(UNTRAINED.format(row["step"]))
        if ended.stepped and ended.skipped is None and "backward" not in ended.places \
                and "loss" not in ended.said and not self._told_no_pass:
            self._told_no_pass = True
            warn(NO_PASS.format(row["step"]))
        if row["skipped"] is None and not self._told_unseen:
            self._told_unseen = True
            warn(f"twinstep: update {row['step']}: no step of an optimizer of torch was seen, so "
                 "neither its learning rate nor whether it was skipped is recorded; tell of steps "
                 "by before_step and after_step")

    def _tell_other_weights(self) -> None:
        """A model that is made, wrapped or loaded again behind its optimizer is not trained, and
        its loss and norms look as if it were."""
        held = [id(p) for o in self.optimizers for g in o.param_groups for p in g["params"]]
        if held and not any(i in self._watched.places for i in held):
            warn("twinstep: the optimizer holds none of the weights of the model that is recorded: "
                 "its steps move other tensors. Make it from the model's own parameters as they "
                 "are now (a model that is made or loaded again has new ones). An engine that "
                 "keeps master weights and copies them back, as DeepSpeed does, holds none either")

    def _width(self) -> int:
        """How many groups there are columns for: those of all optimizers that are known."""
        if self._layout is not None:
            return self._layout.groups
        return max(self._groups, sum(len(o.param_groups) for o in self.optimizers))

    def _has_loss(self, first: Ended) -> bool:
        """Whether there is a column of the loss. A NaN in it behind a backward pass is read as
        the training's own, so where the first pass was called on no scalar, there is no column."""
        if first.losses or "loss" in first.said or "backward" not in first.places:
            return True
        warn(f"twinstep: update {first.step}: backward was called on no scalar, so no loss is "
             "recorded; give it by update(loss=...)")
        return False

    def _make_layout(self, first: Ended) -> Layout:
        group = {id(p): g for g, some in enumerate(
            g["params"] for o in self.optimizers for g in o.param_groups) for p in some}
        tensors = [(name, DTYPES[p.dtype], ",".join(map(str, p.shape)), group.get(id(p), 0))
                   for name, p in self.tensors]
        groups = max(self._width(), 1 + max(t[3] for t in tensors))
        has_loss = self._has_loss(first)
        from .. import __version__
        lines = configuration(self.models, self.optimizers, self._devices(), self.config)
        causes = {**{k: "environment" for k in lines if k.startswith("env.")}, **self.causes}
        return Layout(
            self.path, self.run, {"twinstep_trace": 2, "kind": "foreign",
                                  "writer": "twinstep.Recorder", "writer_version": __version__},
            {"configuration": facts.lines(lines), "causes": facts.lines(causes),
             "digest": digest.NAME, "rank": self.rank, "world": self.world},
            tensors, groups, tuple(c for c in COLUMNS if (self.readback or c.name not in READBACK)
                                   and (c.name not in PAIRS.values() or c.name in first.said)
                                   and (c.name != "loss" or has_loss)))

    # ---- the end ----

    def _stop_listening(self) -> None:
        patches.close_for(self)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._reader = Reader()
        atexit.unregister(self._at_exit)
        if self._finalizer is not None:
            self._finalizer.cancel()

    def _give_up(self, problem: str) -> None:
        try:
            if self._together is None:
                self._deliver()     # the update before the one that something is wrong in
        except Exception:       # noqa: B902 then it is what is wrong
            pass
        finally:                    # a second Ctrl-C leaves the end to the writer
            self._ended, self._due = True, False
            self._stop_listening()
        sent = 0
        if self._channel is not None:
            sent = self._channel.sent
            self._channel.close(False)
        warn(f"twinstep: recording stopped after {_updates(sent)}, and the training goes on: "
             f"{problem}")

    def _interrupt(self) -> None:
        """Ends the recording where a Ctrl-C came while a part of an update was taken: that is no
        row, and the next one would have the rest in it. In a wait for rows nothing is lost."""
        if not self._ended and not self._delivers:
            self._give_up("interrupted while an update was recorded")
        self._delivers = False

    def _is_copy(self) -> bool:
        """Whether this is a process that the training forked: it has our pipe, too, and what it
        does is no update of the training."""
        return os.getpid() != self._process

    def _at_exit(self) -> None:
        self.close(complete=False)
