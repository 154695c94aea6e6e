# SPDX-License-Identifier: Apache-2.0
"""Measures DPO updates in PyTorch, on the model and the rows that tests/bench/gpu.sh gives
twinstep, as the tokens per second to compare with. Prints the first six fields of bench_train
--one.

    torch_train.py train NAME UPDATES DATA.jsonl LAYERS HIDDEN HEADS MLP VOCAB PAIRS [--compile]
    torch_train.py peak

The model is a llama (norms before attention and MLP, rotary, SwiGLU), with the head tied to the
embedding. bf16 is autocast over f32 parameters and f32 AdamW slots (twinstep: bf16 with f32
masters). Chosen and rejected go through one forward; the reference's log-probs are computed before
the first update, which is twinstep's default, too. What makes PyTorch fast here is used: flash
attention, fused AdamW, logits of response tokens only (all prompts have one length, so that is a
slice), parameters made on the device, and UPDATES updates in a row without the host waiting in
between (the median of three such blocks counts). --compile compiles the block, once for all layers,
and the head with the loss, which a compiler fuses. It does not compile the whole model, whose
layers would be unrolled and compiled for minutes, and uses neither max-autotune nor CUDA graphs: at
8192 tokens an update the products are the library's, and the launches are hidden behind them.
`peak` prints the TFLOP/s of the largest square bf16 product here."""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def wait():
    if CUDA:
        torch.cuda.synchronize()


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class Block(nn.Module):
    def __init__(self, hidden, heads, mlp):
        super().__init__()
        self.heads = heads
        self.a, self.b = Norm(hidden), Norm(hidden)
        for name in ("q", "k", "v", "o"):
            setattr(self, name, nn.Linear(hidden, hidden, bias=False))
        self.gate, self.up = (nn.Linear(hidden, mlp, bias=False) for _ in range(2))
        self.down = nn.Linear(mlp, hidden, bias=False)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, cosine, sine):
        def turn(t):
            first, second = t.chunk(2, -1)
            return (t * cosine + torch.cat((-second, first), -1) * sine).to(t.dtype)

        n = self.a(x)
        q, k, v = turn(self.split(self.q(n))), turn(self.split(self.k(n))), self.split(self.v(n))
        kept = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(kept.transpose(1, 2).reshape(x.shape))
        n = self.b(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Head(nn.Module):
    """Computes the sum of log-probs of the targets of each row."""

    def __init__(self, hidden, weight):
        super().__init__()
        self.norm = Norm(hidden)
        self.weight = weight

    def forward(self, x, target):
        logits = F.linear(self.norm(x), self.weight)
        loss = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), reduction="none")
        return -loss.view(target.shape).sum(-1)


class Model(nn.Module):
    def __init__(self, layers, hidden, heads, mlp, vocab, length):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, mlp) for _ in range(layers))
        self.head = Head(hidden, self.embedding.weight)
        nn.init.normal_(self.embedding.weight, std=0.02)
        width = hidden // heads
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def compile_parts(self):
        for part in (*self.blocks, self.head):
            part.compile(dynamic=False)

    def forward(self, ids, target):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return self.head(x[:, -1 - target.shape[1]:-1], target)


def batches(path, pairs):
    """Yields [ids, target] of `pairs` rows after another, chosen ones first. All rows have one
    length, and so have all prompts."""
    rows = [json.loads(line) for line in open(path)]
    out = []
    for at in range(0, len(rows) - pairs + 1, pairs):
        some = rows[at:at + pairs]
        ids = torch.tensor([r["prompt_ids"] + r[side] for side in ("chosen_ids", "rejected_ids")
                            for r in some])
        target = ids[:, len(some[0]["prompt_ids"]):].contiguous()
        out.append([t.to(DEVICE) for t in (ids, target)])
    return out


BLOCKS = 3


def train(name, updates, data, sizes, pairs, compiled):
    torch.manual_seed(17)
    rows = batches(data, pairs)
    with torch.device(DEVICE):
        model = Model(*sizes, rows[0][0].shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-7, fused=CUDA)
    autocast = torch.autocast(DEVICE, torch.bfloat16)
    with torch.no_grad(), autocast:  # not compiled: without gradients it would be another program
        reference = [model(*batch) for batch in rows]
    if compiled:
        model.compile_parts()

    def update(i):
        batch, known = rows[i % len(rows)], reference[i % len(rows)]
        with autocast:
            gain = model(*batch) - known
        loss = -F.logsigmoid(0.1 * (gain[:pairs] - gain[pairs:])).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for i in range(3):  # what is compiled or chosen at first sight
        update(i)
    seconds = [timed(lambda: [update(i) for i in range(updates)]) / updates for _ in range(BLOCKS)]
    parameters = sum(p.numel() for p in model.parameters())
    fields = (name, parameters, rows[0][0].numel(), f"{statistics.median(seconds):.6g}",
              f"{min(seconds):.6g}", rows[0][1].numel())
    print(*fields, sep="\t")


def timed(work):
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


def peak():
    best = 0.0
    for n in (8192, 12288) if CUDA else (256,):
        a, b = (torch.randn(n, n, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        out = torch.empty_like(a)
        timed(lambda: torch.mm(a, b, out=out))
        seconds = [timed(lambda: [torch.mm(a, b, out=out) for _ in range(10)]) for _ in range(7)]
        best = max(best, 2e-11 * n ** 3 / statistics.median(seconds))
    print(f"peak\t{best:.6g}")


if __name__ == "__main__":
    if sys.argv[1] == "peak":
        peak()
    else:
        train(sys.argv[2], int(sys.argv[3]), sys.argv[4], [int(a) for a in sys.argv[5:10]],
              int(sys.argv[10]), "--compile" in sys.argv)
