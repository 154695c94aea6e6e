#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of text or messages to rows of token ids, as TRL 1.16 tokenizes them (docs/DATA.md).

    pretokenise.py MODEL < rows.jsonl > ids.jsonl

MODEL is a folder with tokenizer.json (or a name that transformers knows); its own chat template is
applied. All rows have one of these forms, text or lists of messages:

    prompt, chosen, rejected     a pair; a prompt of text before lists of messages is the user's
                                 message, or is left out where the lists begin with it
    chosen, rejected             a pair; what both begin with is the prompt
    prompt, completion
    messages                     each turn of the assistant has a loss
    text                         everything has a loss

Other keys are ignored. Nothing is written unless every row is good. Exit status: 0 written, 2 error
(the text names the line). The script is made to be changed: here text becomes numbers."""
import json
import sys
from os.path import commonprefix

PAIR = ("chosen", "rejected")


class Bad(Exception):
    """What is wrong with a row, or with the tokenizer."""


class Encoder:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def text(self, text, ends):
        """Returns the ids of a text, behind which the end of text stands once where `ends` says so."""
        eos = self.tokenizer.eos_token
        if ends and not eos:
            raise Bad("the tokenizer has no eos_token, which ends a text: set it")
        return self.tokenizer(text.removesuffix(eos) + eos if ends else text)["input_ids"]

    def chat(self, messages, ask):
        """Returns the ids of messages; the template writes every special token. `ask`: the prompt of an answer."""
        if not self.tokenizer.chat_template:
            raise Bad("messages need a chat template, and the tokenizer has none")
        return self.tokenizer.apply_chat_template(messages, return_dict=False, add_generation_prompt=ask)

    def prompt(self, prompt):
        return self.chat(prompt, True) if isinstance(prompt, list) else self.text(prompt, False)

    def whole(self, prompt, answer):
        return self.chat(prompt + answer, False) if isinstance(prompt, list) else self.text(prompt + answer, True)


def check_part(name, value):
    """Returns the value, which must be a text or messages of role and content."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise Bad(f'"{name}": expected a text or a list of messages, got {json.dumps(value)[:40]}')
    for message in value:
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise Bad(f'"{name}": expected messages of role and content, got {json.dumps(message)[:60]}')
    return value


def split_pair(chosen, rejected):
    """Returns prompt and answers of a pair that holds its prompt, as TRL's extract_prompt finds them; a pair of
    which one is the beginning of the other is refused, where TRL cuts it."""
    same = next((i for i, (a, b) in enumerate(zip(chosen, rejected)) if a != b), None)
    if same is None:
        raise Bad('without "prompt", "chosen" and "rejected" must begin alike and then differ: one is the '
                  'beginning of the other')
    if isinstance(chosen, str) and chosen[same - 1:same] == " ":  # the space belongs to the answer
        same -= 1
    if isinstance(chosen, list) and same == 0:
        raise Bad('the first messages of "chosen" and "rejected" differ already: there is no prompt')
    return chosen[:same], chosen[same:], rejected[same:]


def split_row(row):
    """Returns the row's prompt, and its answers by name."""
    names = PAIR if "chosen" in row or "rejected" in row else ("completion",)
    for name in names:
        if name not in row:
            raise Bad(f'key "{name}" is missing; the row has: {", ".join(row)}')
    answers = [check_part(name, row[name]) for name in names]
    if len({type(answer) for answer in answers}) > 1:
        raise Bad('one of "chosen" and "rejected" is a text, the other a list of messages')
    if "prompt" not in row:
        if names != PAIR:
            raise Bad('key "prompt" is missing; a completion needs one')
        prompt, *answers = split_pair(*answers)
        return prompt, dict(zip(names, answers))
    prompt = check_part("prompt", row["prompt"])
    if isinstance(prompt, str) and isinstance(answers[0], list):
        if answers[0][0]["role"] == "assistant":
            prompt = [{"role": "user", "content": prompt}]
        elif names == PAIR:  # the lists begin with the prompt, as in UltraFeedback
            named, (prompt, *answers) = prompt, split_pair(*answers)
            if all(message["content"] != named for message in prompt):
                raise Bad('"prompt" is not among the messages that "chosen" and "rejected" begin with')
        else:
            raise Bad('"completion" must begin with the assistant where "prompt" is a text')
    elif type(prompt) is not type(answers[0]):
        raise Bad('"prompt" is a list of messages, but what follows it is a text')
    if isinstance(prompt, list) and any(answer[0]["role"] != "assistant" for answer in answers):
        raise Bad("an answer begins with the assistant")
    return prompt, dict(zip(names, answers))


def answered(encoder, row):
    prompt, answers = split_row(row)
    ids = {name: encoder.whole(prompt, answer) for name, answer in answers.items()}
    start = commonprefix([encoder.prompt(prompt), *ids.values()])  # ids may merge where the two meet
    return {"prompt_ids": start} | {name + "_ids": all_ids[len(start):] for name, all_ids in ids.items()}


def conversation(encoder, row):
    turns = check_part("messages", row["messages"])
    if isinstance(turns, str) or all(turn["role"] != "assistant" for turn in turns):
        raise Bad('"messages": no message is the assistant\'s: nothing has a loss')
    ids = encoder.chat(turns, False)
    labels = [-100] * len(ids)
    for i in range(1, len(turns)):
        if turns[i]["role"] == "assistant":
            parts = encoder.chat(turns[:i], True), encoder.chat(turns[:i + 1], False)
            first, end = (len(commonprefix([part, ids])) for part in parts)
            labels[first:end] = ids[first:end]
    return {"input_ids": ids, "labels": labels}


def plain(encoder, row):
    if not isinstance(row["text"], str):
        raise Bad('"text": expected a text')
    ids = encoder.text(row["text"], True)
    return {"input_ids": ids, "labels": ids}


def form_of(row):
    """Returns the function above that makes ids of the row."""
    if not isinstance(row, dict):
        raise Bad("expected a JSON object")
    if any(key in row for key in ("input_ids", "prompt_ids", "chosen_input_ids")):
        raise Bad("the row holds ids already")
    for key, form in (("chosen", answered), ("rejected", answered), ("completion", answered),
                      ("messages", conversation), ("text", plain)):
        if key in row:
            return form
    raise Bad("expected the keys prompt, chosen, rejected (or chosen, rejected, or prompt, completion, or "
              f"messages, or text); the row has: {', '.join(row) or 'none'}")


def rows_of(encoder, lines):
    """Returns a row of ids for each line that is not empty."""
    out, first = [], None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            form = form_of(row)
            first = first or (form, number)
            if form is not first[0]:
                raise Bad(f"the row has another form than line {first[1]}")
            out.append(json.dumps(form(encoder, row)))
        except (Bad, ValueError) as error:
            raise Bad(f"line {number}: {error}") from error
    if not out:
        raise Bad("there is no row")
    return out


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        from transformers import AutoTokenizer
        encoder = Encoder(AutoTokenizer.from_pretrained(sys.argv[1]))
        for line in rows_of(encoder, sys.stdin):
            print(line)
    except ImportError as error:
        print(f"pretokenise.py: {error}: it needs transformers (pip install transformers)", file=sys.stderr)
        return 2
    except Bad as error:
        print(f"pretokenise.py: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:  # what from_pretrained raises; and text that is not UTF-8
        print(f"pretokenise.py: {sys.argv[1]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
