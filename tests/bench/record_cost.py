# SPDX-License-Identifier: Apache-2.0
"""What the recorder costs, by options and threads: a table of docs/measurements/record.md.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_cost.py LAYERS HIDDEN VOCABULARY FOLDER
        [--threads N] [--rounds N] [--only WORD]

TWINSTEP_DIGEST names the digest library where the package is not installed (python/digest/keyed.c,
compiled as twinstep_build.py does). A Qwen2 model of random weights, fused AdamW, clipping, one
sequence of 512 tokens an update. The step's own processor time is that of whole updates without a
recorder. The hooks' does not depend on how the gradients came, so it is measured over updates
whose loss is a sum of all weights: their clipping and step are those of a training, and the
forward pass is left out. "norms alone" is no option: the script takes the digests out. The writer's
time is that of its process. Steps and rows take turns in one process, --rounds times, and a share is
of the two steps around it, so that a change of the machine's other work reaches both. What is printed
are medians over the rounds, and the least and the most; --only has the rows that begin so."""
import argparse
import resource
import statistics
import sys
import time
import types

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

import twinstep
from twinstep.record import recorder as recorders
from twinstep.record.keyed_torch import HOST


def clock():
    """Processor time, which other work on the machine moves less, and wall time as imaginary part."""
    return complex(time.process_time(), time.perf_counter())


recorders.time = types.SimpleNamespace(perf_counter=clock)

# name, options, updates (a whole period of `every`, or more where it is short), without digests
ROWS = (("defaults (every=16)", {}, 16, False), ("every=8", {"every": 8}, 8, False),
        ("every=32", {"every": 32}, 32, False),
        ("everything every update (every=1)", {"every": 1}, 4, False),
        ("norms alone", {"every": 1}, 4, True))


def of_children():
    """Processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hooks(model, update, path, options, updates, bare):
    """Seconds of one update in the recorder's hooks (CPU, wall as imaginary part), and of CPU in
    its writer."""
    recorder = twinstep.Recorder(model, update.optimizer, path=path, quiet=True, **options)
    before = of_children()
    with recorder:
        for k in range(updates + 1):
            if k == 1:              # the first one looks at everything and begins the file
                recorder.seconds = 0.0
                recorder.step = 0
            if bare:
                recorder._row.put_digests = recorder._row.put_listed = lambda *_: None
            update.without_forward()
            recorder.update()
        used = recorder.seconds
    return used / updates, (of_children() - before) / (updates + 1)


class Update:
    """A model, its optimizer, and two kinds of updates."""

    def __init__(self, model, vocabulary):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        self.rows = torch.randint(0, vocabulary, (1, 512))

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def whole(self):
        self.model(input_ids=self.rows, labels=self.rows).loss.backward()
        self.step()

    def without_forward(self):
        sum(p.sum() for p in self.model.parameters()).backward()
        self.step()


def timed(work):
    """What `work` takes, by `clock`."""
    began = clock()
    work()
    return clock() - began


def main():
    """Prints the rows."""
    parser = argparse.ArgumentParser()
    for name in ("layers", "hidden", "vocabulary"):
        parser.add_argument(name, type=int)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(given.threads)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=given.vocabulary, hidden_size=given.hidden, intermediate_size=4 * given.hidden,
        num_hidden_layers=given.layers, num_attention_heads=given.hidden // 64,
        num_key_value_heads=given.hidden // 64))
    update = Update(model, given.vocabulary)
    print(f"digests by {HOST}, {sum(p.numel() for p in model.parameters())} parameters, "
          f"{given.threads} threads; seconds per update")
    rows = [row for row in ROWS if row[0].startswith(given.only)]
    costs = {row[0]: [] for row in rows}
    update.whole()
    before = timed(update.whole)
    for turn in range(given.rounds):
        for number, (name, options, updates, bare) in enumerate(rows):
            own, writer = hooks(model, update, f"{given.folder}/{turn}-{number}.h5", options,
                                updates, bare)
            after = timed(update.whole)
            costs[name].append((own, writer, (before + after) / 2))
            before = after
    with open("/proc/loadavg", encoding="ascii") as file:
        load = file.read().split()[0]
    for name, found in costs.items():
        step = statistics.median(s.real for _, _, s in found)
        own = sorted(o.real for o, _, _ in found)
        writer = statistics.median(w for _, w, _ in found)
        shares = [sorted(of(o) / of(s) for o, _, s in found)
                  for of in (lambda t: t.real, lambda t: t.imag)]
        print(f"| {name} | {step:.2f} | {statistics.median(own):.4f} | {own[0]:.4f} to "
              f"{own[-1]:.4f} | " + "".join(
                  f"{statistics.median(s):.2%} | {s[0]:.2%} to {s[-1]:.2%} | " for s in shares)
              + f"{writer:.4f} | {load} |", flush=True)


if __name__ == "__main__":
    main()
