# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Scenarios from arguments of trainers: the JSON of DPOConfig and SFTConfig of TRL 1.16 as they are
without any setting (to_json_string), and configs written here; each scenario loads, holds what the
config said as `twinstep check` resolves it, and names what does not translate."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import twinstep

CONFIGS = pathlib.Path(__file__).resolve().parents[1] / "golden/configs"
PROGRAM = os.environ["TWINSTEP_PROGRAM"]


class Init(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def say(self, config, *more, status=0):
        """What init says of a config: a path, a text, or a dict."""
        if not isinstance(config, pathlib.Path):
            text = config if isinstance(config, str) else json.dumps(config)
            config = self.folder / "config.yaml"
            config.write_text(text, encoding="utf-8")
        done = subprocess.run([PROGRAM, "init", "--from-trl", config, *more], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else done.stdout

    def resolved(self, scenario):
        """The keys of the baseline as the program resolves them."""
        file = self.folder / "made.yaml"
        file.write_text(scenario, encoding="utf-8")
        done = subprocess.run([PROGRAM, "check", "--json", file], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def key(self, scenario, section, key):
        """The text of a key of `common`, as it is written."""
        lines = iter(scenario.splitlines())
        for line in lines:
            if line == f"  {section}:":
                for inner in lines:
                    if not inner.startswith("    "):
                        break
                    if inner.strip().startswith(f"{key}: "):
                        return inner.split("#")[0].split(": ", 1)[1].strip()
        return None

    def test_validate_defaults_of_trl(self):
        dpo = self.say(CONFIGS / "trl_dpo.json")
        self.resolved(dpo)
        for section, key, value in (
                ("optimizer", "lr", "1e-06"), ("optimizer", "name", "adamw"),
                ("optimizer", "variant", "torch-fused"), ("schedule", "contract", "hf"),
                ("schedule", "name", "linear"), ("clip", "max_norm", "1.0"),
                ("batch", "size", "8"), ("dpo", "beta", "0.1"), ("dpo", "loss", "sigmoid"),
                ("dpo", "f_divergence", "reverse-kl"), ("dpo", "reference", "live"),
                ("loss", "divisor", "mean-of-means"), ("data", "max_len", "1024"),
                ("numerics", "compute", None)):
            self.assertEqual(self.key(dpo, section, key), value, (section, key))
        self.assertIn("  task: dpo ", dpo)
        self.assertIn("# - num_train_epochs: 3.0: write schedule.total", dpo)
        self.assertIn("disable_dropout", dpo)
        self.assertNotIn("logging_steps", dpo)
        self.assertIn("ref_model_mixup_alpha, ref_model_sync_steps (the reference stays the", dpo)
        self.assertNotIn("here: output_dir", dpo)
        self.assertNotIn("HUB_TOKEN", dpo)
        sft = self.say(CONFIGS / "trl_sft.json")
        self.resolved(sft)
        self.assertIn("  task: sft ", sft)
        self.assertEqual(self.key(sft, "loss", "divisor"), "update")
        self.assertEqual(self.key(sft, "optimizer", "lr"), "2e-05")
        self.assertIsNone(self.key(sft, "dpo", "loss"))

    def test_verify_what_is_not_set_has_the_trainers_default(self):
        """A file of settings holds what somebody set; without a line the scenario of the whole
        dataclass and that of the one name are the same, but for bf16, which the committed
        configs turn off."""
        for task, one in (("dpo", {"beta": 0.1}), ("sft", {"packing": False})):
            whole = self.say(CONFIGS / f"trl_{task}.json")
            made = self.say({**one, "bf16": False})
            keys = [[line.split("#")[0].rstrip() for line in text.split("# Not translated")[0].splitlines()
                     if not line.startswith("#")] for text in (whole, made)]
            self.assertEqual(*keys)
            self.assertNotIn("not set", whole)
            kind = {"dpo": "DPOConfig", "sft": "SFTConfig"}[task]
            self.assertIn(f'# "not set" marks defaults of {kind} in TRL 1.16, which another', made)
            self.assertIn("# - num_train_epochs: 3.0, not set: write schedule.total", made)
            self.assertRegex(made, r"\n    lr: [12]e-0[65] +# learning_rate, not set\n")
            self.assertRegex(made, r"# per_device_train_batch_size \(not set\) x gradient_accumulation_steps "
                                   r"\(not set\), of one process\n")
            self.resolved(made)
            made = self.say(one)
            self.assertRegex(made, r"\n    compute: bf16 +# bf16, not set; autocast\n")
            self.resolved(made)
            made = self.say({**one, "fp16": True})
            self.assertEqual(self.key(made, "numerics", "compute"), "f16")
        made = self.say({"beta": 0.1, "bf16": None})
        self.assertRegex(made, r"\n    compute: bf16 +# bf16, not set; autocast\n")
        made = self.say({"beta": 0.1, "max_length": None})
        self.assertIsNone(self.key(made, "data", "max_len"))
        self.assertIn("# - max_length: none, so the trainer cuts no row; here data.max_len cuts: set it", made)
        # kOptimizer32bit1State of bitsandbytes (csrc/kernels.cu): g + weight_decay p, also for Lion
        for decay, there in ((0.0, "0.0"), (0.1, None)):
            made = self.say({"optim": "paged_lion_32bit", "weight_decay": decay})
            self.assertEqual((self.key(made, "optimizer", "name"), self.key(made, "optimizer", "weight_decay")),
                             ("lion", there))
            self.assertEqual("# - weight_decay: bitsandbytes adds" in made, there is None)
        for set_here in ({}, {"adam_beta1": 0.8, "adam_epsilon": 1e-6}):
            made = self.say({"optim": "adafactor", **set_here})     # to which no trainer gives them
            self.assertEqual(self.key(made, "optimizer", "name"), "adafactor")
            for key in ("beta1", "beta2", "eps"):
                self.assertIsNone(self.key(made, "optimizer", key), key)
            self.assertEqual(made.count(": a trainer does not give it to Adafactor"), len(set_here))
        self.assertEqual(self.key(self.say({"optim": "adamw_torch", "adam_beta1": 0.8}), "optimizer",
                                  "beta1"), "0.8")
        made = self.say({"optim": "sgd"})           # which has no betas: nobody asked for them
        self.assertNotIn("# - adam_beta1", made)
        self.assertIn("# - adam_beta1: optimizer.beta1 belongs to", self.say({"optim": "sgd", "adam_beta1": 0.9}))
        made = self.say({"bf16": True, "fp16": True})       # a scenario that loads has compute once
        self.assertIn("# - fp16: true: bf16 is true, too, and a trainer takes one of them\n", made)
        self.assertEqual(self.key(made, "numerics", "compute"), "bf16")
        self.resolved(made)

    def test_verify_booleans_as_the_trainer_reads_them(self):
        """What PyYAML and then string_to_bool() of transformers give: TrlParser of TRL 1.16 made
        fp16 true (or 1) or false of each of these, and refused those of the last list."""
        for text in ("yes", "YES", "on", "On", "ON", "true", "TRUE", "1", "y", "Y", '"yes"', "'true'", '"1"', "yEs"):
            made = self.say(f"packing: {text}\nfp16: {text}\n")
            self.assertEqual(self.key(made, "numerics", "compute"), "f16", made)
            self.assertEqual(self.key(made, "batch", "padding"), "packed", made)
            made = self.say(f"bf16: {text}\npadding_free: {text}\n")
            self.assertRegex(made, r"\n    compute: bf16 +# bf16, autocast\n")
            self.assertEqual(self.key(made, "batch", "padding"), "packed", made)
        for text in ("no", "Off", "OFF", "FALSE", "0", "n", '"no"', "~"):
            made = self.say(f"bf16: false\nfp16: {text}\npacking: {text}\ngroup_by_length: {text}\n")
            self.assertIsNone(self.key(made, "numerics", "compute"), made)
            self.assertNotIn("# - fp16", made)
            self.assertNotIn("# - packing", made)
            self.assertNotIn("group_by_length", made)
        for text in ("maybe", '"on"', '"off"', "2", "[1, 2]", '""'):
            for name in ("fp16", "bf16", "tf32", "full_determinism", "average_tokens_across_devices",
                         "padding_free", "packing"):
                self.refuse(f"max_steps: 3\n{name}: {text}\n", f":2:{len(name) + 3}: error: {name}: "
                            "expected true or false, got ")
        made = self.say("packing: [true]\n")         # a list of one is its value, as everywhere
        self.assertEqual(self.key(made, "batch", "padding"), "packed", made)
        self.assertNotIn("# - packing", made)
        self.refuse("beta: 0.1\nprecompute_ref_log_probs: sometimes\n",
                    ':2:27: error: precompute_ref_log_probs: expected true or false, got "sometimes"\n')
        self.assertEqual(self.key(self.say("beta: 0.1\nprecompute_ref_log_probs: On\n"), "dpo", "reference"), "cached")

    def test_verify_what_is_computed(self):
        made = self.say({"beta": 0.2, "max_steps": 1000, "num_train_epochs": 2,
                         "per_device_train_batch_size": 2, "gradient_accumulation_steps": 8,
                         "bf16": True, "warmup_steps": 0.25, "precompute_ref_log_probs": True,
                         "lr_scheduler_type": "cosine_with_min_lr", "learning_rate": 5e-7,
                         "lr_scheduler_kwargs": {"min_lr_rate": 0.125}, "loss_type": ["exo_pair"],
                         "label_smoothing": 0.01, "padding_free": True})
        for section, key, value in (
                ("batch", "size", "16"), ("batch", "micro", "2"), ("schedule", "total", "1000"),
                ("schedule", "warmup_ratio", "0.25"), ("schedule", "min_lr_ratio", "0.125"),
                ("numerics", "compute", "bf16"), ("dpo", "reference", "cached"),
                ("dpo", "loss", "exo-pair"), ("batch", "padding", "packed")):
            self.assertEqual(self.key(made, section, key), value, made)
        self.assertIn("\nsteps: 20 ", made)
        self.assertNotIn("num_train_epochs", made)
        self.assertNotIn("Not translated", made)
        self.resolved(made)
        few = self.say({"max_steps": 7, "warmup_steps": 3, "fp16": True})
        self.assertIn("\nsteps: 7 ", few)
        self.assertEqual(self.key(few, "schedule", "warmup"), "3")
        self.assertEqual(self.key(few, "scaler", "kind"), "dynamic")
        self.resolved(few)

    def test_verify_what_does_not_translate_is_said(self):
        made = self.say({"beta": 0.1, "optim": "paged_adamw_8bit", "loss_type": ["sigmoid", "sft"],
                         "learning_rate": 1e20, "lr_scheduler_type": "greedy",
                         "model_name_or_path": "a/b", "neftune_noise_alpha": 5, "fsdp": "",
                         "deepspeed": None, "hub_token": "hf_secret", "weight_decay": 2e9})
        self.resolved(made)
        for words in ('optim: optimizer.name: expected one of', "optim: so adamw, the default here", "loss_type: a sum of several losses",
                      "learning_rate: optimizer.lr: expected", "lr_scheduler_type: schedule.name",
                      "model_name_or_path: a/b: here it is model.from", "weight_decay: optimizer.w",
                      "no counterpart here: neftune_noise_alpha (no noise is added to embeddings)\n"):
            self.assertIn(f"# - {words}", made)
        self.assertNotIn("hf_secret", made)
        self.assertIsNone(self.key(made, "optimizer", "lr"))

    def refuse(self, text, words):
        """A config whose error names file, line, column and name; nothing is written."""
        out = self.folder / "never.yaml"
        said = self.say(text, "-o", out, status=2)
        self.assertIn(f"config.yaml{words}", said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse(out.exists())

    def test_verify_a_number_that_is_none_is_an_error(self):
        """What a trainer would refuse, by the rules of transformers, torch and numpy; what it takes
        for "not set" is neither an error nor a comment."""
        whole, least, share = "a whole number from 1 to 2^53", "a number >= 0", "a number >= 0 and < 1"
        any_whole = "a whole number from -2^53 to 2^53"
        none = ("fast", ".nan", "NaN", "true", "[1, 2]", "{a: 1}", '""', "1e-5x", "0x10")
        for name, values, expected in (
                ("max_steps", (*none, "~", "0.5", "1e30", ".inf"), any_whole),
                ("per_device_train_batch_size", (*none, "~", "0.4", "1.5", "0", "-2"), whole),
                ("gradient_accumulation_steps", (*none, "~", "1.5", "-1"), whole),
                ("max_length", (*none, "0", "-1", "2.5"), whole),
                ("num_train_epochs", (*none, "~", "-3"), least),
                ("warmup_steps", (*none, "~", "-4"), least), ("warmup_ratio", (*none, "-0.1"), least),
                ("learning_rate", (*none, "~", "-1", ".inf"), least),
                ("weight_decay", (*none, "~", "-0.1"), least),
                ("adam_epsilon", (*none, "~", "-1e-8"), least),
                ("adam_beta1", (*none, "~", "1.0", "-0.1"), share),
                ("adam_beta2", (*none, "~", "1.5"), share),
                ("max_grad_norm", none, "a number"),
                ("seed", (*none, "~", "-1", "1.5", "4294967296"), "a whole number from 0 to 2^32 - 1"),
                ("data_seed", (*none, "1.5"), any_whole),
                ("beta", (*none, "~"), "a number"), ("label_smoothing", (*none, "~"), "a number"),
                ("discopop_tau", (*none, "~"), "a number"),
                ("f_alpha_divergence_coef", (*none, "~"), "a number")):
            for value in values:
                self.refuse(f"precompute_ref_log_probs: no\n{name}: {value}\n",
                            f":2:{len(name) + 3}: error: {name}: expected {expected}, got ")
        for name, value in (("max_steps", 0), ("max_steps", -7), ("warmup_steps", 0), ("data_seed", None),
                            ("warmup_ratio", 0.0), ("max_steps", 3.0), ("learning_rate", 0.1),
                            ("learning_rate", "1e-5"), ("warmup_ratio", None), ("tf32", None)):
            self.assertNotIn(f"# - {name}", self.say({name: value}))
        self.assertNotIn("epochs", self.say({"max_steps": 3, "num_train_epochs": -1}))  # not looked at
        made = self.say({"beta": -0.5})             # a trainer takes it, and it is a comment
        self.assertIn("# - beta: dpo.beta: expected a number", made)
        self.assertEqual(self.key(self.say({"warmup_steps": 3.75}), "schedule", "warmup"), "3")

    def test_verify_clipping_that_a_trainer_leaves_out_is_off(self):
        for value in ("0", "-1", "~", ".inf", "Infinity", "[0.0]"):
            made = self.say(f"max_grad_norm: {value}\n")
            self.assertEqual(self.key(made, "clip", "max_norm"), "0", value)
            self.resolved(made)
        self.assertEqual(self.key(self.say("max_grad_norm: 0.5\n"), "clip", "max_norm"), "0.5")

    def test_verify_a_name_that_no_trainer_has_is_an_error(self):
        """A name that a trainer has and twinstep has not is a comment."""
        for text, words in (
                ("lr_scheduler_type: cosin", "lr_scheduler_type: expected a schedule of transformers 5.24 or "
                                             'older, got "cosin"; did you mean cosine?'),
                ("lr_scheduler_type: 3", "lr_scheduler_type: expected a schedule"),
                ("optim: adamw_torhc", 'got "adamw_torhc"; did you mean adamw_torch?'),
                ("optim: ~", "optim: expected an optimizer of transformers 5.24 or older, got nothing"),
                ("beta: 1\nloss_type: sigmod", 'loss_type: expected a DPO loss of TRL 1.16 or older, got "sigmod"; '
                                               "did you mean sigmoid?"),
                ("beta: 1\nloss_type: [sigmoid, huge]", "loss_type: expected a DPO loss"),
                ("beta: 1\nloss_type: []", "loss_type: expected a DPO loss of TRL 1.16 or older, got a list"),
                ("beta: 1\nf_divergence_type: reverse", "f_divergence_type: expected an f-divergence"),
                ("max_steps: 2\nloss_type: ipo", "loss_type: expected a loss of SFTConfig (nll, dft; with "
                                                 '--task dpo one of DPOConfig), got "ipo"'),
                ("lr_scheduler_kwargs: fast", "lr_scheduler_kwargs: expected a map, or a text with one in JSON"),
                ("lr_scheduler_kwargs: {min_lr: low}", "lr_scheduler_kwargs.min_lr: expected a number, got "),
                ("lr_scheduler_kwargs: {power: [1, 2]}", "lr_scheduler_kwargs.power: expected a number, got a list"),
                ("lr_scheduler_kwargs: '{\"power\": true}'", "lr_scheduler_kwargs.power: expected a number, got "),
                ("lr_scheduler_kwargs: '{\"power\": '", "config.yaml:1:22: lr_scheduler_kwargs: error: ")):
            said = self.say(text, status=2)
            self.assertIn(words, said)
            self.assertRegex(said, r"config\.yaml:[12]:\d+: ")
            self.assertEqual(said.count("\n"), 1, said)
        for text, words in (
                ("lr_scheduler_type: reduce_lr_on_plateau", "lr_scheduler_type: hf, schedule reduce_lr_on_plateau: "),
                ("optim: adamw_8bit", "optim: optimizer.name: expected one of"),
                ("beta: 1\nloss_type: kto_pair", "loss_type: dpo.loss: expected one of"),
                ("packing: no\nloss_type: dft", "loss_type: dft: sft has cross-entropy alone"),
                ("lr_scheduler_kwargs: {x: {y: 1}}", "lr_scheduler_kwargs.x: it is neither a number nor a word")):
            made = self.say(text)
            self.assertIn(f"# - {words}", made)
            self.resolved(made)
        made = self.say({"lr_scheduler_type": "polynomial", "lr_scheduler_kwargs": '{"power": 2.0}'})
        self.assertEqual(self.key(made, "schedule", "power"), "2.0")    # JSON, as on the command line
        self.assertNotIn("loss_type", self.say({"packing": True, "loss_type": "chunked_nll"}))

    def test_verify_comments_stay_comments(self):
        for config in ({"max_steps": 3, "x\nevil: 1": "y\nsteps: 9"},
                       {"lr_scheduler_kwargs": {"min_lr_ratio\nsteps: 9": 1}},
                       {"lr_scheduler_kwargs": {"min_lr_type": "x\n\nsteps: 9"}},
                       {"max_steps": 3, "model_name_or_path": "a\r\nsteps: 9"}):
            made = self.say(config)
            self.resolved(made)
            loose = [line for line in made.splitlines() if "steps: 9" in line or "evil" in line]
            self.assertTrue(all(line.startswith("# ") for line in loose), made)

    def test_verify_the_task_is_what_the_names_say_or_the_option(self):
        # the settings of a DPO training whose beta nobody set; a trainer's file has no name for the task
        page = pathlib.Path(__file__).resolve().parents[2] / "docs/tutorial/own/good.yaml"
        own = self.folder / "own.yaml"      # with room for the rows of the built-in data
        own.write_text(page.read_text(encoding="utf-8").replace("max_length: 64", "max_length: 1024"))
        self.assertRegex(self.say(own), r"  task: sft +# no name is of DPOConfig alone; --task dpo, if it")
        made = self.say(own, "--task", "dpo")
        self.assertRegex(made, r"  task: dpo +# --task\n")
        self.assertEqual(self.key(made, "loss", "divisor"), "mean-of-means")
        self.resolved(made)
        self.assertEqual(self.say(own, "--task=sft").replace("# --task", ""),
                         self.say(own).replace("# no name is of DPOConfig alone; --task dpo, if it was DPO", ""))
        out = self.folder / "d.yaml"
        twinstep.init(own, out, task="dpo")
        self.assertEqual(out.read_text(encoding="utf-8"), made)
        self.assertIn("--task sft, but beta is of DPOConfig alone",
                      self.say({"beta": 0.1}, "--task", "sft", status=2))
        self.assertIn("init: --task: expected dpo or sft, got kto",
                      self.say({"beta": 0.1}, "--task", "kto", status=2))

    def test_verify_names_of_sft_alone_are_no_dpo(self):
        dpo, sft = (json.loads((CONFIGS / f"trl_{task}.json").read_text(encoding="utf-8"))
                    for task in ("dpo", "sft"))
        names = [name for name in sft if name not in dpo]
        self.assertIn("packing", names)
        for name in names:
            for value in (True, False, None, "text"):
                if value == "text" and name == "packing":
                    continue                # which is no word for on or off
                config = {"max_steps": 3, name: value}
                self.assertIn(f"--task dpo, but {name} is of SFTConfig alone",
                              self.say(config, "--task", "dpo", status=2))
                self.assertIn("  task: sft ", self.say(config))
            self.assertIn(f"expected the arguments of one trainer, got beta, which DPOConfig alone has, "
                          f"and {name}, which SFTConfig alone has",
                          self.say({"beta": 0.1, name: None}, status=2))
        self.assertIn("--task dpo, but ", self.say(CONFIGS / "trl_sft.json", "--task=dpo", status=2))
        self.assertIn("  task: dpo ", self.say({"max_steps": 3, "padding_free": True}, "--task", "dpo"))

    def test_verify_data_are_said_to_come_first(self):
        """The built-in rows are longer than good.yaml's max_length: check fails until data are named."""
        page = pathlib.Path(__file__).resolve().parents[2] / "docs/tutorial/own/good.yaml"
        for task, key in (("dpo", "data.pairs"), ("sft", "data.text")):
            out = self.folder / f"{task}.yaml"
            self.assertEqual(self.say(page, "--task", task, "-o", out),
                             f"written to {out}: set {key} in it first, for its rows are built-in ones; "
                             f"then twinstep check {out}\n")
            made = out.read_text(encoding="utf-8")
            self.assertIn(f"# are the built-in ones. Set {key} first: rows that nobody chose may not fit", made)
        (self.folder / "pairs.jsonl").write_text(
            '{"prompt": "a b", "chosen": " c", "rejected": " d"}\n' * 8, encoding="utf-8")
        made = (self.folder / "dpo.yaml").read_text(encoding="utf-8")
        self.resolved(made.replace("  data:\n", "  data:\n    pairs: pairs.jsonl\n"))

    def test_verify_refusals(self):
        for config, words in (
                ("[1, 2]", "expected the arguments of a trainer, a map"), ("", "expected the arg"),
                ("a: [", "config.yaml:"), ({"foo": 1}, "found no name of transformers or TRL"),
                ({"num_generations": 8, "beta": 0.1}, "got num_generations, which others have"),
                ("\x00", "error"), ("learning_rate: 1\nlearning_rate: 2", "learning_rate")):
            said = self.say(config, status=2)
            self.assertIn(words, said)
            self.assertEqual(said.count("\n"), 1, said)
        self.say(self.folder / "none.json", status=2)
        done = subprocess.run([PROGRAM, "init"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected --from-trl CONFIG", done.stderr)

    def test_verify_output_and_the_function_of_the_package(self):
        class Arguments:
            """Stands for TrainingArguments, of which the function asks its JSON."""

            def to_json_string(self):
                return (CONFIGS / "trl_dpo.json").read_text(encoding="utf-8")
        out = self.folder / "s.yaml"
        self.assertEqual(twinstep.init(Arguments(), out), out)
        self.assertEqual(out.read_text(encoding="utf-8"), self.say(CONFIGS / "trl_dpo.json"))
        with self.assertRaisesRegex(twinstep.ProgramError, "s.yaml"):
            twinstep.init(Arguments(), out)
        before = out.read_bytes()
        twinstep.init(CONFIGS / "trl_sft.json", out, overwrite=True)
        self.assertNotEqual(out.read_bytes(), before)
        own = self.folder / "c.json"
        own.write_bytes((CONFIGS / "trl_dpo.json").read_bytes())
        self.say(own, "-o", own, "--overwrite", status=2)      # never over what is read
        self.assertEqual(own.read_bytes(), (CONFIGS / "trl_dpo.json").read_bytes())


if __name__ == "__main__":
    unittest.main()
