# SPDX-License-Identifier: Apache-2.0
"""labels: cli whole

docs/JSON.md lists every member that the verbs print with --json. Each verb is run on several inputs
and its objects are walked: a member that is printed must stand on the page with the type that came,
and a member of the page must be printed by one of the inputs. A `*` on the page stands for any
name. The ladder of models, which is many trainings, is measured where the whole is asked for."""
import collections
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/JSON.md"
LOGS = ROOT / "tests/golden/logs"
RUNS = ROOT / "tests/golden/foreign/runs"
MEANT = re.compile(r"null|boolean|integer|number|string|array|object")

TRAINER = ROOT / "tests/python/ablate/trainer.py"

# What only a device has, only a machine without some instructions, and only threads that race.
NOT_EVERYWHERE = {
    "device": {"backend", "*"},
    "judgement": {"library", "library[]", *(f"closure_noise.{name}" for name in (
        "runs", "mean", "farthest", "alpha"))},
    "noise --ops": {"cases[].untestable"},
}

SCENARIO = """twinstep: 1
name: {name}
steps: {steps}
common:
  task: dpo
  seed: 3
  data: {{pairs: builtin:quiz, max_len: 96}}
  batch: {{size: 2, micro: 1}}
  model: {{family: olmo2, layers: 1, hidden: 32, heads: 2, mlp: 64}}
  optimizer: {{name: adamw, lr: 1e-3}}
  numerics: {{mode: invariant}}
arms:
  baseline: {{}}
  test: {{{test}}}
{more}"""

def linear(updates, lag=0):
    return [5e-7 * (updates - (k - 1 - (lag if k > 20 else 0))) / updates
            for k in range(1, updates + 1)]


def write_rollouts(folder):
    """Log-probs of an engine and a trainer, which are apart by noise of a size."""
    draw = random.Random(3)
    for name, size in (("near.jsonl", 1e-4), ("far.jsonl", 3e-2), ("alike.jsonl", 0.0)):
        rows = []
        for i in range(24):
            engine = [-0.2 - draw.expovariate(1.0) for _ in range(40)]
            trainer = [x + draw.uniform(-size, size) for x in engine]
            rows.append({"id": f"s{i}", "batch": i // 8,
                         "token_ids": [draw.randrange(50) for _ in engine],
                         "rollout_logprobs": engine, "trainer_logprobs": trainer,
                         "mask": [1] * 38 + [0] * 2, "reward": draw.choice([0, 0.5, 1])})
        rows[0]["rollout_logprobs"][1] = None
        if name == "alike.jsonl":  # one reward has no error and no correlation
            rows = [row if row["id"] == "s1" else {**row, "reward": None} for row in rows]
        if name == "near.jsonl":
            rows = [{**row, "reward": None} for row in rows]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_ablations(folder):
    """Ablations of a training that runs on paper; JSON is YAML."""
    train = [sys.executable, "-SE", str(TRAINER), "--out", "{dir}"]
    for level, value in (("good", 1), ("bad", 3)):
        (folder / f"{level}.json").write_text(json.dumps({"t0": value}))
    plans = {
        "legs": {"command": [*train, "--t0", "{t0}", "--t1", "{t1}"],
                 "factors": {"t0": [0, 3], "t1": [0, 4]},
                 "read": {"weights": "{dir}/model.safetensors", "log": "{dir}/log.jsonl"}},
        "one": {"command": [*train, "--t0", "{t0}"], "test": {
                    "command": [*train, "--t0", "5", "--wrapper", "_orig_mod."]},
                "factors": {"t0": [0, 3]}, "read": {"weights": "{dir}/model.safetensors"}},
        "kinds": {"command": ["sh", "-c", "cat {config} > {dir}/out; echo $WORD >> {dir}/out"],
                  "files": {"config": ["good.json", "bad.json"]},
                  "factors": {"t0": {"leaves": {"config": ["t0"]}},
                              "word": {"env": {"WORD": [None, "x"]}}},
                  "read": {"bytes": "{dir}/out"}},
        "linked": {"command": ["sh", "-c", f"exec {' '.join(train)} --t0 $(( {{x}} * {{y}} + {{z}} ))"],
                   "factors": {"x": ["2", "4"], "y": ["4", "2"], "z": ["0", "3"]},
                   "read": {"weights": "{dir}/model.safetensors"}},
        "fails": {"command": ["sh", "-c", "echo x > {dir}/out; exit {code}"],
                  "factors": {"code": ["0", "3"]}, "read": {"bytes": "{dir}/out"}},
        "noisy": {"command": [*train, "--noise", "0.25", "--t0", "{t0}"],
                  "test": {"command": [*train, "--t0", "3", "--noise", "0.25"]},
                  "factors": {"t0": [0, 3]}, "read": {"weights": "{dir}/model.safetensors"}},
    }
    for name, plan in plans.items():
        (folder / f"{name}.json").write_text(json.dumps({"ablate": 1, "run": {"slots": 2}, **plan}))


