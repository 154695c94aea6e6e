#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `twinstep run` measures on the rows of eval.* against a forward written here.

usage: eval_truth.py BINARY

The weights of both arms are exported (--save-model), those of the start by a run with LR 0. From
them, the rows and the definitions of transformers' models (RMSNorm, rotate_half, softmax, SwiGLU)
come log-probs, and from these TRL's metrics: all in f64, without a line of the program's. Training
with and without eval must export the same bytes. Only the standard library is needed."""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

CLOSE = 1e-10  # relative: both sides compute in f64, in different orders of sums
VOCAB = 19
FAILED = []


# ---- weights ----

def read_weights(folder):
    data = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", entry
        first, last = entry["data_offsets"]
        values = struct.unpack(f"<{(last - first) // 4}f", data[8 + length + first:8 + length + last])
        if len(entry["shape"]) == 2:
            width = entry["shape"][1]
            values = [values[i:i + width] for i in range(0, len(values), width)]
        tensors[name] = values
    return tensors


# ---- the forward ----

def product(matrix, x):
    return [math.fsum(w * v for w, v in zip(row, x)) for row in matrix]


def norm(x, weight, eps):
    scale = 1.0 / math.sqrt(math.fsum(v * v for v in x) / len(x) + eps)
    return [v * scale * w for v, w in zip(x, weight)]


def rotate(x, position, heads, theta):
    width = len(x) // heads
    half, out = width // 2, list(x)
    for head in range(heads):
        for i in range(half):
            angle = position / theta ** (2.0 * i / width)
            low, high = head * width + i, head * width + i + half
            out[low] = x[low] * math.cos(angle) - x[high] * math.sin(angle)
            out[high] = x[high] * math.cos(angle) + x[low] * math.sin(angle)
    return out


def attend(queries, keys, values, heads, groups):
    width = len(queries[0]) // heads
    out = []
    for position, query in enumerate(queries):
        line = []
        for head in range(heads):
            shared = head // (heads // groups)
            q = query[head * width:(head + 1) * width]
            of = slice(shared * width, (shared + 1) * width)
            scores = [math.fsum(a * b for a, b in zip(q, keys[j][of])) / math.sqrt(width)
                      for j in range(position + 1)]
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = math.fsum(weights)
            line += [math.fsum(w * values[j][of][i] for j, w in enumerate(weights)) / total
                     for i in range(width)]
        out.append(line)
    return out


def forward(w, config, tokens):
    """The logits of every position."""
    heads, groups, eps = config["num_attention_heads"], config["num_key_value_heads"], 1e-6
    theta, olmo = config["rope_theta"], config["model_type"] == "olmo2"
    stream = [list(w["model.embed_tokens.weight"][t]) for t in tokens]
    for number in range(config["num_hidden_layers"]):
        at = f"model.layers.{number}."
        inside = stream if olmo else [norm(x, w[at + "input_layernorm.weight"], eps) for x in stream]
        lines = {name: [product(w[f"{at}self_attn.{name}_proj.weight"], x) for x in inside]
                 for name in "qkv"}
        for name, count in (("q", heads), ("k", groups)):
            if olmo:
                lines[name] = [norm(x, w[f"{at}self_attn.{name}_norm.weight"], eps)
                               for x in lines[name]]
            lines[name] = [rotate(x, p, count, theta) for p, x in enumerate(lines[name])]
        branch = [product(w[at + "self_attn.o_proj.weight"], x)
                  for x in attend(lines["q"], lines["k"], lines["v"], heads, groups)]
        after = at + "post_attention_layernorm.weight"
        if olmo:
            branch = [norm(x, w[after], eps) for x in branch]
        stream = [[a + b for a, b in zip(x, y)] for x, y in zip(stream, branch)]
        inside = stream if olmo else [norm(x, w[after], eps) for x in stream]
        branch = []
        for x in inside:
            gate = product(w[at + "mlp.gate_proj.weight"], x)
            up = product(w[at + "mlp.up_proj.weight"], x)
            branch.append(product(w[at + "mlp.down_proj.weight"],
                                  [g / (1.0 + math.exp(-g)) * u for g, u in zip(gate, up)]))
        if olmo:
            branch = [norm(x, w[at + "post_feedforward_layernorm.weight"], eps) for x in branch]
        stream = [[a + b for a, b in zip(x, y)] for x, y in zip(stream, branch)]
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return [product(head, norm(x, w["model.norm.weight"], eps)) for x in stream]


def log_prob(w, config, prompt, answer):
    """The summed log-prob of the answer's tokens."""
    tokens, total = prompt + answer, []
    lines = forward(w, config, tokens)
    for position in range(len(prompt), len(tokens)):
        line = lines[position - 1]
        top = max(line)
        total.append(line[tokens[position]] - top -
                     math.log(math.fsum(math.exp(v - top) for v in line)))
    return math.fsum(total)


# ---- the metrics ----

