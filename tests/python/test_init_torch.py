# SPDX-License-Identifier: Apache-2.0
"""labels: torch

twinstep.init from the objects themselves, of the transformers and TRL that are installed: each
scenario loads, and holds what was set."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from transformers import TrainingArguments
from trl import DPOConfig, SFTConfig

import twinstep

PROGRAM = os.environ["TWINSTEP_PROGRAM"]


class Init(unittest.TestCase):
    def test_verify_real_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            set_here = {"output_dir": folder, "learning_rate": 3e-5, "max_steps": 7,
                        "warmup_steps": 2, "weight_decay": 0.02, "seed": 11, "use_cpu": True}
            for config, lines in (
                    (TrainingArguments(**set_here), ["task: sft"]),
                    (SFTConfig(bf16=False, max_length=96, **set_here), ["task: sft", "max_len: 96"]),
                    (DPOConfig(bf16=False, beta=0.25, loss_type="ipo", **set_here),
                     ["task: dpo", "beta: 0.25", "loss: ipo"])):
                kind = type(config).__name__
                made = twinstep.init(config, pathlib.Path(folder) / f"{kind}.yaml")
                said = [" ".join(line.split("#")[0].split()) for line in
                        made.read_text(encoding="utf-8").splitlines()]
                for line in ["lr: 3e-05", "steps: 7", "warmup: 2", "weight_decay: 0.02", "seed: 11",
                             "contract: hf", "name: linear", *lines]:
                    self.assertIn(line, said, kind)
                done = subprocess.run([PROGRAM, "check", "--json", made], capture_output=True,
                                      text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(json.loads(done.stdout), kind)
                self.assertRaisesRegex(twinstep.ProgramError, "exists", twinstep.init, config, made)


if __name__ == "__main__":
    unittest.main()
