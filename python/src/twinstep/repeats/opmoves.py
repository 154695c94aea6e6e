# SPDX-License-Identifier: Apache-2.0
"""Which ops of torch make other outputs of equal inputs when an update is repeated.

An update runs under a dispatch mode that digests what every op is given and what it returns. The
code is the same in all repeats, so op i of one is op i of another. Only the first op of a chain is
named: what merely passes on another input is none. An output that holds no number is none either:
memory that the op left as it was, and a number of a generator or an index whose difference no later
op shows."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..record.keyed_torch import DTYPES, keyed_sum
from .noise_report import MovedOp
from .training import Training

# Their outputs hold whatever was in the memory: what they return is no result.
RAW = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",
       "resize_")
# What attention calls the state of a generator, which it neither writes nor reads without dropout.
STATES = ("philox_seed", "philox_offset", "rng_state", "unused")
KEPT = 20       # ops whose outputs are kept in further repeats, to see how far they are apart


@dataclass
class Call:
    """One op: digests of the tensors that it was given, by place, and of what it wrote."""
    op: str
    module: str
    phase: str
    given: tuple[Any, ...]
    made: tuple[Any, ...]
    kinds: tuple[str, ...]      # of what it made: "kept" (written in place), "real", "whole"

    @property
    def shape(self) -> tuple[str, str, int]:
        """What must agree for two repeats to have called the same op."""
        return self.op, self.phase, len(self.made)


def _digest(t: torch.Tensor) -> Any:
    if t.dtype not in DTYPES or t.layout is not torch.strided or t.is_meta:
        return f"{t.dtype} {t.layout} {tuple(t.shape)}"
    try:
        return int(keyed_sum(t)), str(t.dtype), tuple(t.shape)
    except ValueError:      # its memory was freed, or its class does not do what a sum needs
        return f"{t.dtype} {type(t).__name__} {tuple(t.shape)}"


def _memory(t: torch.Tensor) -> int:
    return t.untyped_storage().data_ptr() if t.layout is torch.strided else 0


class Ops(TorchDispatchMode):
    """Lists the ops of an update. `keep`: places whose outputs are kept, as copies on the host."""

    def __init__(self, training: Training, keep: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.kept: dict[int, list[torch.Tensor]] = {}
        self.keep = keep
        self.raw: set[int] = set()              # memory that nothing was written to yet
        self.stack: list[str] = []
        self.by_node: dict[int, str] = {}       # number of an autograd node: module that called it
        self.names = {id(module): name for model in training.models
                      for name, module in model.named_modules()}

    def __enter__(self) -> Any:
        hooks = torch.nn.modules.module
        self.handles = [hooks.register_module_forward_pre_hook(self._enter_module),
                        hooks.register_module_forward_hook(self._leave_module, always_call=True)]
        return super().__enter__()

    def __exit__(self, *of: Any) -> None:
        for handle in self.handles:
            handle.remove()
        super().__exit__(*of)

    def _enter_module(self, module: Any, args: Any) -> None:
        self.stack.append(self.names.get(id(module), type(module).__name__))

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        if self.stack:
            self.stack.pop()

    def _where(self) -> tuple[str, str]:
        """Module and phase. The derivative of an op has the number of its node."""
        node = torch._C._current_autograd_node()
        if node is not None:
            return self.by_node.get(node._sequence_nr(), ""), "backward"
        if self.stack:
            self.by_node[torch._C._autograd._get_sequence_nr() - 1] = self.stack[-1]
            return self.stack[-1], "forward"
        return "", "step"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        module, phase = self._where()
        written = list(_written(func, args, kwargs))
        named = _named(func, args, kwargs)
        parts = _parts(named, named.items())
        parts.update((id(t), None) for t in written if _memory(t) in self.raw)
        leaves = tree_leaves((args, kwargs))
        given = tuple(_plain(t) if not isinstance(t, torch.Tensor)
                      else _digest_of_part(t, parts) for t in leaves)
        out = func(*args, **kwargs)
        parts = _parts(named, zip((r.name for r in func._schema.returns),
                                  out if isinstance(out, (tuple, list)) else (out,)))
        results = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        if func.overloadpacket._qualified_op_name.split("::")[-1] in RAW:
            self.raw.update(map(_memory, results))
            return out
        # Memory of an output that is no view was written by this op, whoever had it before.
        seen = {_memory(t) for t in leaves if isinstance(t, torch.Tensor)}
        self.raw -= {_memory(t) for t in results} - seen | set(map(_memory, written))
        results += [t for t in written if all(t is not r for r in results)]
        here = {id(t) for t in written}
        if len(self.calls) in self.keep:
            found = [parts.get(id(t), t) for t in results]
            self.kept[len(self.calls)] = [
                t.detach().to("cpu", copy=True) for t in found if t is not None]
        self.calls.append(Call(
            func.name(), module, phase, given, tuple(_digest_of_part(t, parts) for t in results),
            tuple("kept" if id(t) in here else "real" if t.is_floating_point() or t.is_complex()
                  else "whole" for t in results)))
        return out


def _digest_of_part(t: torch.Tensor, parts: Mapping[int, torch.Tensor | None]) -> Any:
    part = parts.get(id(t), t)
    return "not written" if part is None else _digest(part)


def _named(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by their names, also those that have their default."""
    return {a.name: args[i] if i < len(args) else kwargs.get(a.name, a.default_value)
            for i, a in enumerate(func._schema.arguments)}


