# SPDX-License-Identifier: Apache-2.0
"""labels: torch

The recorder on several ranks (sharded.py): digests and norms of shards are those of whole tensors on
every mesh that FSDP2, HSDP and tensor parallelism make, and a rank whose recording ends makes no
other rank wait."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

import twinstep

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ("tensors/digest_parameter", "tensors/digest_gradient", "digest_state", "grad_norm",
           "grad_norm_taken", "param_norm")


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, cases, world):
        """Runs cases one after another; a rank that waits for ever ends the test."""
        done = subprocess.run(["timeout", "-k", "5", "900", sys.executable,
                               str(HERE / "sharded.py"), cases, str(self.folder), str(world)],
                              check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{cases}: {done.stderr[-3000:]}")

    def columns(self, path):
        with h5py.File(path) as f:
            steps = f["runs/main/steps"]
            return {n: steps[n][()] for n in COLUMNS}

    def test_validate_sums_on_each_mesh(self):
        self.train("whole", 1)
        self.train("flat,hsdp,mixed,tp,dp_tp", 4)
        for case, world in (("whole", 1), ("flat", 4), ("hsdp", 4), ("mixed", 4), ("tp", 4),
                            ("dp_tp", 4)):
            with self.subTest(case):
                truth = json.loads((self.folder / f"{case}.json").read_text(encoding="utf-8"))
                for rank in range(world):
                    of = self.columns(self.folder / (
                        f"{case}.h5" if world == 1 else f"{case}.rank{rank:04d}.h5"))
                    self.assertEqual(len(of["grad_norm"]), len(truth))
                    for k, said in enumerate(truth):
                        for name, wanted in (("tensors/digest_parameter", said["weights"]),
                                             ("tensors/digest_gradient", said["gradients"])):
                            self.assertEqual([d.tobytes().hex() for d in of[name][k]], wanted,
                                             (case, rank, k, name))
                        self.assertEqual(of["digest_state"][k].tobytes().hex(), said["state"])
                        # f32 norms of shards, and the clip's product with its factor
                        for name, wanted in (("grad_norm", said["norm"]),
                                             ("grad_norm_taken", said["taken"]),
                                             ("param_norm", said["after"])):
                            self.assertAlmostEqual(of[name][k], wanted, delta=1e-6 * wanted,
                                                   msg=f"{case}, rank {rank}, {k}: {name}")

    def test_validate_a_norm_that_ranks_hold_parts_of(self):
        """It is not measured a second time: the row would have sqrt(2) times the norm."""
        self.train("partial", 2)
        truth = json.loads((self.folder / "partial.json").read_text(encoding="utf-8"))
        for rank in (0, 1):
            with h5py.File(self.folder / f"partial.rank{rank:04d}.h5") as f:
                steps = f["runs/main/steps"]
                found = np.stack([steps[n][()] for n in ("grad_norm", "grad_norm_taken")], axis=1)
                self.assertEqual(found.shape, np.shape(truth))
                # f32 norms of shards, and the clip's product with its factor
                np.testing.assert_allclose(found, truth, rtol=1e-6)
                np.testing.assert_allclose(steps["clip_coef"][()],
                                           [0.1 / (n + 1e-6) for n, _ in truth], rtol=1e-6)

    def test_verify_replicas_of_ddp(self):
        self.train("ddp_bare,ddp", 2)
        bare, truth = (json.loads((self.folder / f"{case}.json").read_text(encoding="utf-8"))
                       for case in ("ddp_bare", "ddp"))
        self.assertEqual(bare, truth)           # not a bit of the training changes
        ranks = [self.folder / f"ddp.rank{rank:04d}.h5" for rank in (0, 1)]
        batches, places = [], []
        for path in ranks:
            self.assertEqual([[d.tobytes().hex() for d in row] for row in
                              self.columns(path)["tensors/digest_parameter"]], truth)
            with h5py.File(path) as f:
                batches.append(f["runs/main/steps/digest_batch"][()].tobytes())
                places.append(f["runs/main/steps/phases/place"][0].tolist())
        self.assertNotEqual(*batches)
        self.assertEqual(*places)
        merged = twinstep.merge(*ranks, output=self.folder / "ddp.h5")
        self.assertEqual((merged.ranks, merged.updates, merged.complete, merged.notes),
                         (2, 4, True, ()))

    def test_verify_a_rank_that_ends_makes_nobody_wait(self):
        told = {"full": "File too large|write", "error": "TypeError", "left": None, "exit": None}
        self.train("others,bare," + ",".join(told), 2)
        for rank in (0, 1):     # of this model's backward passes alone, and of all of them
            losses = json.loads((self.folder / f"others.rank{rank}.json").read_text("utf-8"))
            with h5py.File(self.folder / f"others.rank{rank:04d}.h5") as f:
                np.testing.assert_allclose(f["runs/main/steps/loss"][()], losses, rtol=1e-6)
        for case, words in told.items():
            with self.subTest(case):
                bare, first, last = (json.loads((self.folder / name).read_text(encoding="utf-8"))
                                     for name in ("bare.rank0.json", f"{case}.rank0.json",
                                                  f"{case}.rank1.json"))
                self.assertEqual(bare["weights"], first["weights"])
                if case == "exit":
                    self.assertEqual((first["said"], last["said"]), ([], []))
                    continue
                self.assertEqual(len(first["said"]), 1, first["said"])
                self.assertRegex(first["said"][0], "the training goes on: RanksEnded: (rank 1 has "
                                 "stopped recording|another rank is gone)")
                if words is not None:
                    self.assertEqual(len(last["said"]), 1, last["said"])
                    self.assertRegex(last["said"][0], words)
                with h5py.File(self.folder / f"{case}.rank0000.h5") as f:    # what came before
                    recorded = f["runs/main/steps/step"][()].tolist()
                    self.assertFalse(f["complete"][()])
                self.assertEqual(recorded, list(range(1, len(recorded) + 1)))
                self.assertGreaterEqual(len(recorded), 64 if case == "full" else 5)


if __name__ == "__main__":
    unittest.main()
