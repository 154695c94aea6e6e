# SPDX-License-Identifier: Apache-2.0
"""What the recorder costs with its defaults: blocks of 8 updates without and with it, in turn.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_cost.py LAYERS HIDDEN VOCABULARY BLOCKS FOLDER [THREADS]

TWINSTEP_DIGEST names the digest library where the package is not installed (python/digest/keyed.c,
compiled as twinstep_build.py does). One process, one thread of torch, one sequence of 512 tokens an update; a Qwen2 model of random weights, fused
AdamW, clipping. Prints a line after each pair of blocks."""
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


def seconds(update, recorder):
    """CPU and wall time of 8 updates."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(8):
        update()
        if recorder:
            recorder.update()
    return time.process_time() - cpu, time.perf_counter() - wall


def main(layers, hidden, vocabulary, blocks, folder, threads=1):
    """Alternates and prints the ratios of all blocks so far."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=4 * hidden,
        num_hidden_layers=layers, num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rows = torch.randint(0, vocabulary, (1, 512))

    def update():
        model(input_ids=rows, labels=rows).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    update()
    without, with_it, own = [0.0, 0.0], [0.0, 0.0], 0.0
    count = sum(p.numel() for p in model.parameters())
    for block in range(blocks):
        without = [a + b for a, b in zip(without, seconds(update, None))]
        recorder = twinstep.Recorder(model, optimizer, path=f"{folder}/{block}.h5", quiet=True)
        with recorder:
            with_it = [a + b for a, b in zip(with_it, seconds(update, recorder))]
        own += recorder.seconds
        print(f"digests by {HOST}, {count} parameters, {8 * block + 8} updates of each kind: CPU "
              f"{with_it[0] / without[0] - 1:+.2%}, wall {with_it[1] / without[1] - 1:+.2%}, "
              f"hooks {own / with_it[0]:.2%} of {with_it[0] / (8 * block + 8):.2f} s of CPU", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]), sys.argv[5], *map(int, sys.argv[6:7]))
