# SPDX-License-Identifier: Apache-2.0
"""labels: torch

The examples of docs/RECORD.md for DeepSpeed, Megatron and torchtitan, taken out of the page and run
with the libraries themselves on a CPU (engines.py), on one rank and on two of gloo: what is recorded
is what the library says, the weights are those of the same training without a recorder, and a fault
in the library's settings is named. `sh tests/python/make_engines_venv.sh FOLDER TORCH` makes an
environment with the three; what is not there is skipped."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

import twinstep

HERE = pathlib.Path(__file__).resolve().parent
HOW = "(tests/python/make_engines_venv.sh makes an environment with it)"
WARMED = [0.0, 0.0025, 0.005, 0.0075, 0.01]


def has(module):
    return importlib.util.find_spec(module) is not None


LIBRARIES = {"deepspeed": has("deepspeed"), "torchtitan": has("torchtitan"),
             "megatron": has("megatron") and has("megatron.core")}
if not any(LIBRARIES.values()):
    print(f"neither DeepSpeed nor megatron-core nor torchtitan is there {HOW}: skipped")
    sys.exit(77)


class Engines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, cases, world=1):
        """Runs cases one after another; a rank that waits for ever ends the test."""
        library = cases.split("-")[0]
        if not LIBRARIES[library]:
            self.skipTest(f"no {library} {HOW}")
        done = subprocess.run(["timeout", "-k", "5", "1200", sys.executable,
                               str(HERE / "engines.py"), cases, str(self.folder), str(world)],
                              check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{cases}: {done.stderr[-3000:]}")

    def said(self, case, rank=0):
        found = json.loads((self.folder / f"{case}.rank{rank}.json").read_text(encoding="utf-8"))
        self.assertEqual(found["warnings"], [])
        return found

    def steps(self, case, name="run.h5"):
        """The columns, and the order of phases in the last update."""
        with h5py.File(self.folder / case / name) as f:
            self.assertTrue(f["complete"][()])
            steps = f["runs/main/steps"]
            found = {n: steps[n][()] for n in (
                "loss", "grad_norm", "grad_norm_taken", "lr_applied", "skipped", "optimizer_t",
                "loss_scale", "tensors/digest_gradient")}
            names = [n for n in ("forward", "backward", "unscale", "clip", "optimize", "schedule",
                                 "zero", "log")]
            place = steps["phases/place"][-1].tolist()
        found["order"] = [n for n, _ in sorted(((n, p) for n, p in zip(names, place) if p >= 0),
                                               key=lambda pair: pair[1])]
        return found

    def program(self, status, *words):
        done = subprocess.run([os.environ["TWINSTEP_PROGRAM"], *words], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def check_merged(self, case):
        """Two ranks make one recording, and both hold the same weights at every update."""
        merged = twinstep.merge(*(self.folder / case / f"run.rank000{r}.h5" for r in (0, 1)),
                                output=self.folder / case / "run.h5")
        self.assertEqual((merged.ranks, merged.updates, merged.complete, merged.notes),
                         (2, 8, True, ()))
        self.assertIn("8 rows", self.program(0, "doctor", f"{case}/run.h5"))

    def check_losses(self, case, world=1, micro=2, share=1.0):
        """Each update's loss is `share` of the sum of what the library computed."""
        recorded = self.steps(case)["loss"]
        told = np.mean([self.said(case, r)["losses"] for r in range(world)], axis=0)
        # sums of two f32, in another order
        np.testing.assert_allclose(recorded, share * told.reshape(-1, micro).sum(1), rtol=1e-6)

    # ---- DeepSpeed ----

    def test_deepspeed_on_one_rank(self):
        self.train("deepspeed-0f32-recorded,deepspeed-0f32-bare,deepspeed-1fp16-recorded,"
                   "deepspeed-2bf16-recorded,deepspeed-2bf16-bare,deepspeed-0f32-warmup,"
                   "deepspeed-0f32-noclip")
        for case in ("0f32", "2bf16"):
            self.assertEqual(self.said(f"deepspeed-{case}-recorded")["weights"],
                             self.said(f"deepspeed-{case}-bare")["weights"])
            self.check_losses(f"deepspeed-{case}-recorded", share=0.5)
            found = self.steps(f"deepspeed-{case}-recorded")
            np.testing.assert_allclose(found["lr_applied"][:, 0], [0.0, *WARMED, 0.01, 0.01])
            self.assertEqual(found["order"], ["forward", "backward", "optimize", "schedule"])
            self.assertEqual(found["skipped"].tolist(), [0] * 8)
        plain = self.steps("deepspeed-0f32-recorded")
        np.testing.assert_allclose(plain["grad_norm_taken"], 0.1, rtol=1e-5)    # clipped to that
        self.assertGreater(plain["grad_norm"].min(), 0.2)
        self.assertEqual(plain["optimizer_t"].tolist(), list(range(1, 9)))
        self.assertTrue(plain["tensors/digest_gradient"].any())
        half = self.steps("deepspeed-1fp16-recorded")
        self.check_losses("deepspeed-1fp16-recorded", share=0.5)        # not those that were scaled
        skips = half["skipped"].tolist()
        self.assertEqual(skips, sorted(skips, reverse=True))
        self.assertIn(1, skips)
        self.assertIn(0, skips)
        self.assertIn("Points to: schedule", self.program(
            1, "compare", "deepspeed-0f32-recorded/run.h5", "deepspeed-0f32-warmup/run.h5"))
        said = self.program(1, "compare", "deepspeed-0f32-recorded/run.h5",
                            "deepspeed-0f32-noclip/run.h5")
        self.assertRegex(said, r"clipping, another kernel\)[^$]*Points to: optimizer")

    def test_deepspeed_on_two_ranks(self):
        self.train("deepspeed-0f32-recorded,deepspeed-1f32-recorded,deepspeed-1f32-bare", 2)
        for case in ("0f32", "1f32"):
            self.check_merged(f"deepspeed-{case}-recorded")
            self.check_losses(f"deepspeed-{case}-recorded", world=2, share=0.5)
        self.assertEqual(self.said("deepspeed-1f32-recorded")["weights"],
                         self.said("deepspeed-1f32-bare")["weights"])

    # ---- Megatron ----

    def test_megatron_on_one_rank(self):
        self.train("megatron-plain-recorded,megatron-plain-bare,megatron-shared-recorded,"
                   "megatron-shared-bare,megatron-plain-warmup,megatron-plain-noclip")
        for case in ("plain", "shared"):
            self.assertEqual(self.said(f"megatron-{case}-recorded")["weights"],
                             self.said(f"megatron-{case}-bare")["weights"])
            self.check_losses(f"megatron-{case}-recorded", share=0.5)
            found = self.steps(f"megatron-{case}-recorded")
            np.testing.assert_allclose(found["lr_applied"][:5].T, [WARMED, WARMED])
            self.assertEqual(found["order"], ["forward", "backward", "optimize", "schedule"])
            self.assertEqual(found["skipped"].tolist(), [0] * 8)
            self.assertGreater(found["grad_norm"].min(), 0.2)
            self.assertFalse(found["tensors/digest_gradient"].any())
        np.testing.assert_allclose(self.steps("megatron-plain-recorded")["grad_norm_taken"], 0.1,
                                   rtol=1e-5)
        self.assertIn("error at most 0 ulp", self.program(
            0, "lr", "fit", "megatron-plain-recorded/run.h5"))
        for fault, cause in (("warmup", "schedule"), ("noclip", "optimizer")):
            self.assertIn(f"Points to: {cause}", self.program(
                1, "compare", "megatron-plain-recorded/run.h5", f"megatron-plain-{fault}/run.h5"))

    def test_megatron_on_two_ranks(self):
        self.train("megatron-plain-recorded,megatron-shared-recorded,megatron-shared-bare", 2)
        for case in ("plain", "shared"):
            self.check_merged(f"megatron-{case}-recorded")
            self.check_losses(f"megatron-{case}-recorded", world=2, share=0.5)
        self.assertEqual(self.said("megatron-shared-recorded")["weights"],
                         self.said("megatron-shared-bare")["weights"])

    # ---- torchtitan ----

    def check_titan(self, case):
        found = self.steps(case)
        self.assertEqual(found["lr_applied"].shape, (8, 1))     # its container is no optimizer more
        self.assertEqual(found["order"],
                         ["zero", "forward", "backward", "clip", "optimize", "schedule"])
        np.testing.assert_allclose(found["grad_norm_taken"], np.minimum(found["grad_norm"], 0.5),
                                   rtol=1e-5)
        self.assertIn("pass: every applied LR is the one that torchtitan applies", self.program(
            0, "lr", "check", f"{case}/run.h5", "--expect", "torchtitan", "--lr", "1e-2",
            "--steps", "8", "--warmup", "3"))

    def test_torchtitan_on_one_rank(self):
        self.train("torchtitan-chunked-recorded,torchtitan-chunked-bare,torchtitan-whole-recorded,"
                   "torchtitan-chunked-early,torchtitan-chunked-noclip")
        self.assertEqual(self.said("torchtitan-chunked-recorded")["weights"],
                         self.said("torchtitan-chunked-bare")["weights"])
        for case in ("chunked", "whole"):
            self.check_titan(f"torchtitan-{case}-recorded")
            self.check_losses(f"torchtitan-{case}-recorded")
        self.assertIn("Points to: schedule", self.program(
            1, "compare", "torchtitan-chunked-recorded/run.h5", "torchtitan-chunked-early/run.h5"))
        self.assertIn("clipping (to 0.5 in A, not at this norm in B)", self.program(
            1, "compare", "torchtitan-chunked-recorded/run.h5",
            "torchtitan-chunked-noclip/run.h5"))

    def test_torchtitan_on_two_ranks(self):
        self.train("torchtitan-chunked-recorded,torchtitan-chunked-bare", 2)
        self.check_merged("torchtitan-chunked-recorded")
        self.check_titan("torchtitan-chunked-recorded")
        self.check_losses("torchtitan-chunked-recorded", world=2)
        self.assertEqual(self.said("torchtitan-chunked-recorded")["weights"],
                         self.said("torchtitan-chunked-bare")["weights"])


if __name__ == "__main__":
    unittest.main()
