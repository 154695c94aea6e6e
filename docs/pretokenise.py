#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of text or messages to rows of token ids, as TRL 1.16 tokenizes them (docs/DATA.md).

    pretokenise.py MODEL < rows.jsonl > ids.jsonl

MODEL is a folder with tokenizer.json (or a name that transformers knows); its own chat template is
applied. Rows: prompt, chosen, rejected; or prompt, completion; or messages (SFT: assistant turns);
or text (SFT: all of it)."""
import json
import sys

from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])


def encode(prompt, answer):
    """Ids of the prompt alone, and of both."""
    if isinstance(prompt, list):  # the template writes every special token
        texts = (tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True),
                 tokenizer.apply_chat_template(prompt + answer, tokenize=False))
        return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    eos = tokenizer.eos_token or sys.exit("the tokenizer has no eos_token, which ends a text: set it")
    answer = answer.removesuffix(eos) + eos
    return [tokenizer(text)["input_ids"] for text in (prompt, prompt + answer)]


def common(a, b):
    """How many ids both begin with: tokens may merge where prompt and answer meet."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


for line in filter(str.strip, sys.stdin):
    row = json.loads(line)
    if "messages" in row:
        turns = [i for i, m in enumerate(row["messages"]) if m["role"] == "assistant" and i > 0]
        ids = encode(row["messages"], [])[1]
        labels = [-100] * len(ids)
        for i in turns:
            before, upto = encode(row["messages"][:i], row["messages"][i:i + 1])
            first, end = common(before, ids), common(upto, ids)
            labels[first:end] = ids[first:end]
        out = {"input_ids": ids, "labels": labels}
    elif "text" in row:
        ids = encode("", row["text"])[1]
        out = {"input_ids": ids, "labels": ids}
    elif "prompt" not in row:
        sys.exit("expected keys prompt, messages or text, got " + ", ".join(row))
    else:
        names = ["completion"] if "completion" in row else ["chosen", "rejected"]
        pairs = [encode(row["prompt"], row[name]) for name in names]
        cut = min(common(before, both) for before, both in pairs)
        out = {"prompt_ids": pairs[0][1][:cut]}
        out |= {name + "_ids": both[cut:] for name, (_, both) in zip(names, pairs)}
    print(json.dumps(out))
