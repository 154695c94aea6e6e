#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/pretokenise.py with the real transformers, against TRL: the ids that it writes must be those of
DPOTrainer's and SFTTrainer's own preparation, as pretokenised.json holds them; where TRL is
installed, as it prepares the rows now, too. `twinstep data show` must read the file and show the
same tokens and mask. No network.

77: transformers or tokenizers is not installed. With --write a byte-level BPE tokenizer is trained on
a few sentences, and pretokenised.json is written with what TRL makes of the rows."""
import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pretokenise_rows as rows_here

SPECIAL = ["<|endoftext|>", "<|user|>", "<|assistant|>"]


def train_tokenizer(folder):
    """Trains the tokenizer of the fixture, and returns the content of its two files."""
    from chat_golden import TEMPLATES
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(rows_here.TEXT, vocab_size=320, min_frequency=1, special_tokens=SPECIAL)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, bos_token=SPECIAL[0],
                                        eos_token=SPECIAL[0], pad_token=SPECIAL[0],
                                        additional_special_tokens=SPECIAL[1:])
    tokenizer.chat_template = TEMPLATES["olmo"][0]
    tokenizer.save_pretrained(folder)
    config = json.loads(pathlib.Path(folder, "tokenizer_config.json").read_text(encoding="utf-8"))
    config["chat_template"] = tokenizer.chat_template
    model = json.loads(pathlib.Path(folder, "tokenizer.json").read_text(encoding="utf-8"))
    return {"tokenizer.json": model, "tokenizer_config.json": config}


def bytes_of(token):
    """GPT-2's alphabet: bytes that print are themselves, the others follow U+0100 in order."""
    printing = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in printing]
    table = {chr(b): b for b in printing} | {chr(256 + n): b for n, b in enumerate(rest)}
    return bytes(table[c] for c in token)


def shown_of(data):
    """Spells bytes as tokenizer_show writes them."""
    names = {10: "\\n", 9: "\\t", 13: "\\r", 92: "\\\\"}
    return "".join(names.get(b, chr(b) if 32 <= b < 127 else f"\\x{b:02X}") for b in data)


def check_vocabulary(binary, folder, tokenizer):
    """`data show` must spell every id of the vocabulary."""
    ids = list(range(len(tokenizer)))
    path = pathlib.Path(folder, "ids.jsonl")
    path.write_text(json.dumps({"input_ids": ids, "labels": ids}), encoding="utf-8")
    shown = json.loads(subprocess.run([binary, "data", "show", path, "--json", "--tokenizer", folder],
                                      check=True, stdout=subprocess.PIPE).stdout)[0]["shown"]
    special = set(tokenizer.all_special_tokens)
    want = [token if token in special else shown_of(bytes_of(token))
            for token in tokenizer.convert_ids_to_tokens(ids)]
    assert shown[0]["sequences"][0]["text"] == want
    print(f"{len(ids)} ids spelled alike")


def trl_rows(tokenizer, name, folder):
    """Returns what TRL's trainers make of the rows. {% generation %} marks assistant turns for it."""
    import torch
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
    torch.manual_seed(1)
    config = LlamaConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                         num_attention_heads=1, vocab_size=len(tokenizer))
    model = LlamaForCausalLM(config)
    common = {"output_dir": folder, "report_to": "none", "use_cpu": True, "bf16": False,
              "max_length": None}
    data = Dataset.from_list([rows_here.trl_given(row) for row in rows_here.ROWS[name]])
    if name.startswith("pairs"):
        trainer = DPOTrainer(model, LlamaForCausalLM(config), args=DPOConfig(**common), train_dataset=data,
                             processing_class=tokenizer)
        keys = ("prompt_ids", "chosen_ids", "rejected_ids")
    else:
        if name == "messages":
            old = "{{ '<|assistant|>\n'  + message['content'] + eos_token + '\n' }}"
            last = "{{ '<|assistant|>\n'  + message['content'] + eos_token }}"
            marked = ("{{ '<|assistant|>\n' }}{% generation %}{{ message['content'] + eos_token }}"
                      "{% endgeneration %}")
            template = tokenizer.chat_template
            assert old in template and last in template
            tokenizer.chat_template = template.replace(old, marked + "{{ '\n' }}").replace(
                last, marked)
        trainer = SFTTrainer(model, args=SFTConfig(assistant_only_loss=name == "messages", **common),
                             train_dataset=data, processing_class=tokenizer)
        keys = ("input_ids", "labels")
    return [{key: row[key] for key in keys} for row in trainer.train_dataset]


def check_trl(tokenizer, name, rows, folder):
    for row, want in zip(rows, trl_rows(tokenizer, name, folder), strict=True):
        assert rows_here.like(row, want) == want, (name, row, want)


def write_fixture(folder):
    from transformers import AutoTokenizer
    files = train_tokenizer(folder)
    made_with = {name: importlib.metadata.version(name) for name in ("trl", "transformers", "tokenizers")}
    fixture = {"made_with": made_with, "tokenizer": files, "rows": {}}
    rows_here.write_tokenizer(folder, fixture)
    for name in rows_here.ROWS:
        fixture["rows"][name] = trl_rows(AutoTokenizer.from_pretrained(folder), name, folder)
    text = json.dumps(fixture, indent=1, ensure_ascii=True)
    rows_here.FIXTURE.write_text(text + "\n", encoding="utf-8")


def check_all(binary, folder):
    from transformers import AutoTokenizer
    fixture = rows_here.read_fixture()
    rows_here.write_tokenizer(folder, fixture)
    check_vocabulary(binary, folder, AutoTokenizer.from_pretrained(folder))
    for name, given in rows_here.ROWS.items():
        text = rows_here.pretokenise(folder, given)
        rows = [json.loads(line) for line in text.splitlines()]
        rows_here.check_fixture(fixture, name, rows)
        rows_here.check_shown(binary, folder, name, text, rows)
        try:
            check_trl(AutoTokenizer.from_pretrained(folder), name, rows, folder)
            print(f"{name}: {len(rows)} rows as TRL's, and as shown")
        except ImportError as error:
            print(f"{name}: {len(rows)} rows as recorded, and as shown; without TRL: {error}")
    rows_here.check_refused(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--binary", help="the twinstep whose `data show` reads the rows")
    what.add_argument("--write", action="store_true", help="write pretokenised.json; needs TRL")
    options = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "PYTHONDONTWRITEBYTECODE": "1",
                   "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            import transformers  # noqa: F401
        except ImportError as error:
            print(f"skipped: {error}")
            return 77
        if options.write:
            write_fixture(folder)
        else:
            check_all(options.binary, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
