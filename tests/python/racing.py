# SPDX-License-Identifier: Apache-2.0
"""Trainings with a linear layer whose weight gradient is added by threads that race (racing.c), for
test_noise_torch.py, which compiles it. They are functions of a module, so that another process can
import them; TWINSTEP_RACING names the library."""
import ctypes
import itertools
import multiprocessing
import os
import random

import numpy as np
import torch

_library = ctypes.CDLL(os.environ["TWINSTEP_RACING"])
_library.weight_gradient.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t] * 3 + [ctypes.c_int]


def call(dy, x, dw, ordered):
    dy, x = dy.contiguous(), x.contiguous()
    status = _library.weight_gradient(dy.data_ptr(), x.data_ptr(), dw.data_ptr(), dy.shape[0],
                                      dy.shape[1], x.shape[1], int(ordered))
    if status:
        raise RuntimeError("no threads")


@torch.library.custom_op("racing::weight_gradient", mutates_args=())
def weight_gradient(dy: torch.Tensor, x: torch.Tensor, ordered: bool) -> torch.Tensor:
    dw = torch.empty(dy.shape[1], x.shape[1])
    call(dy, x, dw, ordered)
    return dw


class Product(torch.autograd.Function):
    """x W^T, whose weight gradient is the op above, or (`hidden`) memory that no op of torch writes."""

    @staticmethod
    def forward(ctx, x, w, ordered, hidden):
        ctx.save_for_backward(x, w)
        ctx.ordered, ctx.hidden = ordered, hidden
        return x @ w.t()

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        if ctx.hidden:
            dw = torch.empty_like(w)
            call(dy, x, dw, ctx.ordered)
            dw = dw * 1.0
        else:
            dw = weight_gradient(dy, x, ctx.ordered)
        return dy @ w, dw, None, None


class Linear(torch.nn.Linear):
    """A linear layer with that product."""

    def __init__(self, size, out, ordered, hidden=False):
        super().__init__(size, out)
        self.ordered, self.hidden = ordered, hidden

    def forward(self, x):
        return Product.apply(x, self.weight, self.ordered, self.hidden) + self.bias


def training(ordered=False, hidden=False, lr=1e-2):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Dropout(0.1),
                                Linear(16, 16, ordered, hidden), torch.nn.Tanh(),
                                torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / 20)
    rows = torch.randn(10, 256, 12)

    def step(k):
        x = rows[k]
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        model.norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, schedule, step


def clean():
    return training(ordered=True)


def other_rate():
    return training(ordered=True, lr=2e-2)


def hidden():
    return training(hidden=True)


def per_process():
    """Another process takes another rate; nothing else moves."""
    child = multiprocessing.parent_process() is not None
    return training(ordered=True, lr=1e-2 * (1 + 1e-6 * child))


