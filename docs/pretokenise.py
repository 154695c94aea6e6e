#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of text or messages to rows of token ids, as TRL 1.16 tokenizes them (docs/DATA.md).

    pretokenise.py MODEL < rows.jsonl > ids.jsonl

MODEL is a folder with tokenizer.json (or a name that transformers knows); its own chat template is
applied. Rows: prompt, chosen, rejected; or prompt, completion."""
import json
import sys
from os.path import commonprefix

from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])


def encode(prompt, answer=None):
    if isinstance(prompt, list):  # messages: the template writes every special token
        return tokenizer.apply_chat_template(prompt + (answer or []), return_dict=False,
                                             add_generation_prompt=answer is None)
    eos = tokenizer.eos_token or sys.exit("the tokenizer has no eos_token, which ends a text: set it")
    return tokenizer(prompt if answer is None else prompt + answer.removesuffix(eos) + eos)["input_ids"]


for row in map(json.loads, filter(str.strip, sys.stdin)):
    both = {name: encode(row["prompt"], row[name]) for name in ("completion", "chosen", "rejected") if name in row}
    start = commonprefix([encode(row["prompt"]), *both.values()])  # ids may merge where the two meet
    print(json.dumps({"prompt_ids": start} | {name + "_ids": ids[len(start):] for name, ids in both.items()}))