def write_inputs(folder):
    """What the command lines below read, beside the logs and checkpoints of the repository."""
    def rows(name, lrs, loss, more=""):
        text = "".join(f'{{"step": {k}, "loss": {loss(k)!r}, "lr": {lr!r}{more}}}\n'
                       for k, lr in enumerate(lrs, 1))
        (folder / name).write_text(text)

    rows("clean.jsonl", linear(60), lambda k: 2.5 - 0.01 * k)
    rows("skips.jsonl", linear(60, 1), lambda k: 2.5 - 0.01 * k - (k > 20) * 0.1)
    rows("stopped.jsonl", linear(160)[:80] + 80 * linear(160)[80:81], lambda k: 2.5 - 0.01 * k)
    rows("double.jsonl", linear(60), lambda k: 5.0 - 0.02 * k)
    (folder / "constant.csv").write_text("step,lr\n" + "".join(f"{k},1e-06\n" for k in range(9)))
    (folder / "odd.csv").write_text("step,lr\n" + "".join(
        f"{k},{1e-6 * (1.5 + math.sin(k * k)):.9e}\n" for k in range(1, 40)))
    (folder / "jump.csv").write_text("step,lr\n" + "".join(
        f"{k},{1e-4 * (1 - (k - 1) / 200) * (0.5 if k > 60 else 1)!r}\n" for k in range(1, 121)))
    (folder / "still.csv").write_text("step,lr\n" + "".join(
        f"{k},{5e-5 * (min(k - 1, 83) / 10 if k <= 10 else (200 - min(k - 1, 83)) / 190)!r}\n"
        for k in range(1, 201)))
    (folder / "held.csv").write_text("step,lr\n" + "".join(
        "{},{!r}\n".format(k, min(3.75e-5, 5e-5 * ((k - 1) / 20 if k <= 20 else
                                                   0.5 + 0.5 * math.cos(math.pi * (k - 21) / 180))))
        for k in range(1, 201)))
    (folder / "groups.csv").write_text("step,loss,lr_applied,lr_applied[1],lr_applied[2]\n" + "".join(
        f"{k},{2.5 - 0.1 * k:.2f},1e-3,1e-3,1e-3\n" for k in range(1, 7)))
    (folder / "used.csv").write_text("step,loss,lr,lr_applied\n" + "".join(
        f"{k},{2.5 - 0.01 * k:.2f},{lr!r},{0.75 * lr if k > 9 else lr!r}\n"
        for k, lr in enumerate(linear(60), 1)))
    for name, apart in (("near.csv", 0), ("apart.csv", 10)):
        (folder / name).write_text("step,logps/chosen\n" + "".join(
            f"{k},{-300 - k % 7 * 2.5 - apart}\n" for k in range(1, 9)))
    (folder / "halved.csv").write_text("step,loss,lr_applied,lr_applied[1],lr_applied[3]\n" + "".join(
        f"{k},{2.5 - 0.1 * k:.2f},1e-3,{'nan' if k == 1 else '5e-4'},1e-3\n" for k in range(1, 7)))
    (folder / "dicts.txt").write_text("".join(
        f"{{'loss': {2.5 - 0.01 * k:.4f}, 'grad_norm': 1.0, "
        f"'learning_rate': {1e-4 * (1 - (10 * k - 1) / 300)!r}, 'epoch': {k / 30:.2f}}}\n"
        for k in range(1, 31)))
    (folder / "bad.csv").write_text(
        "step,loss,lr\n1,0.7,1e-6\n2,nan,9e-7\n3,0.6,8e-7\n4,0.6,7e-7\n")
    (folder / "two.yaml").write_text(SCENARIO.format(
        name="two", steps=4, test="optimizer: {lr: 2e-3}", more=""))
    (folder / "same.yaml").write_text(SCENARIO.format(name="same", steps=4, test="", more=""))
    (folder / "draws.yaml").write_text(SCENARIO.format(
        name="draws", steps=4, test="dropout: {residual: 0.1, seed: 5}", more=""))
    (folder / "seeds.yaml").write_text(SCENARIO.format(
        name="seeds", steps=2, test="dropout: {seed: 5}", more="").replace(
            "  numerics:", "  dropout: {residual: 0.1}\n  numerics:"))
    (folder / "lost.yaml").write_text(SCENARIO.format(
        name="lost", steps=2, more="", test="dropout: {residual: 0.1}, resume: {after: 1, "
        "restores: [schedule, optimizer, data, scaler]}").replace(
            "baseline: {}", "baseline: {dropout: {residual: 0.1}, resume: {after: 1}}"))
    (folder / "ranks.yaml").write_text(SCENARIO.format(
        name="ranks", steps=2, test="parallel: {sync: first}", more="").replace(
            "size: 2", "size: 4").replace("  numerics: {", "  parallel: {ranks: 2}\n  loop: {update: [reduce, clip, optimize, "
            "log, count, schedule, zero]}\n  numerics: {shards: 2, "))
    several = {
        "three": "optimizer: {lr: 2e-3, weight_decay: 0.1}, dpo: {beta: 0.2}",
        "six": "optimizer: {lr: 2e-3}, dpo: {beta: 0.2}, dropout: {residual: 0.1}, "
               "numerics: {compute: bf16}, model: {norm_eps: 1e-3}, data: {shuffle: false}, "
               "batch: {micro: 2}",
        "beside": "optimizer: {lr: 2e-3}, loss: {divisor: update-and-micros}, dpo: {beta: 0.1001}",
        "wider": "model: {hidden: 64}, optimizer: {lr: 2e-3}",
        "loop": "loop: {update: [scheduler_step, clip, optimize, log, zero]}, dropout: {seed: 9}",
    }
    for name, test in several.items():
        (folder / f"{name}.yaml").write_text(SCENARIO.format(name=name, steps=2, test=test, more=""))
    beside = (folder / "beside.yaml").read_text()  # of SGD twice the LR undoes half of the gradient
    (folder / "beside.yaml").write_text(beside.replace("adamw", "sgd").replace(
        "  optimizer:", "  clip: {max_norm: 0}\n  schedule: {name: constant}\n  optimizer:", 1))
    faster = SCENARIO.format(name="faster", steps=24, test="optimizer: {lr: 2e-3}", more="")
    (folder / "faster.yaml").write_text(faster)
    (folder / "racing.yaml").write_text(faster.replace("steps: 24", "steps: 2").replace(
        "mode: invariant", "mode: atomic, threads: 2"))
    (folder / "cancels.yaml").write_text(faster.replace(
        "steps: 24", "steps: 1\nfloor: {replicates: 6}").replace("mode: invariant", "mode: atomic").replace(
            "name: adamw,", "name: sgd,").replace("max_len: 96", "max_len: 32, no_label: drop").replace(
            "  optimizer:", "  clip: {max_norm: 0}\n  schedule: {name: constant}\n  optimizer:", 1).replace(
                "{lr: 2e-3}", "{lr: 2e-3}, loss: {divisor: update-and-micros}"))
    (folder / "short.yaml").write_text(faster.replace("steps: 24", "steps: 2").replace(
        "max_len: 96", "max_len: 32, no_label: drop"))
    (folder / "eval.yaml").write_text(faster.replace(
        "steps: 24", "steps: 4\neval: {from: rest, rows: 8}").replace(
            "max_len: 96", "max_len: 96, samples: 16"))
    (folder / "parted.yaml").write_text(faster.replace("steps: 24", "steps: 6").replace(
        "adamw", "sgd").replace("{lr: 2e-3}", "{lr: 1e6}, clip: {max_norm: 0}"))
    write_rollouts(folder)
    write_ablations(folder)
    (folder / "deep.yaml").write_text(SCENARIO.format(
        name="deep", steps=2, test="", more="").replace("layers: 1", "layers: 6"))
    (folder / "judged").mkdir()
    for name, test, expect in (("kept", "optimizer: {lr: 2e-3}", "outside-floor"),
                               ("missed", "", "outside-floor"), ("refused", "", "odd")):
        (folder / "judged" / f"{name}.yaml").write_text(SCENARIO.format(
            name=name, steps=2, test=test, more=f"expect: {{verdict: {expect}}}\n"))


