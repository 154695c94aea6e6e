# SPDX-License-Identifier: Apache-2.0
"""Makes the fixture folders next to this script: python generate.py ERA [NAME ...]

ERA is the folder for runs of the installed release of transformers (hf5, hf455, hf451, hf446 or hf436), or
lightning, accelerate, olmo-core. See README.md. Each run is a process of its own in an empty folder;
what it prints becomes console.txt; output that names a path of this machine is refused."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

NEW = ["hf-linear", "hf-linear-cold", "hf-cosine", "hf-constant-warmup", "hf-cosine-min",
       "hf-polynomial", "hf-inverse-sqrt", "hf-restarts", "hf-wsd", "hf-epochs", "hf-progress",
       "hf-nan", "hf-resume", "hf-two-processes", "dpo-linear", "dpo-linear-cold", "dpo-cosine",
       "dpo-fast", "sft-cosine"]
ERAS = {
    "hf5": NEW,
    "hf455": ["hf-linear", "hf-epochs", "hf-resume", "dpo-linear", "dpo-linear-cold"],
    "hf451": ["hf-linear", "hf-epochs"],
    "hf446": ["hf-linear", "hf-cosine", "hf-epochs", "hf-nan", "hf-resume", "hf-two-processes",
              "dpo-linear", "dpo-linear-cold"],
    "hf436": ["hf-linear", "hf-cosine", "hf-epochs", "hf-resume"],
    "lightning": ["lightning-step", "lightning-epoch"],
    "olmo-core": ["olmo-core-linear", "olmo-core-linear-cold", "olmo-core-cosine", "olmo-core-wsd"],
    "accelerate": ["accelerate-both", "accelerate-none", "accelerate-total"],
}
KEEP = ("trainer_state.json", "truth.json", "truth-before.json", "metrics.csv", "metrics.jsonl",
        "console.txt")


def command(era, name):
    script = os.path.join(HERE, "runs_olmo.py" if era == "olmo-core" else "runs.py")
    if era == "accelerate" or name == "hf-two-processes":  # two real processes, gloo
        return [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2",
                "--master_addr", "127.0.0.1", "--master_port", "29517", script, name]
    return [sys.executable, "-W", "ignore", script, name]


def collect(work, era, name):
    """Keeps logs only; event files lose their time and process number, which say nothing."""
    target = os.path.join(HERE, era, name)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    for file in glob.glob(os.path.join(work, "out", "metrics*.json")):  # of OLMo-core
        shutil.copy(file, target)
    for file in KEEP:
        if os.path.exists(os.path.join(work, file)):
            shutil.copy(os.path.join(work, file), target)
    events = glob.glob(os.path.join(work, "events", "**", "events.out.tfevents.*"), recursive=True)
    for index, file in enumerate(sorted(events), start=1):
        shutil.copy(file, os.path.join(target, f"events.out.tfevents.{index}.host"))
    for file in os.listdir(target):
        with open(os.path.join(target, file), "rb") as content:
            data = content.read()
        for word in (work, tempfile.gettempdir(), os.path.expanduser("~"), HERE):
            assert word.encode() not in data, f"{target}/{file} names {word}"


def run(era, name):
    with tempfile.TemporaryDirectory() as work:
        # Progress bars go to standard error, and a person's console shows both.
        both = name == "hf-progress"
        environment = {**os.environ, "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command(era, name), cwd=work, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT if both else subprocess.PIPE)
        if done.returncode:
            raise SystemExit(f"{era}/{name}: {(done.stderr or done.stdout).decode()[-2000:]}")
        if era.startswith(("hf", "olmo")):
            with open(os.path.join(work, "console.txt"), "wb") as out:
                out.write(done.stdout)
        collect(work, era, name)
    print(f"{era}/{name}", flush=True)


def main():
    era = sys.argv[1]
    for name in sys.argv[2:] or ERAS[era]:
        run(era, name)


if __name__ == "__main__":
    main()