def _parts(given: Mapping[str, Any], some: Iterable[tuple[str, Any]]
           ) -> dict[int, torch.Tensor | None]:
    """Of the tensors `some`, by name, of an attention that is `given` so, by id: what of them it
    writes and reads, None for nothing. Its logsumexp can be longer than the rows of the query, so
    that its memory is aligned; the rest is whatever was there."""
    found: dict[int, torch.Tensor | None] = {}
    query = given.get("query")
    for name, t in some:
        if not isinstance(t, torch.Tensor) or "dropout_p" not in given \
                or not isinstance(query, torch.Tensor):
            continue
        if name in STATES and given["dropout_p"] == 0:
            found[id(t)] = None
        elif name in ("logsumexp", "log_sumexp") and t.dim() == 3 and query.dim() == 4:
            # (batch, heads, rows), of a query (batch, heads, rows, size) or (batch, rows, heads,
            # size); both are as long as t where it is not padded.
            rows = query.shape[2] if query.shape[1] == t.shape[1] else query.shape[1]
            found[id(t)] = t[..., :rows] if rows < t.shape[2] else t
    return found


def _plain(value: Any) -> Any:
    """What is compared of an argument that is no tensor."""
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """The tensors that the op's schema says it writes to."""
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            yield from (t for t in tree_leaves(value) if isinstance(t, torch.Tensor))


def _shown(a: Sequence[Call], b: Sequence[Call]) -> list[list[bool]]:
    """Of each op's outputs, whether they differ, and a later op shows it by another output of its
    own, or nobody reads them and they are reals or stay behind in a tensor that was there before.

    Raises ValueError where the repeats called other ops."""
    for i, (x, y) in enumerate(zip(a, b)):
        if x.shape != y.shape or len(x.given) != len(y.given):
            raise ValueError(f"op {i} is {x.op} in one repeat and {y.op} in another")
    if len(a) != len(b):
        raise ValueError(f"one repeat called {len(a)} ops and another {len(b)}")
    shown: list[list[bool]] = []
    read: dict[tuple[Any, Any], bool] = {}  # by a tensor's two contents: whether a later op shows
    for x, y in zip(reversed(a), reversed(b)):
        here = [p != q and (kind == "kept" or read.get((p, q), kind == "real"))
                for p, q, kind in zip(x.made, y.made, x.kinds)]
        shown.append(here)
        for pair in zip(x.given, y.given):
            if pair[0] != pair[1]:          # an op without an output took a number home
                read[pair] = read.get(pair, False) or any(here) or not x.made
    return shown[::-1]


def moves(a: Sequence[Call], b: Sequence[Call]) -> dict[int, str]:
    """The places of ops that made another output of equal inputs: "outside", an input differs that
    no op made; "hidden", a real differs, and what reads it makes the same of it; else "". Raises
    ValueError where the repeats called other ops."""
    found: dict[int, str] = {}
    made: set[Any] = set()
    for i, (x, y, shown) in enumerate(zip(a, b, _shown(a, b))):
        strange = [p for p, q in zip(x.given, y.given) if p != q]
        if any(isinstance(p, tuple) and p not in made for p in strange):
            found[i] = "outside"
        elif not strange and any(shown):
            found[i] = ""
        elif not strange and any(p != q and kind == "real"
                                 for p, q, kind in zip(x.made, y.made, x.kinds)):
            found[i] = "hidden"
        made.update(x.made)
    return found


def _apart(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> float:
    far = 0.0
    for x, y in zip(a, b):
        if not x.is_complex() and x.shape == y.shape:
            one, other = x.to(torch.float64), y.to(torch.float64)
            size = float(torch.linalg.vector_norm(one))
            if size > 0:
                far = max(far, float(torch.linalg.vector_norm(one - other)) / size)
    return far


def find(build: Any, states: Any, repeats: int) -> tuple[MovedOp, ...]:
    """The ops that move between fresh instances at update 1, in the order of the update.

    Raises ValueError where the repeats call other ops, and what an update raises."""
    def listed(keep: frozenset[int] = frozenset()) -> Ops:
        """The ops of update 1 of a fresh instance."""
        training = Training(build, states)
        with Ops(training, keep) as ops:
            training.advance(0)
        return ops
    base = listed()
    count: dict[int, int] = {}
    outside: set[int] = set()
    shown: set[int] = set()
    for _ in range(repeats):
        for place, how in moves(base.calls, listed().calls).items():
            count[place] = count.get(place, 0) + 1
            if how != "hidden":
                shown.add(place)
            if how == "outside":
                outside.add(place)
    keep = frozenset(sorted(set(count) - outside)[:KEPT])
    apart: dict[int, float] = {}
    if keep:
        first = listed(keep)
        for _ in range(repeats):
            other = listed(keep)
            for i in moves(first.calls, other.calls):
                if i in keep:
                    apart[i] = max(apart.get(i, 0.0), _apart(first.kept[i], other.kept[i]))
    return tuple(MovedOp(base.calls[i].op, base.calls[i].module, base.calls[i].phase, i, count[i],
                         repeats, apart.get(i), i in outside, i not in shown)
                 for i in sorted(count))
