# SPDX-License-Identifier: Apache-2.0
"""A device that is none, for test_record_torch.py: its tensors keep their elements in plain tensors
of the host, torch takes them for tensors of another device ("meta"), and each time that a program
waits for that device, to read a number or to copy to the host, is counted.

A mode (`Waits`) has every op done on the plain tensors, so a training is one with the bits of the
host, and gradients, optimizers and hooks are torch's own. `Copies` stands for what a CUDA device has
besides: copies to the host that go on while the program does, and events behind them."""
import unittest.mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_map

aten = torch.ops.aten
DEVICE = torch.device("meta")
NOT_THERE = 0x7FF8DEADBEEF0000      # what memory of the host holds before a copy has come to it


class Far(torch.Tensor):
    """A tensor of that device; `inner` has its elements."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype,
            device=DEVICE, requires_grad=False)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        raise AssertionError(f"{op}: done outside of the mode that counts")

    def __repr__(self):
        return f"Far({self.inner!r})"


def _is_far(value):
    return isinstance(value, Far)


def far(module):
    """Moves the parameters of a module there."""
    for owner in module.modules():
        for name, p in list(owner._parameters.items()):
            owner._parameters[name] = torch.nn.Parameter(Far(p.detach().clone()), p.requires_grad)
    return module


class Waits(TorchDispatchMode):
    """Does the ops of tensors of that device, and counts in `of` what waits for it, by its op."""

    def __init__(self):
        super().__init__()
        self.of = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        given = []
        tree_map(lambda v: given.append(v) if isinstance(v, torch.Tensor) else None,
                 (args, kwargs))
        is_made = kwargs.get("device") is not None and torch.device(kwargs["device"]) == DEVICE
        if not is_made and not any(map(_is_far, given)):
            return op(*args, **kwargs)
        inner_args, inner_kwargs = tree_map(lambda v: v.inner if _is_far(v) else v, (args, kwargs))
        if is_made:
            inner_kwargs["device"] = torch.device("cpu")
        is_home = op is aten._to_copy.default and kwargs.get("device") is not None and not is_made
        if op is aten.copy_.default:
            is_home = not _is_far(args[0])
        if is_home or op in (aten._local_scalar_dense.default, aten.nonzero.default,
                             aten.equal.default):
            self.of.append(str(op))
        made = op(*inner_args, **inner_kwargs)
        if is_home:
            return args[0] if op is aten.copy_.default else made
        outside = tree_map(lambda v: Far(v) if isinstance(v, torch.Tensor) else v, made)
        return return_and_correct_aliasing(op, args, kwargs, outside)


class Copies:
    """In place of `tensors.depart` while this is entered: copies of that device's tensors that hold
    nothing of them until their event is waited for, and then what the tensors held at the start.
    `waited` has, for each wait, `now` when the copy began and `now` when it was waited for."""

    def __init__(self):
        from twinstep.record import tensors
        self.now, self.waited, self.is_broken = 0, [], False
        self.interrupted = 0        # so many waits are still to be ended by a Ctrl-C
        self.real = tensors.depart
        self.patch = unittest.mock.patch.object(tensors, "depart", self.depart)

    def __enter__(self):
        self.patch.start()
        return self

    def __exit__(self, *_):
        self.patch.stop()

    def depart(self, whole):
        """A copy and its event."""
        if not _is_far(whole):
            return self.real(whole)
        there = torch.full(whole.shape, NOT_THERE, dtype=whole.dtype)
        return there, _Event(self, there, whole.inner.clone())


class _Event:
    def __init__(self, copies, there, values):
        self.copies, self.there, self.values, self.begun = copies, there, values, copies.now

    def synchronize(self):
        """Waits for the copy."""
        if self.copies.is_broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if self.copies.interrupted:
            self.copies.interrupted -= 1
            raise KeyboardInterrupt
        self.copies.waited.append((self.begun, self.copies.now))
        self.there.copy_(self.values)
