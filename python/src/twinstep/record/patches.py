# SPDX-License-Identifier: Apache-2.0
"""Who is told when a training clips, unscales, sets gradients to zero and goes backward.

No object of the user is wrapped. While a recorder is open, some functions of torch are replaced by
ones that tell the open recorders and then do what they did, with the same arguments and the same
result; they are put back when the last recorder closes. Inside a compiled graph nobody is told."""
from __future__ import annotations

import functools
import threading
from contextlib import nullcontext
from typing import Any, Callable

import torch
from torch.nn.utils import clip_grad

if not hasattr(torch.nn.utils, "clip_grads_with_norm_"):
    raise ImportError(f"recording needs torch 2.6 or later, and this is {torch.__version__}")

_listeners: list[Any] = []
_replaced: list[tuple[Any, str, Any]] = []


class _Passes(threading.local):
    """How many backward passes of a thread listeners were told of."""
    count = 0


_passes = _Passes()


class _Norms(threading.local):
    """Of which kind the norm is that a thread took last: 2 is the Euclidean one."""
    kind: Any = 2.0


_norms = _Norms()


def _quiet() -> bool:
    return not _listeners or torch.compiler.is_compiling()


def _total_norm(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _norm(tensors: Any, norm_type: Any = 2.0, *args: Any, **kw: Any) -> Any:
        if not torch.compiler.is_compiling():
            _norms.kind = norm_type
        return original(tensors, norm_type, *args, **kw)
    return _norm


def _clip_by_norm(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _clip(parameters: Any, max_norm: Any, total_norm: Any, *args: Any, **kw: Any) -> Any:
        if _quiet():
            return original(parameters, max_norm, total_norm, *args, **kw)
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        # The largest element, say, is another number than what recordings call the norm.
        is_norm, _norms.kind = float(_norms.kind) == 2.0, 2.0
        for listener in _listeners:
            listener.on_clip(parameters, max_norm, total_norm if is_norm else None)
        return original(parameters, max_norm, total_norm, *args, **kw)
    return _clip


def _clip_by_value(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _clip(parameters: Any, *args: Any, **kw: Any) -> Any:
        if _quiet():
            return original(parameters, *args, **kw)
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        for listener in _listeners:
            listener.on_clip(parameters, None, None)
        return original(parameters, *args, **kw)
    return _clip


def going_back() -> bool:
    """Whether a backward pass is on its way in this thread, as torch's engine itself has it: a mark
    of our own would stay where a Ctrl-C comes before it is taken back."""
    return bool(torch._C._current_graph_task_id() != -1)


def _backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _told(tensors: Any, *args: Any, **kw: Any) -> Any:
        if _quiet() or going_back():    # a checkpoint goes backward inside of a backward pass
            return original(tensors, *args, **kw)
        told, before = [(x, x.before_backward()) for x in _listeners], _passes.count
        result = original(tensors, *args, **kw)
        if _passes.count == before:     # else torch has called itself, under a mode of functions
            _passes.count += 1          # (`set_default_device`), and that call has told of the pass
            for listener, mark in told:
                listener.on_backward(tensors, mark)
        return result
    return _told


def _told_before(original: Callable[..., Any], event: str) -> Callable[..., Any]:
    """A method after whose call nothing is to be seen: its listeners are told before it."""
    @functools.wraps(original)
    def _method(self: Any, *args: Any, **kw: Any) -> Any:
        if not _quiet():
            for listener in _listeners:
                getattr(listener, event)(self, *args)
        return original(self, *args, **kw)
    return _method


class ForwardHook:
    """The hook of a module, which tells `listener` of its calls in training, and of those in eval
    mode of which gradients may be taken. A model is copied and saved with its hooks (a moving
    average, a target network, `torch.save(model)`). Of this one the copy has a function of Python's
    own that does nothing: calls of the copy are no training that is recorded, and what was saved is
    read where there is no twinstep."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    def __call__(self, module: Any, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if module.training:
            self._listener.on_forward(args, kwargs)
        elif torch.is_grad_enabled():
            self._listener.on_eval()

    def __reduce__(self) -> Any:
        return getattr, (nullcontext(), "__exit__")


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    _replaced.append((owner, name, original))
    setattr(owner, name, make(original))


def open_for(listener: Any) -> None:
    """Tells `listener` from now on. It has on_clip, before_backward, on_backward, on_unscale and
    on_zero, which never raise."""
    _listeners.append(listener)
    if _replaced:
        return
    # Scripts hold `clip_grad_norm_` itself; what it calls is looked up in its module each time.
    _norms.kind = 2.0
    _replace(clip_grad, "_get_total_norm", _total_norm)
    measured = clip_grad._get_total_norm
    _replace(torch.nn.utils, "get_total_norm", lambda _: measured)
    _replace(clip_grad, "_clip_grads_with_norm_", _clip_by_norm)
    made = clip_grad._clip_grads_with_norm_
    _replace(torch.nn.utils, "clip_grads_with_norm_", lambda _: made)
    _replace(torch.nn.utils, "clip_grad_value_", _clip_by_value)
    _replace(torch.autograd, "backward", _backward)
    _replace(torch.amp.GradScaler, "unscale_", lambda f: _told_before(f, "on_unscale"))
    _replace(torch.optim.Optimizer, "zero_grad", lambda f: _told_before(f, "on_zero"))
    _replace(torch.nn.Module, "zero_grad", lambda f: _told_before(f, "on_zero"))


def close_for(listener: Any) -> None:
    """Tells `listener` nothing more; the functions are put back when nobody listens."""
    if listener in _listeners:
        _listeners.remove(listener)
    if _listeners:
        return
    for owner, name, original in reversed(_replaced):
        setattr(owner, name, original)
    _replaced.clear()
