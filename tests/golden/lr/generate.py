# SPDX-License-Identifier: Apache-2.0
"""Writes the LR golden files next to this script: python generate.py [part ...]

See README.md for the environment. Deterministic: a part's cases come from a fixed seed.
"""

import argparse
import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version

warnings.filterwarnings("ignore")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import golden  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def versions(*names):
    found = {"python": sys.version.split()[0]}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found


def installed_file(*path):
    """A file of an installed package, without importing the package."""
    for folder in sys.path:
        name = os.path.join(folder, *path)
        if os.path.isfile(name):
            return name
    raise SystemExit("not installed: " + "/".join(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--old-deepspeed", help="lr_schedules.py of deepspeed 0.14.0")
    parser.add_argument("--deepspeed-source", help="unpacked source of deepspeed 0.14.0")
    arguments = parser.parse_args()
    import engines
    import eras
    import from_logs
    import loops
    import skips
    import trainers
    import tune

    parts = {
        "transformers": (loops.transformers_cases, ("torch", "transformers")),
        "accelerate": (loops.accelerate_cases, ("torch", "accelerate", "transformers")),
        "olmo-core": (loops.olmo_cases, ("torch", "ai2-olmo-core")),
        "megatron": (loops.megatron_cases, ("torch", "megatron-core")),
        "torchtune": (lambda: loops.torchtune_cases(
            installed_file("torchtune", "training", "lr_schedulers.py")), ("torch", "torchtune")),
        "torchtitan": (loops.torchtitan_cases, ("torch", "torchtitan")),
        "veomni": (lambda: loops.veomni_cases(installed_file("veomni", "optim", "lr_scheduler.py")),
                   ("torch", "veomni")),
        "nemo-rl": (loops.nemo_rl_cases, ("torch",)),
        "torch": (loops.torch_cases, ("torch",)),
        "lightning": (trainers.lightning_cases, ("torch", "lightning", "transformers")),
        "trainer": (trainers.trainer_cases, ("torch", "transformers", "accelerate")),
    }
    parts["deepspeed-engine"] = (trainers.deepspeed_engine_cases,
                                 ("torch", "deepspeed", "transformers"))
    parts["skips"] = (skips.cases, ("torch", "accelerate", "lightning", "megatron-core", "deepspeed",
                                    "transformers"))
    parts["olmo-core-trainer"] = (skips.olmo_cases, ("torch", "ai2-olmo-core"))
    parts["logs"] = (from_logs.log_cases, ())
    if arguments.old_deepspeed:
        parts["deepspeed"] = (lambda: loops.deepspeed_cases(arguments.old_deepspeed),
                              ("torch", "deepspeed"))
    parts["trainer-old"] = (trainers.trainer_old_cases, ("torch", "transformers", "accelerate"))
    parts["trainer-eras"] = (eras.cases, ("torch", "transformers", "accelerate"))
    parts["deepspeed-engine-old"] = (lambda: engines.cases(arguments.deepspeed_source),
                                     ("torch", "transformers"))
    parts["torchtune-recipe"] = (lambda: tune.cases(
        installed_file("recipes", "full_finetune_single_device.py")),
        ("torch", "torchtune", "torchao"))
    elsewhere = ("trainer-old", "trainer-eras", "deepspeed-engine-old", "torchtune-recipe")
    chosen = arguments.parts or [part for part in parts if part not in elsewhere]
    for part in chosen:
        cases, names = parts[part]
        found = versions(*names)
        if part == "deepspeed":
            found["deepspeed (rows -old)"] = "0.14.0"
        if part == "deepspeed-engine-old":
            found["deepspeed"] = "0.14.0"
        write = golden.merge if part == "trainer-eras" else golden.write
        write(os.path.join(HERE, part + ".txt"), part, found, cases())


if __name__ == "__main__":
    main()
