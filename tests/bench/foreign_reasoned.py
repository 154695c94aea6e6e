#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs of three bugs that need several processes or packed documents, made by their formulas.

    foreign_reasoned.py --out FOLDER [--updates N]

One process of torch computes what two would: each rank has its rows and its random words, its
gradient is of its own mean, and the update takes the mean of both, as DistributedDataParallel does.

    38  each rank divides by its own tokens (Trainer with average_tokens_across_devices off), where
        the healthy twin divides by the tokens of both
    58  packed documents, of which the mask is ignored, so that each sees those before it
    69  both ranks draw the same dropout, where the healthy twin draws two

FOLDER/NAME.jsonl has step, loss (the mean over both ranks, as Trainer gathers it), grad_norm and
learning_rate. Torch, one thread of a CPU."""
import argparse
import json
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, WIDTH, LENGTH, RANKS = 64, 32, 24, 2


class Model(nn.Module):
    """Embedding, one layer of causal attention with a mask of documents, and a projection."""

    def __init__(self, dropout):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.joint = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, VOCABULARY)
        self.dropout = dropout

    def forward(self, tokens, documents):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))[None]
        q, k, v = self.joint(x).chunk(3, -1)
        seen = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        if documents is not None:
            seen = seen & (documents[:, :, None] == documents[:, None, :])
        scores = (q @ k.transpose(1, 2) / math.sqrt(WIDTH)).masked_fill(~seen, float("-inf"))
        x = x + scores.softmax(-1) @ v
        return self.out(functional.dropout(x, self.dropout, self.training))


def batch(generator, documents):
    """Rows of words that follow each other, of 6 to 24 labels; or packed documents of 4 to 8."""
    first = torch.randint(0, VOCABULARY, (4, LENGTH), generator=generator)
    steps = torch.randint(1, 4, (4, LENGTH), generator=generator)
    number = torch.zeros(4, LENGTH, dtype=torch.long)
    for row in range(4):
        begin, which = 0, 0
        while documents and begin < LENGTH:
            length = int(torch.randint(4, 9, (1,), generator=generator))
            number[row, begin:begin + length] = which
            begin, which = begin + length, which + 1
    tokens = (first.gather(1, torch.zeros_like(first)) + number * 17 + steps.cumsum(1)) % VOCABULARY
    labels = tokens.roll(-1, 1)
    labels[:, -1] = -100
    if documents:
        labels[number != number.roll(-1, 1)] = -100
    else:
        for row in range(4):
            labels[row, int(torch.randint(6, LENGTH, (1,), generator=generator)):] = -100
    return tokens, labels, number


def train(path, bug, case, updates):
    torch.manual_seed(1)
    model = Model(0.2 if case == 69 else 0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rows = [torch.Generator().manual_seed(100 + rank) for rank in range(RANKS)]
    with open(path, "w", encoding="utf-8") as out:
        for update in range(1, updates + 1):
            rate = 3e-3 * (1 - (update - 1) / updates)
            for group in optimizer.param_groups:
                group["lr"] = rate
            batches = [batch(generator, case == 58) for generator in rows]
            counts = [int((labels != -100).sum()) for _, labels, _ in batches]
            losses = []
            optimizer.zero_grad()
            for rank, (tokens, labels, number) in enumerate(batches):
                torch.manual_seed(update * RANKS + (0 if case == 69 and bug else rank))
                hides = case == 58 and not bug
                logits = model(tokens, number if hides else None)
                total = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
                own = case == 38 and bug
                loss = total / counts[rank] if own else total * RANKS / sum(counts)
                (loss / RANKS).backward()
                losses.append(loss.detach())
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            out.write(json.dumps({"step": update, "loss": round(float(sum(losses)) / RANKS, 4),
                                  "grad_norm": float(norm), "learning_rate": rate}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--updates", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    for case in (38, 58, 69):
        for bug in (False, True):
            train(options.out / f"{case}-{'bug' if bug else 'healthy'}.jsonl", bug, case, options.updates)


if __name__ == "__main__":
    main()
