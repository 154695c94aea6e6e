#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes LR columns of PyTorch's own schedulers, with what `lr fit` should say of each.

    torch_schedulers.py FILE

FILE gets one line for each column: the contract and the stages that made it, or "-" where the
numbers are none that somebody types or the scheduler is none that the search knows; then the LRs of
the updates, as repr prints them. A loop that prints its LR before scheduler.step() is the contract
hf, one that prints it behind, hf-4.50. Needs torch (2.15.0 made the committed file)."""
import sys
import warnings

import torch
from torch.optim import lr_scheduler as S


def linear(start, total):
    return (f"linear:{total}:start_factor={start!r}:total_iters={total}",
            lambda o: S.LinearLR(o, start, 1.0, total), total)


def cosine(t_max, eta=0.0):
    return (f"cosine:t_max={t_max}" + (f":min_lr={eta!r}" if eta else ""),
            lambda o: S.CosineAnnealingLR(o, t_max, eta))


def exponential(gamma):
    return f"exponential:gamma={gamma!r}", lambda o: S.ExponentialLR(o, gamma)


def polynomial(total, power):
    text = f"{power:g}"
    return (f"polynomial:total_iters={total}:power={text}",
            lambda o: S.PolynomialLR(o, total, power))


def line(end, total):
    return (f"linear:start_factor=1:end_factor={end!r}:total_iters={total}",
            lambda o: S.LinearLR(o, 1.0, end, total))


# peak, warm-up or None, decay, updates, found
CASES = [
    (4e-4, linear(0.01, 6), cosine(54), 60, True),
    (3e-4, linear(0.05, 10), cosine(90, 3e-5), 100, True),
    (2e-5, linear(1 / 3, 5), cosine(35, 1e-7), 40, True),
    (1e-3, linear(0.002, 20), cosine(200, 1e-6), 120, True),
    (6e-4, linear(1e-8, 15), cosine(85, 6e-5), 100, True),
    (5e-5, linear(0.25, 4), exponential(0.97), 50, True),
    (1e-3, linear(0.1, 5), exponential(0.9995), 60, True),
    (2e-4, linear(0.5, 8), polynomial(72, 2.0), 80, True),
    (1e-4, linear(0.02, 5), polynomial(45, 1.0), 50, True),
    (1e-4, linear(0.05, 10), line(0.1, 70), 80, True),
    (4e-4, None, exponential(0.95), 40, True),
    (1e-2, None, exponential(0.999), 80, True),
    (4e-4, None, polynomial(60, 0.9), 60, True),
    (1e-3, None, polynomial(100, 1.5), 50, True),
    (3.125e-5, linear(0.1, 5), cosine(45), 50, True),
    # the numbers are none that somebody types, so nothing is claimed
    (4.1234567e-4, linear(0.01, 6), cosine(54), 60, False),
    (4e-4, linear(0.0123456, 6), cosine(54), 60, False),
    (4e-4, linear(0.01, 6), cosine(54, 1.234e-6), 60, False),
    (4e-4, None, exponential(0.951234567), 40, False),
    (3.1257e-5, linear(0.1, 5), cosine(45), 50, False),
    (4e-4, linear(0.01, 6), cosine(54.3), 60, False),
    (4e-4, None, polynomial(60.3, 0.9), 60, False),
]


def others(optimizer):
    """Schedulers that the search does not know."""
    yield S.CyclicLR(optimizer(4e-4), 1e-5, 4e-4, step_size_up=10, cycle_momentum=False), 60
    yield S.LambdaLR(optimizer(4e-4), lambda k: 1 / (1 + 0.01 * k ** 1.3)), 60
    o = optimizer(4e-4)
    yield S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 5), S.ConstantLR(o, 1.0, 1),
                             S.ExponentialLR(o, 0.9)], [5, 20]), 50


def column(scheduler, updates, behind):
    rates = []
    for _ in range(updates):
        if not behind:
            rates.append(scheduler.get_last_lr()[0])
        scheduler.optimizer.step()
        scheduler.step()
        if behind:
            rates.append(scheduler.get_last_lr()[0])
    return rates


def optimizer(lr):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def main():
    warnings.simplefilter("ignore")
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for peak, warmup, decay, updates, found in CASES:
            for behind in (False, True):
                if behind and warmup is None:
                    continue  # the peak is in no row
                o = optimizer(peak)
                if warmup is None:
                    name, scheduler = decay[0], decay[1](o)
                else:
                    name = f"{warmup[0]},{decay[0]}"
                    scheduler = S.SequentialLR(o, [warmup[1](o), decay[1](o)], [warmup[2]])
                contract = "hf-4.50" if behind else "hf"
                print(contract if found else "-", name if found else "-",
                      *map(repr, column(scheduler, updates, behind)), file=out)
        for scheduler, updates in others(optimizer):
            print("-", "-", *map(repr, column(scheduler, updates, False)), file=out)


if __name__ == "__main__":
    main()
