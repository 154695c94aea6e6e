# SPDX-License-Identifier: Apache-2.0
"""What the recorder costs, by options and threads: a table of docs/measurements/record.md.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_cost.py LAYERS HIDDEN VOCABULARY FOLDER [THREADS...]

TWINSTEP_DIGEST names the digest library where the package is not installed (python/digest/keyed.c,
compiled as twinstep_build.py does). A Qwen2 model of random weights, fused AdamW, clipping, one
sequence of 512 tokens an update. The step's own processor time is that of whole updates without a
recorder. The hooks' does not depend on how the gradients came, so it is measured over updates
whose loss is a sum of all weights: their clipping and step are those of a training, and the
forward pass is left out. "norms alone" is no option: the script takes the digests out. The writer's
time is that of its process. Steps and rows take turns ROUNDS times in one process, and what is
printed are medians, so that a change of the machine's other work reaches all of them."""
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

# The recorder's own clock counts processor time here, which other work on the machine moves less.
recorders.time = types.SimpleNamespace(perf_counter=time.process_time)

# name, options, updates (a whole period of `every`, or more where it is short), without digests
ROWS = (("defaults (every=16)", {}, 16, False), ("every=8", {"every": 8}, 8, False),
        ("every=32", {"every": 32}, 32, False),
        ("everything every update (every=1)", {"every": 1}, 4, False),
        ("norms alone", {"every": 1}, 4, True))
ROUNDS = 3


def of_children():
    """Processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hooks(model, update, path, options, updates, bare):
    """Seconds of CPU of one update in the recorder's hooks, and in its writer."""
    recorder = twinstep.Recorder(model, update.optimizer, path=path, quiet=True, **options)
    before = of_children()
    with recorder:
        for k in range(updates + 1):
            if k == 1:              # the first one looks at everything and begins the file
                recorder.seconds = 0.0
                recorder.step = 0
            if bare:
                recorder._row.put_digests = lambda *_: None
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


def main(layers, hidden, vocabulary, folder, *threads):
    """Prints the rows."""
    torch.manual_seed(1)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=4 * hidden,
        num_hidden_layers=layers, num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64))
    update = Update(model, vocabulary)
    print(f"digests by {HOST}, {sum(p.numel() for p in model.parameters())} parameters; seconds of "
          "CPU per update")
    for count in threads or (1, 2):
        torch.set_num_threads(count)
        update.whole()
        steps, costs = [], {row[0]: [] for row in ROWS}
        for turn in range(ROUNDS):
            for number, (name, options, updates, bare) in enumerate(ROWS):
                began = time.process_time()
                update.whole()
                steps.append(time.process_time() - began)
                costs[name].append(hooks(model, update, f"{folder}/{count}-{turn}-{number}.h5",
                                         options, updates, bare))
        with open("/proc/loadavg", encoding="ascii") as file:
            load = file.read().split()[0]
        step = statistics.median(steps)
        for name, found in costs.items():
            own, writer = (statistics.median(some) for some in zip(*found))
            least, most = min(f[0] for f in found), max(f[0] for f in found)
            print(f"| {count} | {name} | {step:.2f} | {own:.4f} | {least:.4f} to {most:.4f} | "
                  f"{own / step:.2%} | {writer:.4f} | {load} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4], *map(int, sys.argv[5:]))