RESUMED = ROOT / "tests/golden/resumed"
HF = f"{LOGS}/hf5/hf-linear/trainer_state.json"
OLD = f"{LOGS}/hf446/hf-linear/trainer_state.json"

# Lines before the verbs: they write traces and floors, and their own JSON is not looked at.
BEFORE = [
    "run two.yaml -o two.h5 --quiet --checkpoint-every 1 --save-model saved",
    "run same.yaml -o same.h5 --quiet",
    "run draws.yaml -o draws.h5 --quiet",
    "run seeds.yaml -o seeds.h5 --quiet",
    "run lost.yaml -o lost.h5 --quiet",
    "noise same.yaml --modes shuffled --dtypes f32 --steps 4 --repeat 1 --pairs 3 -o floor.h5",
]

COMMANDS = {
    "judgement": [
        "run two.yaml -o other.h5 --overwrite --set record.replay_check=1",
        *(f"run {name}.yaml -o other.h5 --overwrite" for name in (
            "same", "beside", "wider", "loop", "racing", "cancels", "eval", "parted", "lost", "seeds",
            "ranks")),
        "attribute two.h5",
    ],
    "lr fit": [
        "lr fit clean.jsonl", "lr fit skips.jsonl", "lr fit stopped.jsonl", f"lr fit {HF}",
        f"lr fit {OLD}",
        "lr fit constant.csv", "lr fit jump.csv", "lr fit dicts.txt",
        "lr fit two.h5", "lr fit still.csv --contract hf",
        "lr fit held.csv --contract hf --schedule cosine", f"lr fit {LOGS}/olmo-core/olmo-core-linear",
    ],
    "lr check": [
        "lr check clean.jsonl --expect hf --lr 5e-7 --steps 60 --schedule linear",
        "lr check skips.jsonl --expect hf --lr 5e-7 --steps 60 --schedule linear",
        f"lr check {OLD} --expect hf",
        "lr check jump.csv --expect hf", "lr check dicts.txt --expect hf",
        "lr check two.h5 --expect hf", "lr check constant.csv --expect hf",
    ],
    "lr compare": [
        "lr compare hf hf-4.50 --steps 5", "lr compare olmo-core hf --steps 5 --min-lr-ratio 0",
    ],
    "doctor": [
        "doctor clean.jsonl", "doctor bad.csv", f"doctor {HF}", "doctor dicts.txt",
        "doctor odd.csv",
    ],
    "compare": [
        "compare clean.jsonl skips.jsonl --contract-a hf --contract-b hf",
        "compare clean.jsonl double.jsonl", f"compare {OLD} {HF}",
        "compare same.h5 draws.h5 --run-b test",
        "compare seeds.h5 seeds.h5 --run-b test", "compare lost.h5 lost.h5 --run-b test",
        "compare clean.jsonl odd.csv", "compare groups.csv halved.csv",
        "compare near.csv apart.csv", "compare used.csv used.csv",
        "compare clean.jsonl clean.jsonl", "compare clean.jsonl double.jsonl --floor floor.h5",
    ],
    "suite": ["suite judged"],
    "noise": [
        "noise same.yaml --modes shuffled,order-free --dtypes f32,bf16 --steps 2 --repeat 1",
        "noise same.yaml --modes invariant --dtypes f32 --steps 2 --repeat 1",
        "noise deep.yaml --modes shuffled --dtypes f32 --steps 1 --repeat 1",
    ],
    "noise --ops": ["noise --ops --modes shuffled --dtypes f32"],
    "noise --plan": [
        "noise same.yaml --plan --modes shuffled --dtypes f32 --steps 2 --pairs 20 --alpha 0.05",
        "noise same.yaml --plan --modes shuffled --dtypes f32 --steps 4 --pairs 3",
    ],
    "rollout": ["rollout far.jsonl --floor near.jsonl", "rollout alike.jsonl", "rollout far.jsonl",
                "rollout near.jsonl"],
    "ablate": ["ablate legs.json", "ablate one.json", "ablate kinds.json", "ablate fails.json",
               "ablate noisy.json", "ablate linked.json"],
    "ablate --dry-run": ["ablate kinds.json --dry-run"],
    "replay": ["replay two.h5 --run test --from 2"],
    "replay --divisor": ["replay two.h5 --run test --divisor 2"],
    "parity": [
        "parity two.yaml:baseline --set numerics.compute=bf16 --batches 2 --replicas 3 "
        "--lengths 12 --sizes 1 --repeats 2 --steps 2",
        "parity two.yaml:baseline --set model.norm_eps=1e-3 --components --logits --batches 2 "
        "--replicas 3",
        "parity two.yaml --training",
    ],
    "parity weights": [
        f"parity weights {RUNS}/ok-lr-dpo/step-1 {RUNS}/ok-lr-dpo/step-2",
        f"parity weights {RUNS}/ok-lr-dpo/step-1 {RUNS}/ok-lr-dpo/step-1",
        f"parity weights {RUNS}/ok-lr-dpo/step-1 {RUNS}/plain-adamw/step-1",
    ],
    "certify TRACE": ["certify two.h5", f"certify two.h5 --expect {'0' * 64}"],
    "certify A B": ["certify two.h5 two.h5 --run-b test", "certify two.h5 two.h5"],
    "certify --at": ["certify two.h5 --at 1,3"],
    "certify --equal": ["certify two.h5 --equal 0", "certify two.h5 --equal 2 --differs 3"],
    "certify --weights": ["certify two.h5 --at 3 --weights saved/baseline"],
    "readback": [
        f"readback {RUNS}/{case}/step-1 {RUNS}/{case}/step-2" for case in
        ("ok-lr-dpo", "bug-lr-ahead", "bug-decay-coupled", "plain-lion", "plain-momentum")
    ],
    "readback --against": [f"readback {RUNS}/bug-lr-ahead/step-1 {RUNS}/bug-lr-ahead/step-2 "
         f"--against {RUNS}/bug-lr-behind/step-1 {RUNS}/bug-lr-behind/step-2"],
    "resume-check": [
        f"resume-check {RUNS}/{case}/checkpoint-4 {RUNS}/{case}/checkpoint-5" for case in
        ("restart-ok-hf", "restart-rng-file-lost-hf", "restart-optimizer-file-lost-hf")
    ],
    "resume-check LOG LOG": [
        f"resume-check {HF} {HF}",
        f"resume-check {RESUMED}/whole-0.0.json {RESUMED}/last_epoch-doubled.json --restart 6",
    ],
}


