# SPDX-License-Identifier: Apache-2.0
"""Rows of unequal lengths, drawn once: pairs go through TRL's own tokenizing; texts are given as
ids."""

import random

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567"
ROWS = 23  # batches of 2, windows of 2: an epoch ends with a window of 3 rows, 2 and 1
LONGEST = 24  # tokens that DPO keeps of a sequence; some have more


def tokenizer():
    """Makes a tokenizer with one token per character, 64 in all, which adds none of its own."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3}
    words.update({letter: 4 + index for index, letter in enumerate(ALPHABET)})
    inner = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<s>",
                                   eos_token="</s>", unk_token="<unk>")


def word(rng, low, high):
    return "".join(rng.choice(ALPHABET) for _ in range(rng.randint(low, high)))


def pairs():
    rng = random.Random(1)
    return [{"prompt": word(rng, 2, 9), "chosen": word(rng, 2, 18), "rejected": word(rng, 2, 18)}
            for _ in range(ROWS)]


def texts():
    """Draws texts whose labels are -100 up to a place of the row's own, in one row nowhere, in some
    also in between."""
    rng = random.Random(2)
    rows = []
    for index in range(ROWS):
        ids = [rng.randrange(4, 64) for _ in range(rng.randint(4, 24))]
        labels = list(ids)
        for place in range(0 if index == 5 else rng.randint(1, len(ids) - 2)):
            labels[place] = -100
        if index % 4 == 1:
            labels[-2] = -100
        rows.append({"input_ids": ids, "labels": labels})
    return rows