def forgetful():
    """The step keeps an iterator that nobody puts back."""
    model, optimizer, _, _ = training(ordered=True)
    rows = iter(torch.randn(100, 8, 12))

    def step():
        loss = model(next(rows)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, step


def ending():
    """Its iterator ends with the updates of one run."""
    model, optimizer, _, _ = training(ordered=True)
    rows = iter(torch.randn(2, 8, 12))

    def step():
        loss = model(next(rows)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, step


_count = itertools.count()


def leaking():
    """A batch is picked by a counter of the module, which every instance goes on with."""
    model, optimizer, _, _ = training(ordered=True)
    rows = torch.randn(100, 8, 12)

    def step(k):
        loss = model(rows[next(_count)]).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, step


def unseeded():
    """Weights that nobody seeds, and batches by Python's generator."""
    model = torch.nn.Linear(12, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    rows = torch.ones(8, 12)

    def step(k):
        loss = (random.random() * model(rows)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, step


def unseeded_batches():
    """The weights are seeded; numpy's generator picks the batch of update 2 and is not."""
    *things, inner = clean()

    def step(k):
        return inner(int(np.random.randint(10)) if k else 0)
    return (*things, step)


def broken():
    """From update 2 on nothing is a number."""
    model, optimizer, _, _ = training(ordered=True)
    rows = torch.ones(8, 12)

    def step(k):
        loss = model(rows).square().mean() * (float("nan") if k else 1.0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, step


def unlike():
    """Every instance begins elsewhere."""
    model, *others = clean()
    with torch.no_grad():
        model[0].bias += int.from_bytes(os.urandom(2), "little")
    return (model, *others)


def adversaries():
    """Two optimizers, each with a backward pass of its own that reaches the other one's weights,
    too. `taken` of the first model holds the gradients that each takes."""
    torch.manual_seed(3)
    first, last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    steps = [torch.optim.SGD(net.parameters(), lr=1e-2) for net in (last, first)]
    rows = torch.randn(2, 8, 4)

    def step(k):
        found = {}
        for optimizer, net, sign in zip(steps, (last, first), (1, -1)):
            optimizer.zero_grad()
            loss = sign * last(first(rows[k]).tanh()).square().mean()
            loss.backward()
            if sign > 0:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1e3)
            found.update((p, p.grad.clone()) for p in net.parameters())
            optimizer.step()
        first.taken = {f"{m}.{name}": found[p] for m, net in enumerate((first, last))
                       for name, p in net.named_parameters()}
        return loss
    return first, last, *steps, step


def refused():
    """torch has no deterministic way for an op of its step."""
    *things, inner = clean()

    def step(k):
        torch.zeros(4).put_(torch.tensor([0, 1]), torch.ones(2))
        return inner(k)
    return (*things, step)


def lossless():
    model, optimizer, _, _ = clean()
    return model, optimizer, lambda: None


_modes = []


def elsewhere():
    """Weights and rows are on the device that far.py simulates. Its mode is entered in each process
    that calls this, and left by `back`."""
    from far import Far, Waits, far
    if not _modes:
        _modes.append(Waits())
        _modes[0].__enter__()
    torch.manual_seed(3)
    rows, model = [Far(torch.randn(4, 8)) for _ in range(2)], far(torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)

    def step(k):
        loss = model(rows[k]).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, step


def back():
    """Leaves the mode of `elsewhere`."""
    while _modes:
        _modes.pop().__exit__(None, None, None)


# An op that returns, besides its output, what attention of torch does: rows of a logsumexp that are
# there for alignment, and the state of a generator, which hold what was in the memory before; and an
# op of other names, whose whole number is a mark (`reads`: which the output depends on, or not).
_left = itertools.count(1)
_moves = [0.0]      # by how much the derivative of attention differs between two calls
_define = torch.library.Library("racing", "FRAGMENT")
_define.define("attention(Tensor query, float dropout_p=0.) -> "
               "(Tensor output, Tensor logsumexp, Tensor philox_seed)")
_define.define("attention_backward(Tensor grad_out, Tensor query, Tensor logsumexp, "
               "Tensor philox_seed, float dropout_p) -> Tensor")
_define.define("marked(Tensor x, bool reads) -> (Tensor, Tensor)")
_define.define("marked_backward(Tensor dy, Tensor mark) -> Tensor")


def _attention(query, dropout_p=0.0):
    total = query.logsumexp(-1)
    logsumexp = torch.nn.functional.pad(total, (0, 3), value=float(next(_left)))
    return query * total.unsqueeze(-1), logsumexp, torch.tensor(next(_left))


def _attention_backward(grad_out, query, logsumexp, philox_seed, dropout_p):
    total = logsumexp[..., :query.shape[2]].unsqueeze(-1)
    return next(_left) * _moves[0] + grad_out * total + (grad_out * query).sum(-1, keepdim=True) * (query - total).exp()


def _marked(x, reads):
    mark = torch.tensor(next(_left))
    return x + mark * 1e-6 * reads, mark


for _name, _do in (("attention", _attention), ("attention_backward", _attention_backward),
                   ("marked", _marked), ("marked_backward", lambda dy, mark: dy.clone())):
    _define.impl(_name, _do, "CPU")


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query):
        out, *rest = torch.ops.racing.attention(query)
        ctx.save_for_backward(query, *rest)
        return out

    @staticmethod
    def backward(ctx, dy):
        return torch.ops.racing.attention_backward(dy, *ctx.saved_tensors, 0.0)


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, reads):
        y, mark = torch.ops.racing.marked(x, reads)
        ctx.save_for_backward(mark)
        return y

    @staticmethod
    def backward(ctx, dy):
        return torch.ops.racing.marked_backward(dy, *ctx.saved_tensors), None


def bookkeeping(reads=False, moves=0.0):
    torch.manual_seed(7)
    _moves[0] = moves
    model = torch.nn.Sequential(torch.nn.Linear(12, 12), torch.nn.Linear(12, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rows = torch.randn(10, 2, 1, 5, 12)

    def step(k):
        x = Marked.apply(Attention.apply(model[0](rows[k])), reads)
        loss = model[1](x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return model, optimizer, step


def marks_are_read():
    return bookkeeping(reads=True)


def the_derivative_moves():
    return bookkeeping(moves=1e-6)
