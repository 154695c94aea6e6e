# SPDX-License-Identifier: Apache-2.0
"""Makes tiny/, a Llama of some 40,000 random weights with its tokenizer, and pairs.jsonl, 80 rows of
preferences, because nothing is fetched here. You have a model and data of your own."""
import json
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

draw = random.Random(1)
ADJECTIVES = "red old quick lazy blue small tall kind odd loud".split()
NOUNS = "fox dog cat bird tree house boat road lamp book".split()
VERBS = "sees likes finds takes meets hears draws keeps".split()


def text(count):
    """So many sentences."""
    return " ".join(f"the {draw.choice(ADJECTIVES)} {draw.choice(NOUNS)} {draw.choice(VERBS)} "
                    f"the {draw.choice(NOUNS)} ." for _ in range(count))


rows = [{"prompt": text(1), "chosen": " " + text(1), "rejected": " " + text(2)} for _ in range(80)]
with open("pairs.jsonl", "w", encoding="utf-8") as file:
    file.writelines(json.dumps(row) + "\n" for row in rows)
pieces = Tokenizer(models.BPE(unk_token="<unk>"))
pieces.pre_tokenizer = pre_tokenizers.ByteLevel()
pieces.train_from_iterator((row[key] for row in rows for key in row), trainers.BpeTrainer(
    vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, unk_token="<unk>", bos_token="<s>",
                                    eos_token="</s>", pad_token="</s>")
tokenizer.save_pretrained("tiny")
torch.manual_seed(3)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1,
    eos_token_id=2, pad_token_id=2))
model.save_pretrained("tiny")
