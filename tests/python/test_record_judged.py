# SPDX-License-Identifier: Apache-2.0
"""labels: cli

What the program says of recordings of real DPO trainings by TRL (tests/bench/record_trl.py made
them): two equal ones, and one whose learning rate is an update ahead of the one that it logs; and of
a loop that clips a part of its gradients (tests/bench/record_clip.py); and of trainings by DeepSpeed,
megatron-core and torchtitan, each with a fault planted in the library's settings
(tests/python/engines.py: deepspeed-1f32-recorded and -noclip, megatron-plain-recorded and -warmup,
torchtitan-chunked-recorded and -early)."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
except ImportError:
    print("left out: no h5py")
    sys.exit(77)

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/record"
PROGRAM = os.environ["TWINSTEP_PROGRAM"]


class Judged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for packed in GOLDEN.glob("*.h5.gz"):
            plain = pathlib.Path(cls.folder.name) / packed.name.removesuffix(".gz")
            plain.write_bytes(gzip.decompress(packed.read_bytes()))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def say(self, status, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder.name, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr if status == 2 else done.stdout

    def steps(self, name):
        with h5py.File(pathlib.Path(self.folder.name) / name) as f:
            of = f["runs/main/steps"]
            return {k: of[k][()] for k in ("lr_applied", "lr_logged", "lr_readback",
                                           "lr_readback_error")}

    def test_verify_files_are_what_the_page_says(self):
        for name in ("trl_dpo.h5", "trl_dpo_ahead.h5"):
            said = self.say(0, "import", "--check", name)
            self.assertIn("10 updates, 15 tensors in 2 groups", said)
        self.assertIn("forward, backward, clip, optimize, schedule, zero, log (update 1)",
                      self.say(0, "import", "--check", "trl_dpo.h5"))

    def test_verify_two_processes_are_equal(self):
        said = self.say(0, "certify", "trl_dpo.h5", "trl_dpo_again.h5")
        self.assertIn("equal through update 10", said)

    def test_verify_rate_ahead_is_found_and_named(self):
        said = self.say(1, "compare", "trl_dpo.h5", "trl_dpo_ahead.h5")
        self.assertIn("Roots differ from update 1 on: phase optimize", said)
        self.assertIn("B forward, backward, clip, schedule, optimize, zero, log", said)
        self.assertRegex(said, r"lr_logged +equal ")
        self.assertRegex(said, r"lr_applied +different +10 +10  update 1: 0\.001 \| 0\.0009")
        self.assertIn("Points to: schedule\n", said)
        # what is printed has one explanation in both, and B applied another LR
        self.assertIn("    A: hf linear, peak 0.001, no warm-up, total 10\n    B: hf linear, peak 0.001, "
                      "no warm-up, total 10, as printed; update 1 applied 0.0009\n", said)
        lr = json.loads(self.say(1, "compare", "trl_dpo.h5", "trl_dpo_ahead.h5", "--json"))["lr"]
        self.assertNotIn("otherwise_a", lr)
        self.assertEqual(lr["otherwise_b"]["update"], 1)
        self.assertAlmostEqual(lr["otherwise_b"]["applied"], 9e-4, delta=1e-12)

    def test_verify_one_recording_alone_tells_it(self):
        contract = ("--expect", "hf", "--schedule", "linear", "--lr", "1e-3", "--steps", "10",
                    "--warmup", "0")
        self.assertIn("pass:", self.say(0, "lr", "check", "trl_dpo.h5", *contract))
        said = self.say(1, "lr", "check", "trl_dpo_ahead.h5", *contract)
        self.assertIn("every printed LR agrees with hf, but update 1 applied 0.0009", said)

    def test_verify_doctor_needs_no_contract(self):
        self.assertIn("Nothing found", self.say(0, "doctor", "trl_dpo.h5"))
        said = self.say(1, "doctor", "trl_dpo_ahead.h5")
        self.assertIn("1 finding in", said)
        self.assertIn("lr_applied_ahead: likely", said)
        self.assertIn("update 1: lr_applied is 0.0009", said)

    def test_verify_readback_agrees_with_the_groups(self):
        for name in ("trl_dpo.h5", "trl_dpo_ahead.h5"):
            of = self.steps(name)
            here = of["lr_applied"] > 0     # of a rate of 0 only its bound is left
            off = abs(of["lr_readback"] - of["lr_applied"])
            self.assertTrue((off <= of["lr_readback_error"])[here].all())
            self.assertTrue((of["lr_readback_error"] < 1e-9)[here].all(), name)
            self.assertEqual((of["lr_logged"] == of["lr_applied"]).all(), name == "trl_dpo.h5")

    def test_verify_a_norm_that_is_added_up_otherwise_is_no_other_gradient(self):
        said = self.say(1, "compare", "clip_whole.h5", "clip_part.h5")
        every = ("param_norm has 1 pair of 4: the recorder takes it at updates 1, 1 + every, ... alone (every is 16 where "
                 "the Recorder is given none)\n")
        self.assertIn("\n" + every, said)
        self.assertIn("\n- " + every, self.say(1, "compare", "--markdown", "clip_whole.h5", "clip_part.h5"))
        self.assertNotIn("the recorder takes it", self.say(1, "compare", "trl_dpo.h5", "trl_dpo_ahead.h5"))
        self.assertIn("Roots differ from update 1 on: phase optimize, 0.weight", said)
        self.assertRegex(said, r"grad_norm +different +4 +4  update 1: ")
        self.assertIn("whose norm differs is the same bit for bit, by its digests", said)
        self.assertIn("Its weights differ after the step", said)
        self.assertNotIn("Points to:", said)
        folder = pathlib.Path(self.folder.name)
        for name in ("whole", "part"):      # a digest that nobody took is equal to nothing
            (folder / f"bare_{name}.h5").write_bytes((folder / f"clip_{name}.h5").read_bytes())
            with h5py.File(folder / f"bare_{name}.h5", "r+") as f:
                f["runs/main/steps/tensors/digest_gradient"][:] = 0
                del f["seal"]
        said = self.say(1, "compare", "bare_whole.h5", "bare_part.h5")
        self.assertIn("Roots differ from update 1 on: phase optimize, 0.weight", said)
        self.assertNotIn("bit for bit", said)

    def test_verify_engines_recordings_name_the_planted_fault(self):
        for name in ("deepspeed", "megatron", "torchtitan"):
            self.assertIn("Nothing found", self.say(0, "doctor", f"{name}.h5"))
            self.assertIn("8 updates", self.say(0, "import", "--check", f"{name}.h5"))
        said = self.say(1, "compare", "deepspeed.h5", "deepspeed_noclip.h5")
        self.assertRegex(said, r"decay, clipping or skipped updates\.[^$]*Points to: optimizer\n")
        said = self.say(1, "compare", "megatron.h5", "megatron_warmup.h5")
        self.assertRegex(said, r"lr_applied +different +8 +7  update 2: 0\.0025 \| 0\.00166")
        self.assertIn("Points to: schedule\n", said)
        said = self.say(1, "compare", "torchtitan.h5", "torchtitan_early.h5")
        self.assertIn("Roots differ from update 1 on: phase optimize, tok_embeddings.weight", said)
        self.assertRegex(said, r"lr_applied +different +8 +6  update 1: 0\.0033")
        self.assertIn("Points to: schedule\n", said)
        contract = ("--lr", "1e-2", "--steps", "8", "--warmup", "3")
        self.assertIn("pass: every applied LR is the one that torchtitan applies", self.say(
            0, "lr", "check", "torchtitan.h5", "--expect", "torchtitan", *contract))
        self.say(1, "lr", "check", "torchtitan_early.h5", "--expect", "torchtitan", *contract)

    def test_verify_engines_phases_are_in_order(self):
        for name, order in (("deepspeed", "forward, backward, optimize, schedule"),
                            ("megatron", "forward, backward, optimize, schedule"),
                            ("torchtitan", "zero, forward, backward, clip, optimize, schedule")):
            self.assertIn(order + " (", self.say(0, "import", "--check", f"{name}.h5"))

    def change(self, name, source, change):
        """Writes a recording with other rows; those of this training carry no seal."""
        folder = pathlib.Path(self.folder.name)
        (folder / name).write_bytes((folder / source).read_bytes())
        with h5py.File(folder / name, "r+", libver=("v110", "v110")) as f:
            change(f["runs/main/steps"])

    def test_verify_a_recording_of_a_resumed_training_is_held_by_its_numbers(self):
        def resumed(steps, first):
            for column in [steps[n] for n in steps if isinstance(steps[n], h5py.Dataset)] + [
                    steps["tensors/digest_gradient"], steps["tensors/digest_parameter"],
                    steps["phases/place"]]:
                if column.shape[0] == 10:
                    column[:6] = column[4:]
            steps["step"][:6] = range(first, first + 6)
            steps["step"].resize((6,))
        self.change("resumed.h5", "trl_dpo.h5", lambda s: resumed(s, 5))
        self.assertIn("continued: scheduler, data, generators, weights, optimizer",
                      self.say(0, "resume-check", "trl_dpo.h5", "resumed.h5"))
        said = self.say(0, "compare", "trl_dpo.h5", "resumed.h5")
        self.assertIn("A begins at update 1 and B at update 5, and a root is made of all", said)
        self.assertNotIn("Roots", said)
        self.change("anew.h5", "trl_dpo.h5", lambda s: resumed(s, 1))
        said = self.say(3, "resume-check", "trl_dpo.h5", "anew.h5")
        self.assertRegex(said, "scheduler +untold .* number them from 5 on")

    def test_verify_columns_that_no_table_has_are_recorded_ones(self):
        said = self.say(0, "compare", "trl_dpo.h5", "trl_dpo_again.h5")
        self.assertRegex(said, "\nRecorded, but not held against each other here: clip_coef, ")
        self.assertNotIn("knows no such column", said)
        self.assertNotRegex(said, r"here: .*lr_applied\[1\]")     # the line LR speaks of it
        log = pathlib.Path(self.folder.name) / "strange.csv"
        log.write_text("step,loss,learning_rate,foo\n" + "".join(
            f"{k},{2 / k},0.1,1\n" for k in range(1, 4)))
        self.change("applied.h5", "trl_dpo.h5", lambda steps: steps.pop("lr_logged"))
        for names, words in ((("applied.h5", "strange.csv"), "A has the LR that was applied and B"),
                             (("strange.csv", "applied.h5"), "B has the LR that was applied and A")):
            said = self.say(1, "compare", *names)
            self.assertIn(f"LR: {words} the one that it prints, which need not be the same", said)
            self.assertIn("\nRecorded, but not held against each other here: clip_coef, ", said)
            self.assertIn("\nNot compared, since twinstep knows no such column: foo\n", said)

    def test_verify_a_model_in_eval_mode_is_no_other_data(self):
        """Where a model is called in eval mode, no forward call and no batch is recorded. That says
        nothing of the batch, and a gap that opens there is of the mode first of all."""
        def in_eval(steps, loss_from=None):
            place = list(steps["phases/phase"][()]).index(b"forward")
            steps["phases/place"][4:, place] = -1
            steps["digest_batch"][4:] = 0
            if loss_from is not None:
                steps["loss"][loss_from:] += 0.01
        self.change("eval.h5", "trl_dpo_again.h5", in_eval)
        for names in (("trl_dpo.h5", "eval.h5"), ("eval.h5", "trl_dpo.h5")):
            side = "AB"[names.index("eval.h5")]
            lack = f"6 updates, the first of them update 5, where {side} recorded none"
            said = self.say(0, "compare", *names)
            self.assertIn("Roots are equal in all 10 updates that both have, but for batches.", said)
            self.assertIn(f"Batches were not compared in {lack}: it has no forward call of its model "
                          "in training there.", said)
            self.assertIn("but for batches that one of the two did not record", said)
            held = json.loads(self.say(0, "compare", *names, "--json"))
            self.assertEqual((held["batches_lack"], held["forward_unseen"], held["root_update"]),
                             (lack, 5, None))
            said = self.say(0, "certify", *names)
            self.assertIn("equal through update 10 (10 comparisons of 10 roots)\n"
                          f"  batch    not compared in {lack}\n  root A   ", said)
            self.assertEqual(json.loads(self.say(0, "certify", *names, "--json"))["batches_lack"],
                             lack)
            self.assertIn("exact: their roots are equal in all updates, without the batches of 6 "
                          "that one of them did not record", self.say(0, "floor", *names))

        self.change("eval_moves.h5", "trl_dpo_again.h5", lambda s: in_eval(s, 4))
        said = self.say(1, "compare", "trl_dpo.h5", "eval_moves.h5")
        self.assertIn("The gap opens in update 5, from which on no forward call in training is "
                      "recorded in B", said)
        self.assertIn("B's model is in eval mode there", said)
        self.assertIn("Call model.train() before the forward pass of update 5 in B", said)
        self.assertNotIn("Points to:", said)
        self.assertNotIn("data order", said)
        said = self.say(1, "certify", "trl_dpo.h5", "eval_moves.h5")
        self.assertRegex(said, "differs from update 5 on(.*\n)+  batch    not compared in 6 updates")
        # equal losses and norms with other roots are no lack of digests
        self.change("other_weight.h5", "trl_dpo_again.h5",
                    lambda s: s["tensors/digest_parameter"].__setitem__((9, 0, 0), 1))
        self.assertIn("noisy: other_weight.h5 parts from trl_dpo.h5 at update 10",
                      self.say(0, "floor", "trl_dpo.h5", "other_weight.h5"))
        # what opens behind it is not laid at its door
        self.change("eval_later.h5", "trl_dpo_again.h5", lambda s: in_eval(s, 6))
        said = self.say(1, "compare", "trl_dpo.h5", "eval_later.h5")
        self.assertIn("Batches were not compared in 6 updates", said)
        self.assertNotIn("The gap opens in update", said)

        # nor a column that opens behind it alone, where all that was trained is equal
        def norm_later(steps):
            in_eval(steps)
            steps["grad_norm"][7:] *= 1.01
        self.change("norm_later.h5", "trl_dpo_again.h5", norm_later)
        said = self.say(1, "compare", "trl_dpo.h5", "norm_later.h5")
        self.assertIn("Roots are equal in all 10 updates", said)
        self.assertNotIn("The gap opens", said)
        # nor what opened in front of it, in a column, in a weight or in what is trained
        def opened(steps, weight=None):
            in_eval(steps, 4)
            if weight is None:
                steps["loss"][2] += 0.01
            else:
                steps["tensors/digest_parameter"][weight, 0, 0] = 1
        self.change("opened.h5", "trl_dpo_again.h5", opened)
        self.assertNotIn("The gap opens", self.say(1, "compare", "trl_dpo.h5", "opened.h5"))
        for weight, is_said in ((4, True), (3, False)):
            self.change("moved.h5", "trl_dpo_again.h5", lambda s, of=weight: opened(s, of))
            said = self.say(1, "compare", "trl_dpo.h5", "moved.h5")
            self.assertIn(f"Roots differ from update {weight + 1} on", said)
            self.assertEqual("The gap opens in update 5, from which" in said, is_said)
        self.change("unlike.h5", "eval_moves.h5",
                    lambda s: s["tensors/dtype"].__setitem__(0, b"f16"))
        self.assertNotIn("The gap opens", self.say(1, "compare", "trl_dpo.h5", "unlike.h5"))

        # the updates of the side that lacks the first are counted, not those of the other
        def once(steps, row, loss=0.0):
            place = list(steps["phases/phase"][()]).index(b"forward")
            steps["phases/place"][row, place] = -1
            steps["digest_batch"][row] = 0
            steps["loss"][row] += loss
        self.change("fifth.h5", "trl_dpo_again.h5", lambda s: once(s, 4, 0.01))
        self.change("eighth.h5", "trl_dpo.h5", lambda s: once(s, 7))
        said = self.say(1, "compare", "eighth.h5", "fifth.h5")
        self.assertIn("from which on no forward call in training is recorded in B, which goes "
                      "backward all the same (1 update): B's model", said)

        def never(steps):
            place = list(steps["phases/phase"][()]).index(b"forward")
            steps["phases/place"][:, place] = -1
            steps["digest_batch"][:] = 0
            steps["loss"][0] += 0.01
        self.change("never.h5", "trl_dpo_again.h5", never)
        said = self.say(1, "compare", "never.h5", "trl_dpo.h5")
        self.assertIn("The gap opens in update 1, and no forward call in training is recorded in A",
                      said)
        self.assertIn("(forward=False, a compiled model)", said)

    def say_in_configuration(self, name, old, new):
        """Writes another line into a recording's configuration."""
        with h5py.File(pathlib.Path(self.folder.name) / name, "r+") as file:
            run = file["runs/main"]
            text = run.attrs["configuration"]
            text = text.decode() if isinstance(text, bytes) else text
            self.assertIn(old, text)
            run.attrs["configuration"] = text.replace(old, new)
            file.pop("seal", None)

    def test_verify_rounding_in_a_gradient_hides_no_other_step(self):
        """Where the gradient of update 1 does not repeat itself to the last bit, as on most GPUs, what
        acts in its step by far more opens the gap: rounding is not called the cause."""
        rounding = "The gradient of update 1 differs by no more than kernels or an order of sums make it"
        self.say(1, "compare", "racing_a.h5", "racing_b.h5")

        def faster(by):
            return lambda steps: steps["lr_applied"].__setitem__(..., steps["lr_applied"][()] * by)
        for by, named in ((3.0, True), (0.98, True), (1.005, False)):
            self.change("faster.h5", "racing_b.h5", faster(by))
            said = self.say(1, "compare", "racing_a.h5", "faster.h5")
            self.assertEqual(f"{rounding}, and the LR that its step applied by far more" in said, named)
            self.assertEqual("Points to: schedule\n" in said, named)
        eps = "optimizer.0.0.eps: "
        self.change("steps.h5", "racing_b.h5", lambda steps: None)
        self.say_in_configuration("steps.h5", eps + "1e-08", eps + "1e-06")
        said = self.say(1, "compare", "racing_a.h5", "steps.h5")
        self.assertIn(f"{rounding}. Settings of the optimizer differ, too (configurations, above)", said)
        self.assertNotIn("Points to:", said)
        self.change("both.h5", "steps.h5", faster(3.0))
        said = self.say(1, "compare", "racing_a.h5", "both.h5")
        self.assertIn(f"{rounding}. The LR of its step differs, too, and so do settings", said)
        self.assertNotIn("Points to:", said)
        # a setting that can move the gradient, beside them, leaves it open
        self.change("other.h5", "both.h5", lambda steps: None)
        self.say_in_configuration("other.h5", eps, "args.label_smoothing: 0.1\n" + eps)
        self.assertNotIn(rounding, self.say(1, "compare", "racing_a.h5", "other.h5"))

    def test_verify_settings_that_first_act_in_a_later_step(self):
        """Momentum, beta1 or amsgrad first act in update 2, of whose gradient there may be no digest."""
        def later(steps, norm=0.0):
            steps["tensors/digest_parameter"][1:, 0, 0] = 1
            steps["tensors/digest_gradient"][1:] = 0
            steps["loss"][2:] += 0.01
            steps["grad_norm"][1:] *= 1 + norm
        names = "trl_dpo.h5", "later.h5"
        self.change("later.h5", "trl_dpo_again.h5", later)
        said = self.say(1, "compare", *names)
        self.assertNotIn("Points to:", said)        # no setting differs: something happened there
        beta = "optimizer.0.0.betas: (0.9"
        self.say_in_configuration("later.h5", beta, beta[:-1] + "8")
        said = self.say(1, "compare", *names)
        self.assertIn("Batch, loss and LR of update 2 are the same, by their digests, and the weights behind "
                      "its step are not (roots, above): the norm of its gradient is the same in all digits, "
                      "and the optimizer's step is another one, whose settings differ (configurations, "
                      "above). Loss and gradient norm show it from update 3 on.", said)
        self.assertIn("Points to: optimizer\n", said)
        self.say_in_configuration("later.h5", beta[:-1] + "8", "args.label_smoothing: 0.1\n" + beta[:-1] + "8")
        self.assertNotIn("Points to:", self.say(1, "compare", *names))
        self.change("later.h5", "trl_dpo_again.h5", lambda s: later(s, 1e-4))
        self.say_in_configuration("later.h5", beta, beta[:-1] + "8")
        said = self.say(1, "compare", *names)
        self.assertIn("Weights and loss of the update in which the roots part are the same", said)
        self.assertNotIn("Points to: optimizer", said)

    def test_verify_norms_of_other_shards_are_no_other_training(self):
        """Ranks and shards add up the squares of one gradient in other orders."""
        def norms(by):
            def change(steps):
                steps["grad_norm"][3:] *= 1 + by
                steps["param_norm"][0] *= 1 - by
            return change
        for by, status in ((1e-7, 0), (-9e-6, 0), (2e-5, 1)):
            self.change("sharded.h5", "trl_dpo_again.h5", norms(by))
            said = self.say(status, "compare", "trl_dpo.h5", "sharded.h5")
            self.assertIn("Roots are equal in all 10 updates that both have", said)
            self.assertEqual("equal-within-precision: the roots are equal: weights, applied LRs and what else "
                             "they are made of are the same bit for bit. Norms are apart by no more than sums in "
                             "another order make them" in said, status == 0)
            self.assertNotIn("Points to:", said)
            self.assertNotIn("a gap opens", said)
            self.assertEqual("they are norms of something else" in said, status == 1)

        def other(steps):
            norms(1e-7)(steps)
            steps["lr_logged"][5] *= 0.5        # of which no root is made
        self.change("sharded.h5", "trl_dpo_again.h5", other)
        said = self.say(1, "compare", "trl_dpo.h5", "sharded.h5")
        self.assertIn("differs:", said)
        self.assertNotIn("norms of something else", said)

    def test_verify_unlike_tensors_are_a_difference_and_columns_are_compared(self):
        def halve(steps):               # what a training in f16 would have
            steps["tensors/dtype"][0] = b"f16"
        self.change("half.h5", "trl_dpo.h5", halve)
        said = self.say(1, "compare", "trl_dpo.h5", "half.h5")
        self.assertIn("but the two do not train the same tensors", said)
        self.assertRegex(said, r"no digests: tensor \"model.embed_tokens.weight\" is f32 .* in A and "
                               "f16 .* in B")
        self.assertRegex(said, r"loss +equal +10")
        self.assertIn("Columns alone were compared", self.say(1, "compare", "half.h5",
                                                              "trl_dpo_ahead.h5"))
        self.assertIn("digests of unlike tensors cannot be compared",
                      self.say(2, "certify", "trl_dpo.h5", "half.h5"))

    def test_verify_a_skipped_step_is_chained(self):
        def skip(steps, absent=float("nan")):
            steps["lr_applied"][0] = absent
            steps["skipped"][0] = 1
        self.change("skip.h5", "trl_dpo.h5", skip)
        self.change("skip_again.h5", "trl_dpo_again.h5", lambda s: skip(s, -float("nan")))
        self.assertIn("made on reading, of 10 rows", self.say(0, "certify", "skip.h5"))
        said = self.say(0, "certify", "skip.h5", "skip_again.h5")
        self.assertIn("equal through update 10", said)
        self.assertIn("Roots are equal in all 10 updates that both have",
                      self.say(0, "compare", "skip.h5", "skip_again.h5"))
        # in the place of a rate its absence is another root
        said = self.say(1, "certify", "trl_dpo.h5", "skip.h5")
        self.assertRegex(said, "differs from update 1 on .*\n  phase    optimize")

    def test_verify_a_group_that_steps_later_is_chained(self):
        def begin_later(steps):
            steps["lr_applied"][:3, 1] = float("nan")
        for name in ("trl_dpo", "trl_dpo_again"):
            self.change(f"later_{name}.h5", f"{name}.h5", begin_later)
        said = self.say(0, "certify", "later_trl_dpo.h5", "later_trl_dpo_again.h5")
        self.assertIn("equal through update 10", said)

    def test_verify_a_rate_that_is_left_out_is_told(self):
        def leave_out(steps):
            steps["lr_applied"][2] = float("nan")
        self.change("left_out.h5", "trl_dpo_again.h5", leave_out)
        told = "update 3 has no lr_applied[0], and its row does not say that it was skipped"
        self.assertIn(f"untestable: {told}", self.say(3, "certify", "left_out.h5"))
        self.assertIn(f"roots    none: {told}", self.say(0, "import", "--check", "left_out.h5"))
        said = self.say(0, "compare", "trl_dpo.h5", "left_out.h5")
        self.assertIn(f"Columns alone were compared, no digests: in B {told}", said)
        self.assertIn(told, json.loads(self.say(
            0, "compare", "trl_dpo.h5", "left_out.h5", "--json"))["roots_lack"])

        def leave_weight(steps):
            steps["tensors/digest_parameter"][4, 1] = 0
        self.change("no_weight.h5", "trl_dpo_again.h5", leave_weight)
        self.assertRegex(self.say(3, "certify", "no_weight.h5"),
                         'untestable: update 5 has no tensors/digest_parameter of "model')

    def test_validate_the_total_is_that_of_the_arguments(self):
        """TrainingArguments say max_steps, -1 where epochs count; other recordings say none."""
        self.assertIn("updates 1 to 10 of 10;", self.say(0, "import", "trl_dpo.h5"))
        self.assertIn("updates 1 to 4;", self.say(0, "import", "clip_part.h5"))
        for said, total in (("17", "updates 1 to 10 of 17;"), ("-1", "updates 1 to 10;"),
                            ("1x", "updates 1 to 10;")):
            path = pathlib.Path(self.folder.name) / "total.h5"
            path.write_bytes((pathlib.Path(self.folder.name) / "trl_dpo.h5").read_bytes())
            with h5py.File(path, "r+") as file:
                run = file["runs/main"]
                text = run.attrs["configuration"]
                text = text.decode() if isinstance(text, bytes) else text
                run.attrs["configuration"] = text.replace("args.max_steps: 10",
                                                          f"args.max_steps: {said}")
            self.assertIn(total, self.say(0, "import", "total.h5"))

    def test_verify_a_loss_that_nobody_saw_is_no_nan(self):
        """Without its column, or in an update whose backward pass was not seen, a NaN says nothing;
        one behind a backward pass is the training's."""
        self.change("no_loss.h5", "trl_dpo.h5", lambda steps: steps.pop("loss"))

        def unseen(steps):
            place = list(steps["phases/phase"][()]).index(b"backward")
            steps["loss"][4:] = float("nan")
            steps["phases/place"][5:, place] = -1
        self.change("unseen.h5", "trl_dpo.h5", unseen)

        def idle(steps):  # updates in which nothing was trained have no phase at all
            steps["loss"][7:] = float("nan")
            steps["phases/place"][7:, :] = -1
        self.change("idle.h5", "trl_dpo.h5", idle)

        def lost(steps):
            steps["loss"][4:] = float("nan")
        self.change("lost.h5", "trl_dpo.h5", lost)
        for name in ("no_loss.h5", "idle.h5"):
            self.assertNotIn("loss_not_finite", self.say(0, "doctor", name))
        for name, rows in (("unseen.h5", "in 1 of 5 rows"), ("lost.h5", "in 6 of 10 rows")):
            self.assertIn(f"The loss is no finite number {rows}.", self.say(1, "doctor", name))

    def test_verify_a_recording_that_stopped_early_is_not_equal(self):
        for name in ("trl_dpo_again", "racing_b"):
            (pathlib.Path(self.folder.name) / f"short_{name}.h5").write_bytes(
                (pathlib.Path(self.folder.name) / f"{name}.h5").read_bytes())
            with h5py.File(pathlib.Path(self.folder.name) / f"short_{name}.h5", "r+",
                           libver=("v110", "v110")) as f:
                columns = []
                f["runs/main/steps"].visititems(
                    lambda _, it, into=columns: into.append(it) if it is not None else None)
                rows = len(f["runs/main/steps/step"])
                for it in columns:
                    if isinstance(it, h5py.Dataset) and it.shape[:1] == (rows,) and it.chunks:
                        it.resize(3, 0)
                f.pop("seal", None)
        said = self.say(3, "compare", "trl_dpo.h5", "short_trl_dpo_again.h5")
        self.assertIn("Roots are equal in all 3 updates that both have", said)
        self.assertIn("but B ends at update 3 and A goes on to 10", said)
        said = self.say(0, "compare", "trl_dpo.h5", "short_trl_dpo_again.h5", "--common")
        self.assertIn("equal-within-precision: ", said)
        floor = ("racing_a.h5", "short_racing_b.h5", "--floor", "racing.floor.h5")
        said = self.say(3, "compare", *floor)
        self.assertIn("inside-floor: ", said)
        self.assertIn("Undecided, also inside a floor (--common): B ends at update 3", said)
        self.say(0, "compare", *floor, "--common")

    def test_verify_noise_is_inside_its_floor_and_a_rate_is_not(self):
        floor = ("--floor", "racing.floor.h5")
        self.say(1, "compare", "racing_a.h5", "racing_b.h5")
        said = self.say(0, "compare", "racing_a.h5", "racing_b.h5", *floor)
        self.assertIn("phase backward, 2.weight", said)
        self.assertRegex(said, "inside-floor: p = 0.* is above alpha")
        said = self.say(1, "compare", "racing_a.h5", "racing_rate.h5", *floor)
        self.assertIn("outside-floor: p = 0.01 is not above alpha", said)
        self.say(2, "compare", "trl_dpo.h5", "racing_a.h5", *floor)
        # the rate is in the configuration of racing_rate.h5, too: as A it is refused by that line
        said = self.say(2, "compare", "racing_rate.h5", "racing_a.h5", *floor)
        self.assertRegex(said, "for another configuration than A's .B may have another one.*"
                         '"optimizer.0.0.initial_lr: 0.01" in the floor, '
                         '"optimizer.0.0.initial_lr: 0.0101" in A')


if __name__ == "__main__":
    unittest.main()
