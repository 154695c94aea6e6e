#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/pretokenise.py against TRL: a byte-level BPE tokenizer is trained on a few sentences, and the
ids that the script writes must be those of DPOTrainer's and SFTTrainer's own preparation; then
`twinstep data show` must read the file and show the same tokens and mask. No network.
77: transformers or tokenizers is not installed; without TRL the comparison with it is left out."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parents[2] / "docs"
SCRIPT = DOCS / "pretokenise.py"
TEXT = ["the quick brown fox jumps over the lazy dog", "a lazy dog sleeps; the fox does not.",
        "What is two and two? Four, of course: two and two is four."]
ASK = [{"role": "user", "content": "What is two and two?"}]
ROWS = {
    "pairs": [
        {"prompt": "the quick brown", "chosen": " fox jumps", "rejected": "ish dog"},
        {"prompt": "What is", "chosen": " two<|endoftext|>", "rejected": "n't four"}],
    "pairs-chat": [
        {"prompt": ASK, "chosen": [{"role": "assistant", "content": "Four."}],
         "rejected": [{"role": "assistant", "content": " Five?"}]}],
    "completions": [{"prompt": "a lazy", "completion": " dog"}, {"prompt": "a la", "completion": "zy"}],
    "completions-chat": [{"prompt": ASK, "completion": [{"role": "assistant", "content": "Four."}]}],
    "texts": [{"text": TEXT[0]}, {"text": TEXT[1] + "<|endoftext|>"}],
    "messages": [{"messages": ASK + [{"role": "assistant", "content": "Four."}] + ASK +
                  [{"role": "assistant", "content": "Four!"}]}],
}


def build_tokenizer(folder):
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast
    sys.path.insert(0, str(HERE))
    from chat_golden import TEMPLATES
    bpe = ByteLevelBPETokenizer()
    special = ["<|endoftext|>", "<|user|>", "<|assistant|>"]
    bpe.train_from_iterator(TEXT, vocab_size=320, min_frequency=1, special_tokens=special)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, bos_token=special[0],
                                        eos_token=special[0], pad_token=special[0],
                                        additional_special_tokens=special[1:])
    tokenizer.chat_template = TEMPLATES["olmo"][0]
    tokenizer.save_pretrained(folder)
    return tokenizer


def script_for(name):
    """Returns the script; for rows without a prompt with the loop that stands in DATA.md."""
    script = SCRIPT.read_text(encoding="utf-8")
    if name not in ("messages", "texts"):
        return script
    loop = (DOCS / "DATA.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert loop.startswith("for row in ") and script.count("\nfor row in ") == 1
    return script.split("\nfor row in ")[0] + "\n" + loop


def pretokenise(folder, name, rows):
    given = "\n".join(json.dumps(row) + "\n" for row in rows)  # empty lines between them
    done = subprocess.run([sys.executable, "-c", script_for(name), folder], text=True,
                          stdout=subprocess.PIPE, input=given, check=True)
    return done.stdout


def check_length():
    """The script must be as long as it is said to be: ten lines, without imports and explanations."""
    code = SCRIPT.read_text(encoding="utf-8").split('"""')[2].splitlines()
    count = sum(bool(line.strip()) and not line.startswith(("import", "from")) for line in code)
    assert count <= 11, count
    print(f"{count} lines")


def check_refused(folder, row, needle):
    done = subprocess.run([sys.executable, SCRIPT, folder], text=True, stderr=subprocess.PIPE,
                          input=json.dumps(row), check=False)
    assert done.returncode == 1 and needle in done.stderr, done.stderr


def labels_of(row, side):
    """Returns the ids and the mask of one sequence."""
    if "input_ids" in row:
        return row["input_ids"], [int(label != -100) for label in row["labels"]]
    answer = row[side + "_ids"]
    return row["prompt_ids"] + answer, [0] * len(row["prompt_ids"]) + [1] * len(answer)


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


def check_shown(binary, folder, name, text, rows):
    path = pathlib.Path(folder, name + ".jsonl")
    path.write_text(text, encoding="utf-8")
    shown = json.loads(subprocess.run([binary, "data", "show", path, "--json"], check=True,
                                      stdout=subprocess.PIPE).stdout)[0]["shown"]
    for row, sample in zip(rows, shown, strict=True):
        for sequence in sample["sequences"]:
            side = sequence["side"] if "chosen_ids" in row else "completion"
            ids, mask = labels_of(row, side)
            assert sequence["tokens"] == ids, (name, sequence, ids)
            assert sequence["mask"] == [0, *mask[1:]], (name, sequence, mask)  # nothing before the first


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
    data = Dataset.from_list(ROWS[name])
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
        if "labels" in want and "labels" not in row:
            ids, mask = labels_of(row, "completion")
            row = {"input_ids": ids, "labels": [i if m else -100 for i, m in zip(ids, mask)]}
        assert row == want, (name, row, want)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    binary = parser.parse_args().binary
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1",
                   "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            tokenizer = build_tokenizer(folder)
        except ImportError as error:
            print(f"skipped: {error}")
            return 77
        check_vocabulary(binary, folder, tokenizer)
        for name, given in ROWS.items():
            text = pretokenise(folder, name, given)
            rows = [json.loads(line) for line in text.splitlines()]
            check_shown(binary, folder, name, text, rows)
            try:
                check_trl(tokenizer, name, rows, folder)
                print(f"{name}: {len(rows)} rows as TRL's, and as shown")
            except ImportError as error:
                print(f"{name}: {len(rows)} rows as shown; without TRL: {error}")
        check_length()
        check_refused(folder, {"body": "x"}, "KeyError: 'prompt'")
        tokenizer.eos_token = None
        tokenizer.save_pretrained(folder)
        check_refused(folder, ROWS["pairs"][0], "the tokenizer has no eos_token")
    return 0


if __name__ == "__main__":
    sys.exit(main())
