#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the checkpoints of tests/golden/restarted: what an optimizer counts is not what updates are.

    restart_counts.py FOLDER

A linear layer of 8 by 8 trains with AdamW and a line of the LR, in a plain loop of torch. whole-4.pt is
its checkpoint after update 4. lost-5.pt is the one after update 5 of a run that began from whole-4.pt
with the scheduler and without the optimizer. twice-4.pt and twice-5.pt are of a run whose loop calls
optimizer.step() twice in each update. tests/cli/test_cli_readback.c reads them."""

import os
import sys

import torch


def update(model, optimizer, scheduler, number, steps):
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(number))
    (model(x) - x.flip(1)).square().mean().backward()
    for _ in range(steps):
        optimizer.step()
    scheduler.step()
    optimizer.zero_grad()


def make():
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / 10)


def save(folder, name, number, parts):
    names = ("model", "optimizer", "scheduler")
    states = {key: part.state_dict() for key, part in zip(names, parts)}
    torch.save({**states, "step": number}, os.path.join(folder, f"{name}-{number}.pt"))


def main():
    folder = sys.argv[1]
    for name, steps in (("whole", 1), ("twice", 2)):
        parts = make()
        for number in range(1, 6):
            update(*parts, number, steps)
            if number == 4 or (name == "twice" and number == 5):
                save(folder, name, number, parts)
    kept = torch.load(os.path.join(folder, "whole-4.pt"))
    model, optimizer, scheduler = parts = make()
    model.load_state_dict(kept["model"])
    scheduler.load_state_dict(kept["scheduler"])
    for group, lr in zip(optimizer.param_groups, scheduler.get_last_lr()):
        group["lr"] = lr
    update(*parts, 5, 1)
    save(folder, "lost", 5, parts)


if __name__ == "__main__":
    main()
