#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records logs of runs that transformers' Trainer resumed with a larger max_steps.

    extended_logs.py FOLDER

For each schedule it trains the model of resume_logs.py with max_steps of 40, goes on from the checkpoint
of update 20 with max_steps of 60, and writes FOLDER/SCHEDULE.json, the trainer_state.json of the second
run, whose rows up to 20 are those of the first. tests/golden/extended holds what it wrote with
transformers 5.24.0, and tests/forensics/test_fit_breaks.c reads it."""
import os
import shutil
import sys
import tempfile

from resume_logs import in_child

CASES = {"linear": dict(warmup_steps=4), "cosine": dict(warmup_steps=4),
         # a share of the total, which moves with it: 4 updates, then 6
         "linear-share": dict(warmup_steps=0.1), "cosine-share": dict(warmup_steps=0.1)}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: extended_logs.py FOLDER")
    os.makedirs(sys.argv[1], exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="twinstep-extended-") as folder:
        for name, changed in CASES.items():
            arguments = dict(changed, learning_rate=2e-3, save_steps=20, lr_scheduler_type=name.split("-")[0])
            first, second = os.path.join(folder, f"{name}-first"), os.path.join(folder, f"{name}-second")
            in_child(first, 0.0, None, dict(arguments, max_steps=40))
            checkpoint = os.path.join(second, "checkpoint-20")
            shutil.copytree(os.path.join(first, "checkpoint-20"), checkpoint)
            in_child(second, 0.0, checkpoint, dict(arguments, max_steps=60))
            shutil.copyfile(os.path.join(second, "trainer_state.json"),
                            os.path.join(sys.argv[1], f"{name}.json"))


if __name__ == "__main__":
    main()
