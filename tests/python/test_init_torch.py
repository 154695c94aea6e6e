# SPDX-License-Identifier: Apache-2.0
"""labels: torch

twinstep.init from the objects themselves, of the transformers and TRL that are installed: each
scenario loads, and holds what was set; and what a file of settings leaves out has the default of
the dataclass."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import SchedulerType
from transformers.training_args import OptimizerNames
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

    def scenario(self, config):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(config), encoding="utf-8")
            return subprocess.run([PROGRAM, "init", "--from-trl", path], capture_output=True, text=True,
                                  check=True).stdout

    def test_verify_every_optimizer_of_a_trainer_is_ours_or_named(self):
        """What each name of transformers becomes; the others are comments, and none is passed over."""
        ours = {"adamw_torch": "adamw", "adamw_torch_fused": "adamw", "sgd": "sgd",
                "adafactor": "adafactor", "lion_32bit": "lion", "paged_lion_32bit": "lion"}
        names = [name.value for name in OptimizerNames]
        self.assertLessEqual(set(ours), set(names))
        for name in names:
            made = self.scenario({"optim": name, "packing": False})
            set_to = re.search(r"^    name: (\S+) +# optim$", made, re.M)
            with self.subTest(name=name):
                self.assertEqual(set_to and set_to[1], ours.get(name))
                self.assertEqual(f'got "{name}"' in " ".join(made.replace("\n#", " ").split()), name not in ours)
                self.assertEqual("# - optim: so adamw, the default" in made, name not in ours)

    def test_validate_moments_are_those_that_a_trainer_gives(self):
        """Of each optimizer that is ours: beta1 is written where the trainer's own class gets it."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("adamw_torch", "adamw_torch_fused", "sgd", "adafactor"):
                config = TrainingArguments(output_dir=folder, use_cpu=True, optim=name, adam_beta1=0.8)
                _, given = Trainer.get_optimizer_cls_and_kwargs(config)
                expected = given.get("beta1", given.get("betas", (None,))[0])
                for of in ({"optim": name, "adam_beta1": 0.8}, json.loads(config.to_json_string())):
                    found = re.search(r"^    beta1: (\S+)", self.scenario(of), re.M)
                    with self.subTest(name=name):
                        self.assertEqual(found and float(found[1]), expected)

    def answer(self, kind, name, value):
        """What init says of one setting, and of one that makes the task plain."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            plain = {"beta": 0.1} if kind is DPOConfig else {"packing": False}
            path.write_text(json.dumps({**plain, name: value}), encoding="utf-8")
            return subprocess.run([PROGRAM, "init", "--from-trl", path], capture_output=True, text=True,
                                  check=False)

    def test_verify_types_are_those_of_the_dataclass(self):
        """A value of another type is refused, and null is, but where the dataclass has it."""
        kinds = {"float": 0.25, "int": 3, "bool": True, "dict": {"x": 1}}
        seen = set()
        for kind in (DPOConfig, SFTConfig):
            for field in dataclasses.fields(kind):
                types = [one.strip() for one in getattr(field.type, "__name__", str(field.type)).split("|")]
                if str(field.type).count("|"):
                    types = [one.strip() for one in str(field.type).split("|")]
                with self.subTest(kind=kind.__name__, name=field.name, types=types):
                    wrong = self.answer(kind, field.name, "a word")
                    if wrong.returncode == 0:
                        continue            # a name that is not translated, or one that is a word
                    self.assertEqual(wrong.returncode, 2, wrong.stderr)
                    self.assertIn(f"{field.name}: expected ", wrong.stderr)
                    seen.add(field.name)
                    null = self.answer(kind, field.name, None).returncode
                    # bool: null is off; max_grad_norm: older trainers take null
                    self.assertEqual(null == 0, "None" in types or "bool" in types
                                     or field.name == "max_grad_norm")
                    for one in types:
                        if one in kinds:
                            right = self.answer(kind, field.name, kinds[one])
                            self.assertEqual(right.returncode, 0, right.stderr)
        self.assertLessEqual({"learning_rate", "max_steps", "bf16", "beta", "optim", "lr_scheduler_type",
                              "loss_type", "f_divergence_type", "packing", "seed", "warmup_steps"}, seen)
        self.assertGreaterEqual(len(seen), 30)

    def test_verify_every_name_of_a_list_is_known(self):
        """Names of schedules, optimizers and losses: an error is for those that no trainer has."""
        losses = {}
        for kind in (DPOConfig, SFTConfig):
            text = kind.__doc__.split("loss_type (")[1].split("activation_offloading")[0]
            text = text.split("loss_weights")[0]
            losses[kind] = re.findall(r"`['\"]([a-z_]+)['\"]`", text.split("Possible values", 1)[1])
        self.assertIn("apo_down", losses[DPOConfig])
        self.assertIn("dft", losses[SFTConfig])
        divergences = re.search(r"f_divergence_type.*?Possible values are:(.*?)Only", DPOConfig.__doc__, re.S)
        for kind, name, values in (
                (DPOConfig, "lr_scheduler_type", [one.value for one in SchedulerType]),
                (DPOConfig, "optim", [one.value for one in OptimizerNames]),
                (DPOConfig, "loss_type", losses[DPOConfig]), (SFTConfig, "loss_type", losses[SFTConfig]),
                (DPOConfig, "f_divergence_type", re.findall(r"`([a-z_]+)`", divergences[1]))):
            self.assertGreaterEqual(len(values), 3, name)
            for value in values:
                with self.subTest(name=name, value=value):
                    said = self.answer(kind, name, value)
                    self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(self.answer(kind, name, values[0] + "x").returncode, 2)

    def test_verify_defaults_are_those_of_the_dataclass(self):
        for kind, name, value in ((DPOConfig, "beta", 0.1), (SFTConfig, "packing", False)):
            made = self.scenario({name: value})
            fields = {field.name: field for field in dataclasses.fields(kind)}
            shown = re.findall(r"^ +(\w+): (\S+) +# (\w+), not set(?:; autocast)?$", made, re.M)
            self.assertGreaterEqual(len(shown), 14, made)
            for key, text, of in shown:
                field = fields[of]
                default = field.default
                if default is dataclasses.MISSING:
                    default, = field.default_factory()      # loss_type: a list of one
                with self.subTest(kind=kind.__name__, of=of, default=default):
                    if of == "bf16":                        # None: on where fp16 is off
                        self.assertIsNone(default)
                        self.assertTrue(kind(output_dir="out", use_cpu=True).bf16)
                        self.assertEqual(text, "bf16")
                    elif of == "optim":
                        self.assertEqual(default, "adamw_torch_fused")
                        self.assertIn((key, text), (("name", "adamw"), ("variant", "torch-fused")))
                    elif of == "precompute_ref_log_probs":
                        self.assertEqual((default, text), (False, "live"))
                    elif of == "average_tokens_across_devices":
                        self.assertEqual((default, text), (True, "update"))
                    elif isinstance(default, str):
                        self.assertEqual(default.replace("_", "-"), text)
                    else:
                        self.assertEqual(float(default), float(text))
            self.assertIn(f"# - num_train_epochs: {fields['num_train_epochs'].default}, not set: ", made)
            self.assertEqual(fields["gradient_accumulation_steps"].default, 1)  # a factor of batch.size

    def test_verify_a_file_without_a_name_is_the_object_without_one(self):
        """Every key of the scenario, also those that no row of the program's table has."""
        with tempfile.TemporaryDirectory() as folder:
            for kind, name, value in ((DPOConfig, "beta", 0.1), (SFTConfig, "packing", False)):
                whole = kind(output_dir=folder, use_cpu=True).to_json_string()
                keys = [[line.split("#")[0].rstrip() for line in self.scenario(config).splitlines()
                         if not line.startswith("#")]
                        for config in (json.loads(whole), {name: value})]
                self.assertEqual(*keys)


if __name__ == "__main__":
    unittest.main()
