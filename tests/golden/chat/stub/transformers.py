# SPDX-License-Identifier: Apache-2.0
"""What docs/pretokenise.py takes from transformers, for tests where that is not installed: a byte-level
BPE tokenizer of ASCII text, read from a folder's tokenizer.json, with OLMo-2's chat template in
Python. pretokenise_forms.py holds it against ids that the real library made."""
import json
import pathlib
import re

# GPT-2's pieces, of ASCII.
PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


class Tokenizer:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        if not (folder / "tokenizer.json").is_file():
            raise OSError(f"{folder} has no tokenizer.json")
        model = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        self.ids = model["model"]["vocab"]
        pairs = (m.split(" ") if isinstance(m, str) else m for m in model["model"]["merges"])
        self.rank = {tuple(pair): i for i, pair in enumerate(pairs)}
        self.added = {token["content"]: token["id"] for token in model["added_tokens"]}
        self.eos_token = config.get("eos_token")
        self.chat_template = config.get("chat_template")

    def piece(self, text):
        parts = [{" ": "\u0120", "\n": "\u010a"}.get(c, c) for c in text]
        while len(parts) > 1:
            best = min(range(len(parts) - 1),
                       key=lambda i: self.rank.get((parts[i], parts[i + 1]), len(self.rank)))
            if (parts[best], parts[best + 1]) not in self.rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        return [self.ids[part] for part in parts]

    def __call__(self, text):
        ids = []
        for part in re.split("(" + "|".join(map(re.escape, self.added)) + ")", text):
            if part in self.added:
                ids.append(self.added[part])
            else:
                ids += [i for piece in PIECES.findall(part) for i in self.piece(piece)]
        return {"input_ids": ids}

    def apply_chat_template(self, messages, return_dict, add_generation_prompt):
        assert not return_dict
        text = "<|endoftext|>"
        for i, message in enumerate(messages):
            text += "<|" + message["role"] + "|>\n" + message["content"]
            answer = message["role"] == "assistant"
            text += "<|endoftext|>" if answer else ""
            text += "\n" if not answer or i + 1 < len(messages) else ""
        return self(text + ("<|assistant|>\n" if add_generation_prompt else ""))["input_ids"]


class AutoTokenizer:
    @staticmethod
    def from_pretrained(folder):
        return Tokenizer(folder)