# What takes many trainings, what prints no member and no type that the lines above do not, and the
# members that come from it alone.
WHOLE = {
    "judgement": [f"run {name}.yaml -o other.h5 --overwrite" for name in ("six", "two", "three", "faster", "short")],
    "lr fit": ["lr fit odd.csv"],
    "lr check": ["lr check odd.csv --expect hf"],
    "compare": ["compare odd.csv constant.csv", "compare two.h5 two.h5 --run-b test"],
    "replay": ["replay two.h5"],
    "resume-check LOG LOG": ["resume-check lost.h5 lost.h5 --run-after test --restart 1"],
    "noise --ops": ["noise --ops --modes invariant --dtypes f32"],
    "noise --switches": ["noise same.yaml --switches --steps 2 --repeat 6"],
    "noise --models": [
        "noise --models --modes invariant --dtypes f32 --steps 1 --repeat 1 --threads 1"],
}
ONLY_WHOLE = {
    "judgement": r"sample|causes\[\]\.places",
    "noise --models": "", "model": "", "noise --switches": "", "gradients": "", "price": "",
}


def type_of(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return {str: "string", list: "array", dict: "object"}[type(value)]


class Walk:
    """Adds the type of each member to found[section][member]. A member whose row on the page names
    a shape is walked as that shape, which has a section of its own; what another page tells is not
    walked."""

    def __init__(self, page):
        self.page = page
        self.found = collections.defaultdict(lambda: collections.defaultdict(set))

    def walk(self, value, section, path=""):
        if isinstance(value, dict):
            prefix = f"{path}." if path else ""
            for name, member in value.items():
                told = self.page.get(section, {})
                any_name = prefix + name not in told and prefix + "*" in told
                self.member(member, section, prefix + ("*" if any_name else name))
        elif isinstance(value, list):
            for member in value:
                if not isinstance(member, (dict, list)):
                    self.found[section][path + "[]"].add(type_of(member))
                self.walk(member, section, path + "[]")

    def member(self, value, section, path):
        self.found[section][path].add(type_of(value))
        row = self.page.get(section, {}).get(path)
        if row is None or row.shape is None:
            self.walk(value, section, path)
        elif row.shape != "":
            for below in value if isinstance(value, list) else [value]:
                self.walk(below, row.shape)


def walk_all(page):
    """Runs every line; returns {section: {member: types}}."""
    program = os.environ["TWINSTEP_PROGRAM"]
    walk = Walk(page)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder)

        def run(words):
            done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True,
                                  check=False)
            if done.returncode not in (0, 1, 3) and words[0] not in ("suite", "ablate"):
                raise AssertionError(f"{' '.join(words)}: {done.returncode} {done.stderr}")
            return done.stdout

        for line in BEFORE:
            run(line.split())
        whole = WHOLE if os.environ.get("TWINSTEP_WHOLE") else {}
        for section in {**COMMANDS, **whole}:
            for line in [*COMMANDS.get(section, []), *whole.get(section, [])]:
                walk.walk(json.loads(run([*line.split(), "--json"])), section)
    return walk.found


