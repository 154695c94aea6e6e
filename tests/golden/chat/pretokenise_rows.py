# SPDX-License-Identifier: Apache-2.0
"""Rows of every form that docs/pretokenise.py takes, and pretokenised.json: a tokenizer, and the ids
that TRL made of these rows with it. Shared by the two tests; it runs nothing."""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parents[2] / "docs" / "pretokenise.py"
FIXTURE = HERE / "pretokenised.json"
TEXT = ["the quick brown fox jumps over the lazy dog", "a lazy dog sleeps; the fox does not.",
        "What is two and two? Four, of course: two and two is four."]
QUESTION = "What is two and two?"
ASK = [{"role": "user", "content": QUESTION}]
SYSTEM = [{"role": "system", "content": "the fox is brief."}]


def say(text):
    return [{"role": "assistant", "content": text}]


ROWS = {
    "pairs": [
        {"prompt": "the quick brown", "chosen": " fox jumps", "rejected": "ish dog"},
        {"prompt": "What is", "chosen": " two<|endoftext|>", "rejected": "n't four"},
        {"prompt": "", "chosen": "the fox", "rejected": "the dog"}],
    "pairs-chat": [
        {"prompt": ASK, "chosen": say("Four."), "rejected": say(" Five?")},
        {"prompt": SYSTEM + ASK + say("Two.") + ASK, "chosen": say("Four."), "rejected": say("")}],
    "pairs-implicit": [
        {"chosen": "the quick brown fox jumps", "rejected": "the quick brown dog sleeps"},
        {"chosen": "a lazy", "rejected": "a lap"},
        {"chosen": "the fox Q", "rejected": "the fox K"}],  # the space is a token of its own
    "pairs-implicit-chat": [
        {"chosen": ASK + say("Four."), "rejected": ASK + say("Five.")},
        {"chosen": SYSTEM + ASK + say("Two.") + ASK + say("Four."),
         "rejected": SYSTEM + ASK + say("Two.") + ASK + say("Two.")}],
    "pairs-prompt-repeated": [  # as UltraFeedback has them
        {"prompt": QUESTION, "chosen": ASK + say("Four."), "rejected": ASK + say("Five."),
         "messages": ASK + say("Four."), "score_chosen": 8.5}],
    "pairs-prompt-text": [
        {"prompt": QUESTION, "chosen": say("Four."), "rejected": say("Five.")}],
    "completions": [{"prompt": "a lazy", "completion": " dog"}, {"prompt": "a la", "completion": "zy"}],
    "completions-chat": [
        {"prompt": ASK, "completion": say("Four.")},
        {"prompt": ASK, "completion": say("Two.") + ASK + say("Four.")}],
    "completions-prompt-text": [{"prompt": QUESTION, "completion": say("Four.")}],
    "texts": [{"text": TEXT[0]}, {"text": TEXT[1] + "<|endoftext|>"}],
    "messages": [
        {"messages": ASK + say("Four.") + ASK + say("Four!")},
        {"messages": SYSTEM + ASK + say("Four.") + ASK}],
}


def trl_given(row):
    """Returns the row as TRL takes it: a prompt of text before messages is the user's message, or is left out
    where the messages begin with it."""
    answer = row.get("chosen", row.get("completion"))
    row = {key: row[key] for key in row if key not in ("messages", "score_chosen") or answer is None}
    if isinstance(row.get("prompt"), str) and isinstance(answer, list):
        if answer[0]["role"] == "user":
            del row["prompt"]
        else:
            row["prompt"] = [{"role": "user", "content": row["prompt"]}]
    return row


def labels_of(row, side):
    """Returns the ids and the mask of one sequence."""
    if "input_ids" in row:
        return row["input_ids"], [int(label != -100) for label in row["labels"]]
    answer = row[side + "_ids"]
    return row["prompt_ids"] + answer, [0] * len(row["prompt_ids"]) + [1] * len(answer)


def like(row, want):
    """Returns the script's row with the keys of TRL's."""
    if "labels" in want and "labels" not in row:
        ids, mask = labels_of(row, "completion")
        return {"input_ids": ids, "labels": [i if m else -100 for i, m in zip(ids, mask)]}
    return row


def read_fixture():
    return json.loads(FIXTURE.read_text(encoding="utf-8"))


def write_tokenizer(folder, fixture):
    for name, content in fixture["tokenizer"].items():
        pathlib.Path(folder, name).write_text(json.dumps(content), encoding="utf-8")


def run_script(folder, given, environment=None):
    return subprocess.run([sys.executable, SCRIPT, folder], text=True, input=given, capture_output=True,
                          env=environment, check=False)


