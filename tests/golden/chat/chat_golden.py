#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversations as transformers renders them with each family's own Jinja template.

Writes rendered.jsonl, which tests/data/test_chat.c compares with data/chat.c; with --check it
only says whether the file is what transformers renders now (77: transformers is not installed).
Spans are bytes [from, to) of the text that have a loss, found as TRL finds them: from the end of
the beginning with its generation prompt to the end of the turn.

Templates: chatml is that of TRL's former setup_chat_format and of Qwen3 without tools; llama3 that
of Meta-Llama-3-8B-Instruct; olmo that of OLMo-2-1124-7B-Instruct and of the Tulu 3 models; plain is
open-instruct's simple_concat_with_new_line."""
import argparse
import json
import pathlib
import sys

TEMPLATES = {
    "plain": (
        "{% for message in messages %}{{ '\\n' if not loop.first else '' }}{{ message['content'] }}"
        "{% if loop.last and not add_generation_prompt %}{{ eos_token }}{% endif %}{% endfor %}",
        "", "<eos>"),
    "chatml": (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
        "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}", "", ""),
    "llama3": (
        "{% set loop_messages = messages %}{% for message in loop_messages %}"
        "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ "
        "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
        "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
        "{% endif %}", "<|begin_of_text|>", "<|end_of_text|>"),
    "olmo": (
        "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}"
        "{{ '<|system|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'user' %}"
        "{{ '<|user|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'assistant' %}"
        "{% if not loop.last %}{{ '<|assistant|>\n'  + message['content'] + eos_token + '\n' }}"
        "{% else %}{{ '<|assistant|>\n'  + message['content'] + eos_token }}{% endif %}{% endif %}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
        "{% endfor %}", "<|endoftext|>", "<|endoftext|>"),
}

SYSTEM = {"role": "system", "content": "Be brief."}
ASK = {"role": "user", "content": "What is 2 + 2?"}
FOUR = {"role": "assistant", "content": "4."}
MORE = {"role": "user", "content": "And\n3 + 3?"}
SIX = {"role": "assistant", "content": "Six,\n\n6: \u00e9\U0001f600"}
BLANK = {"role": "user", "content": " \t\u00a0\u2003 in \u3000 the middle \x1c\x1f\x85\u2028\n"}
EMPTY = {"role": "assistant", "content": ""}
SPACES = {"role": "assistant", "content": "\u200b kept \u3000 "}

# Messages, and the index of the first one of the completion; None means every turn of the
# assistant.
CASES = [
    ([ASK, FOUR], 1), ([ASK, FOUR], None), ([SYSTEM, ASK, FOUR, MORE, SIX], None),
    ([SYSTEM, ASK, FOUR, MORE, SIX], 2), ([SYSTEM, ASK, FOUR, MORE, SIX], 4),
    ([ASK, FOUR, MORE], None), ([BLANK, SPACES], 1), ([ASK, EMPTY, BLANK, SPACES], None),
    ([ASK, FOUR, FOUR], None), ([FOUR, MORE, SIX], None),
]


def spans_of(render, messages, completion):
    """Returns the whole completion as TRL's DPOTrainer cuts it; or each turn, without headers."""
    turns = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    ranges = [(i, i + 1) for i in turns] if completion is None else [(completion, len(messages))]
    whole = render(messages, False)
    spans = []
    for first, end in ranges:
        header = render(messages[:first] + [messages[first] | {"content": "@@"}], False)
        before = header[:header.rindex("@@")]
        if first and messages[first - 1]["role"] != "assistant":
            assert before == render(messages[:first], True)
        upto = render(messages[:end], False)
        if before is None:
            header = render([messages[first] | {"content": "@"}], False)
            before = header[:header.index("@")]
        assert upto.startswith(before) and whole.startswith(upto), (before, upto)
        spans.append([len(before.encode()), len(upto.encode())])
    return spans


def rows():
    from transformers.utils.chat_template_utils import render_jinja_template
    for name, (text, bos, eos) in TEMPLATES.items():
        def render(messages, prompt):
            out = render_jinja_template([messages], chat_template=text, bos_token=bos,
                                        eos_token=eos, add_generation_prompt=prompt)
            return out[0][0] if isinstance(out, tuple) else out[0]
        for messages, completion in CASES:
            row = {"template": name, "messages": messages,
                   "completion": -1 if completion is None else completion,
                   "text": render(messages, False)}
            if name != "plain":  # its separators belong to what stands before them
                row["spans"] = spans_of(render, messages, completion)
            yield json.dumps(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    path = pathlib.Path(__file__).with_name("rendered.jsonl")
    try:
        text = "\n".join(rows()) + "\n"
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    if not arguments.check:
        path.write_text(text, encoding="ascii")
        return 0
    if path.read_text(encoding="ascii") != text:
        print(f"{path.name} is not what transformers renders; run this without --check")
        return 1
    print(f"{len(text.splitlines())} conversations agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
