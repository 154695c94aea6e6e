#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the log-probs that transformers computes with saved models: one per label, row after row.

    real_model.py [FOLDER FILE.jsonl NEW-FOLDER]...

transformers saves each model to the new folder. The exit status is 77 where it is not installed."""
import contextlib
import json
import sys

try:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging
except ImportError:
    sys.exit(77)

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)


def ask(folder, data, saved):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    for what, names in info.items():
        if names:
            sys.exit(f"{folder}: {what}: {names}")
    with open(data, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    with torch.no_grad():
        for row in rows:
            logp = model(torch.tensor([row["input_ids"]])).logits[0].log_softmax(-1)
            for place, label in enumerate(row["labels"][1:]):
                if label != -100:
                    print(f"{logp[place, label].item():.9g}")
    with contextlib.redirect_stdout(sys.stderr):
        model.save_pretrained(saved)


for first in range(1, len(sys.argv), 3):
    ask(*sys.argv[first:first + 3])
