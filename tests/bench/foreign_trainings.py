#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes trainings of real libraries with checkpoints of consecutive updates, and their truth.

    foreign_trainings.py --list [--set committed|large|all]
    foreign_trainings.py --out FOLDER [--only NAME]... [--set committed|large|all]

Every case is trained in a process of its own, on one thread of the CPU, from a model of at most
5,000 random weights; no network is used. FOLDER/NAME gets the checkpoints, the log and truth.json:
the LR, decay, count and norm of every update as torch's own hooks around the optimizer's step saw
them, and the slip that was planted, if any. It needs what foreign_requirements.txt names. The
cases of the set `committed` lie in tests/golden/foreign/runs; those of the set `large` are made
where they are needed."""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import foreign_parts as parts  # noqa: E402
from foreign_cases import CASES  # noqa: E402

# What a resumed training needs and a reader of weights does not; kept in the cases marked `whole`.
DROPPED = ("training_args.bin", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
           "special_tokens_map.json", "chat_template.jinja", "README.md", "rng_state.pth",
           "random_states_0.pkl", "sampler.bin", "rng.pt")
ABOUT = ("name", "kind", "planted", "plant_of", "sees", "note")


def versions(kind):
    names = {"torch": (), "accelerate": ("accelerate",), "lightning": ("lightning",),
             "hf-trainer": ("transformers", "accelerate"),
             "trl-sft": ("transformers", "accelerate", "trl"),
             "trl-dpo": ("transformers", "accelerate", "trl")}[kind]
    return parts.versions(*dict.fromkeys(("transformers", "safetensors", *names)))


def clean(target, case):
    """Takes out what no reader of weights looks at, and sees that no machine's place is named."""
    arguments = set()
    for folder, _, files in sorted(os.walk(target)):
        for name in sorted(files):
            path = os.path.join(folder, name)
            if name in DROPPED and not case["whole"] and not (
                    "rng" in case["name"] and name in ("rng_state.pth", "rng.pt")):
                os.remove(path)
                continue
            with open(path, "rb") as file:
                held = file.read()
            if name == "training_args.bin" and held in arguments: # one training has one of them
                os.remove(path)
                continue
            if name == "training_args.bin":
                arguments.add(held)
            for word in (tempfile.gettempdir(), os.path.expanduser("~"), HERE):
                if word.encode() in held:
                    raise SystemExit(f"{path} names {word}")


def one(case, target):
    """Trains one case; the process is this case's alone."""
    from foreign_libraries import run_accelerate, run_hf, run_lightning
    from foreign_plain import train

    parts.torch.set_num_threads(1)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        options = dict(case["options"])
        if case["kind"] == "torch":
            truth, loop = train(options, target)
            if options.get("restart"):
                with tempfile.TemporaryDirectory() as other:
                    loop.notes.stop()
                    _, whole = train({**options, "restart": {"at": 10 ** 9}}, other)
                truth["equals_uninterrupted"] = all(
                    bool((mine == theirs).all()) for mine, theirs in zip(
                        loop.model.state_dict().values(), whole.model.state_dict().values()))
        else:
            run = {"accelerate": run_accelerate, "lightning": run_lightning}.get(
                case["kind"], run_hf)
            options.update({"trl-sft": {"trainer": "sft"}, "trl-dpo": {"trainer": "dpo"}}.get(
                case["kind"], {}))
            truth = run(options, target)
        os.chdir(HERE)
    clean(target, case)
    truth.update({key: case[key] for key in ABOUT if key in case})
    truth.update(versions=versions(case["kind"]), healthy=case["planted"] is None)
    if options.get("restart"):
        truth["restart_after_update"] = options["restart"]["at"]
    parts.write_json(os.path.join(target, "truth.json"), truth)


def guarded(case, target):
    try:
        one(case, target)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def chosen(arguments):
    picked = [case for case in CASES if arguments.set in ("all", case["set"])]
    if arguments.only:
        picked = [case for case in CASES if case["name"] in arguments.only]
        missing = set(arguments.only) - {case["name"] for case in picked}
        if missing:
            raise SystemExit("no such case: " + ", ".join(sorted(missing)))
    return picked


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--out", metavar="FOLDER")
    parser.add_argument("--set", choices=("committed", "large", "all"), default="committed")
    arguments = parser.parse_args()
    picked = chosen(arguments)
    if arguments.list:
        for case in picked:
            print(case["name"], case["kind"], case["planted"] or "healthy", sep="\t")
        return 0
    if not arguments.out:
        parser.error("--out FOLDER says where the cases are written")
    import trl  # noqa: F401  (before the fork: each case would import it again)
    import transformers.trainer  # noqa: F401
    import lightning  # noqa: F401

    failed = []
    for case in picked:
        target = os.path.join(os.path.abspath(arguments.out), case["name"])
        child = multiprocessing.get_context("fork").Process(target=guarded, args=(case, target))
        child.start()
        child.join()
        print(case["name"], "failed" if child.exitcode else "made", flush=True)
        failed += [case["name"]] if child.exitcode else []
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