def log_sigmoid(x):
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def measure(case, weights, start, config, rows):
    if case["task"] == "sft":
        sums = [log_prob(weights, config, r["prompt_ids"], r["completion_ids"]) for r in rows]
        return {"loss": -math.fsum(sums) / sum(len(r["completion_ids"]) for r in rows)}
    found = {k: [] for k in ("loss", "reward_margin", "reward_accuracy", "logp_chosen",
                             "logp_rejected")}
    for r in rows:
        logs, rewards = [], []
        for side in ("chosen", "rejected"):
            answer = r[side + "_ids"]
            value = log_prob(weights, config, r["prompt_ids"], answer)
            if case["loss"] == "simpo":
                value, reference = value / len(answer), 0.0
            elif case["given"]:
                reference = r[f"ref_{side}_logps"]
            else:
                reference = log_prob(start, config, r["prompt_ids"], answer)
            logs.append(value)
            rewards.append(case["beta"] * (value - reference))
        margin = rewards[0] - rewards[1]
        asked = case["beta"] * 0.3 if case["loss"] == "simpo" else 0.0
        found["loss"].append(-log_sigmoid(margin - asked))
        found["reward_margin"].append(margin)
        found["reward_accuracy"].append(1.0 if margin > 0.0 else 0.0)
        found["logp_chosen"].append(logs[0])
        found["logp_rejected"].append(logs[1])
    return {k: math.fsum(v) / len(v) for k, v in found.items()}


# ---- the cases ----

CASES = (
    {"name": "dpo-llama", "task": "dpo", "family": "llama", "loss": "sigmoid", "beta": 0.4,
     "given": False, "words": "dpo: {beta: 0.4}, batch: {size: 2, layout: concatenated, pad: 3}"},
    {"name": "dpo-given", "task": "dpo", "family": "olmo2", "loss": "sigmoid", "beta": 0.1,
     "given": True, "words": "dpo: {reference: given}, batch: {size: 2, micro: 1}, "
                             "dropout: {residual: 0.2}"},
    {"name": "simpo", "task": "dpo", "family": "olmo2", "loss": "simpo", "beta": 2.0,
     "given": False, "words": "dpo: {loss: simpo, beta: 2}, batch: {size: 2}"},
    {"name": "sft", "task": "sft", "family": "llama", "loss": "", "beta": 0.0, "given": False,
     "words": "batch: {size: 2, padding: packed}, numerics: {compute: bf16}"},
)


def make_rows(case, stream, count):
    def ids(least, most):
        return [stream.randrange(VOCAB) for _ in range(stream.randint(least, most))]
    rows = []
    for _ in range(count):
        row = {"prompt_ids": ids(1, 4)}
        if case["task"] == "sft":
            row["completion_ids"] = ids(1, 6)
        else:
            row |= {"chosen_ids": ids(1, 6), "rejected_ids": ids(1, 6)}
        if case["given"]:
            row |= {"ref_chosen_logps": -stream.random() * 9, "ref_rejected_logps": -7.5}
        rows.append(row)
    return rows


def run(folder, binary, *words):
    done = subprocess.run([binary, "run", "pair.yaml", "--quiet", "--json", "--overwrite",
                           "-o", "pair.h5", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder.name}: {done.stderr}")
    return json.loads(done.stdout)


def check(case, folder, binary):
    stream = random.Random(case["name"])
    rows = {"training": make_rows(case, stream, 6), "held_out": make_rows(case, stream, 5)}
    for name, of in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in of))
    source = "text" if case["task"] == "sft" else "pairs"
    (folder / "pair.yaml").write_text(
        f"twinstep: 1\nsteps: 3\neval: {{from: held_out.jsonl}}\ncommon: {{task: {case['task']}, "
        f"data: {{{source}: training.jsonl, max_len: 16}}, init: {{std: 0.4}}, "
        f"model: {{family: {case['family']}, layers: 2, hidden: 8, heads: 4, kv_heads: 2, mlp: 12, "
        f"vocab: {VOCAB}}}, optimizer: {{lr: 1e-2}}, {case['words']}}}\n"
        "arms: {baseline: {}, test: {optimizer: {lr: 3e-2}}}\n")
    verdict = run(folder, binary, "--save-model", "end")
    run(folder, binary, "--set", "eval.from=none", "--save-model", "plain")
    run(folder, binary, "--set", "common.optimizer.lr=0", "--save-model", "baseline=start")
    start = read_weights(folder / "start")
    config = json.loads((folder / "start" / "config.json").read_text())
    if "rope_theta" not in config:
        config["rope_theta"] = config["rope_parameters"]["rope_theta"]
    for arm, name in enumerate(("baseline", "test")):
        same = [(folder / way / name / "model.safetensors").read_bytes() for way in ("end", "plain")]
        if same[0] != same[1]:
            FAILED.append(f"{case['name']}: {name}: eval moved weights")
        weights = read_weights(folder / "end" / name)
        for part in verdict["eval"]["sets"]:
            truths = {"end": measure(case, weights, start, config, rows[part["set"]]),
                      "start": measure(case, start, start, config, rows[part["set"]])}
            if part["rows"] != len(rows[part["set"]]):
                FAILED.append(f"{case['name']}: {part['set']}: {part['rows']} rows")
            if sorted(m["measure"] for m in part["measures"]) != sorted(truths["end"]):
                FAILED.append(f"{case['name']}: {part['set']}: other measures")
            for m in part["measures"]:
                for when, truth in truths.items():
                    true, got = truth[m["measure"]], m[when][arm]
                    if not math.isclose(true, got, rel_tol=CLOSE, abs_tol=CLOSE):
                        FAILED.append(f"{case['name']}: {name} {part['set']} {when} "
                                      f"{m['measure']}: {got!r}, true {true!r}")
                if m["gap"] != m["end"][1] - m["end"][0]:
                    FAILED.append(f"{case['name']}: {m['measure']}: gap {m['gap']!r}")


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="twinstep-eval-") as folder:
            check(case, pathlib.Path(folder), binary)
    print("\n".join(FAILED) if FAILED else f"{len(CASES)} cases: every value is true")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