Row = collections.namedtuple("Row", "types shape")


def read_page():
    """Returns {section: {member: Row}}. A shape of "" is told by another page."""
    page, section = {}, None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip("`").removeprefix("twinstep ")
            page[section] = {}
        row = re.match(r"\| ((?:`[^`]+`(?:, )?)+) \| ([^|]+) \|", line)
        if not row or section is None:
            continue
        shape = re.search(r"\]\(([^)]+)\)", row[2])
        target = None if shape is None else shape[1][1:] if shape[1][0] == "#" else ""
        for member in re.findall(r"`([^`]+)`", row[1]):
            if member in page[section]:
                raise AssertionError(f"{section}: {member} stands on the page twice")
            page[section][member] = Row(set(MEANT.findall(re.sub(r"\[.*", "", row[2]) +
                                                          row[2][row[2].find(")") + 1:])), target)
    return page


class Page(unittest.TestCase):
    def test_members(self):
        page = read_page()
        printed = walk_all(page)
        wrong = []
        left_out = {} if os.environ.get("TWINSTEP_WHOLE") else ONLY_WHOLE
        for section in sorted({*page, *printed}):
            told, came = page.get(section, {}), printed.get(section, {})
            wrong += [f"{section}: {m} ({'/'.join(sorted(came[m]))}) is printed and not on the page"
                      for m in came if m not in told]
            wrong += [f"{section}: {m} is on the page and no input printed it"
                      for m in told if m not in came and m not in NOT_EVERYWHERE.get(section, ())
                      and not (section in left_out and re.match(left_out[section], m))]
            for m in told.keys() & came.keys():
                types = told[m].types | ({"integer"} if "number" in told[m].types else set())
                if not came[m] <= types:
                    wrong.append(f"{section}: {m} is {'/'.join(sorted(came[m] - types))}, the page "
                                 f"says {'/'.join(sorted(types))}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


if __name__ == "__main__":
    unittest.main()