def pretokenise(folder, rows, environment=None):
    given = "\n".join(json.dumps(row) + "\n" for row in rows)  # empty lines between them
    done = run_script(folder, given, environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def check_fixture(fixture, name, rows):
    for row, want in zip(rows, fixture["rows"][name], strict=True):
        assert like(row, want) == want, (name, row, want)


def check_shown(binary, folder, name, text, rows):
    path = pathlib.Path(folder, name + ".jsonl")
    path.write_text(text, encoding="utf-8")
    shown = json.loads(subprocess.run([binary, "data", "show", path, "--json", "--samples", "9"], check=True,
                                      stdout=subprocess.PIPE).stdout)[0]["shown"]
    for row, sample in zip(rows, shown, strict=True):
        for sequence in sample["sequences"]:
            side = sequence["side"] if "chosen_ids" in row else "completion"
            ids, mask = labels_of(row, side)
            assert sequence["tokens"] == ids, (name, sequence, ids)
            assert sequence["mask"] == [0, *mask[1:]], (name, sequence, mask)  # nothing before the first


REFUSED = [  # a file, and what is said of it
    ("{\n", "line 1: Expecting"),
    ("[1]\n", "line 1: expected a JSON object"),
    ("\n\n", "there is no row"),
    ('{"body": "x"}', "line 1: expected the keys prompt, chosen, rejected (or "),
    ('{"body": "x"}', "; the row has: body"),
    ('\n{"input_ids": [1]}', "line 2: the row holds ids already"),
    ('{"prompt": "a", "chosen": "b"}', 'line 1: key "rejected" is missing'),
    ('{"completion": "b"}', 'line 1: key "prompt" is missing'),
    ('{"chosen": "ab", "rejected": "abc"}', "one is the beginning of the other"),
    ('{"chosen": "ab", "rejected": "ab"}', "must begin alike and then differ"),
    ('{"prompt": "a", "chosen": "b", "rejected": 5}', '"rejected": expected a text or a list'),
    ('{"prompt": "a", "chosen": "b", "rejected": [{"role": "user"}]}', "messages of role and content"),
    ('{"prompt": "a", "chosen": "b", "rejected": []}', '"rejected": expected a text or a list'),
    ('{"text": "a"}\n{"prompt": "a", "completion": "b"}', "line 2: the row has another form than line 1"),
    ('{"text": ["a"]}', '"text": expected a text'),
    ('{"messages": [{"role": "user", "content": "a"}]}', "no message is the assistant's"),
    (json.dumps({"prompt": "other", "chosen": ASK + say("a"), "rejected": ASK + say("b")}),
     '"prompt" is not among the messages'),
    (json.dumps({"chosen": say("a"), "rejected": say("b")}), "there is no prompt"),
    (json.dumps({"prompt": ASK, "chosen": "a", "rejected": "b"}), "what follows it is a text"),
    (json.dumps({"prompt": ASK, "completion": ASK}), "an answer begins with the assistant"),
    (json.dumps({"prompt": "a", "completion": ASK}), '"completion" must begin with the assistant'),
    (json.dumps({"prompt": "a", "chosen": "b", "rejected": say("c")}), 'one of "chosen" and "rejected" is a text'),
]


def check_refused(folder, environment=None):
    good = json.dumps(ROWS["texts"][0])
    for given, needle in REFUSED:
        done = run_script(folder, given, environment)
        assert (done.returncode, done.stdout) == (2, "") and needle in done.stderr, (given, done)
        assert done.stderr.startswith("pretokenise.py: ") and "Traceback" not in done.stderr, done.stderr
    done = run_script(folder, good + "\nx\n", environment)  # a bad row keeps the good ones from being written
    assert (done.returncode, done.stdout) == (2, "") and "line 2: " in done.stderr, done
    for words, code in ((["--help"], 0), (["-h"], 0), ([], 2), (["a", "b"], 2), (["--model"], 2)):
        done = subprocess.run([sys.executable, SCRIPT, *words], text=True, capture_output=True, input="",
                              env=environment, check=False)
        assert done.returncode == code and "pretokenise.py MODEL" in done.stdout + done.stderr, (words, done)
    for key, rows, needle in (("eos_token", ROWS["texts"], "the tokenizer has no eos_token"),
                              ("chat_template", ROWS["messages"], "messages need a chat template")):
        path = pathlib.Path(folder, "tokenizer_config.json")
        kept = path.read_text(encoding="utf-8")
        config = json.loads(kept)
        del config[key]
        path.write_text(json.dumps(config), encoding="utf-8")
        done = run_script(folder, json.dumps(rows[0]), environment)
        path.write_text(kept, encoding="utf-8")
        assert (done.returncode, done.stdout) == (2, "") and needle in done.stderr, done
