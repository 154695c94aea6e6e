# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Recordings of ranks joined into one: what is averaged, added, listed and kept; replicas that part are
told where they part first; what is no set of ranks is refused, and nothing is written then. The
recordings are copies of one of a real DPO training by TRL, with ranks and columns changed here."""
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from hashlib import sha256
from struct import pack

try:
    import h5py
    import numpy as np
except ImportError:
    print("left out: no h5py")
    sys.exit(77)

import twinstep
from twinstep import ranks

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/record"
PROGRAM = os.environ["TWINSTEP_PROGRAM"]


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "whole.h5"

    def rank(self, rank, world=2, source="trl_dpo", **changed):
        """A recording as rank `rank` of `world`; `changed`: {column: function of its array}."""
        path = self.folder / f"r{rank}.h5"
        path.write_bytes(gzip.decompress((GOLDEN / f"{source}.h5.gz").read_bytes()))
        with h5py.File(path, "r+") as f:
            run = f["runs/main"]
            run.attrs["rank"], run.attrs["world"] = np.int64(rank), np.int64(world)
            for name, change in changed.items():
                of = run["steps"][name.replace("__", "/")]
                of[...] = change(of[...])
        return path

    def steps(self, path, name):
        with h5py.File(path) as f:
            return f["runs/main/steps"][name][...]

    def begin(self, path, texts):
        """Gives a recording digests of the weights before its first update."""
        with h5py.File(path, "r+") as f:
            steps = f["runs/main/steps"]
            count = len(steps["tensors/tensor"])
            steps["tensors/initial"] = [texts.get(i, "0" * 64) for i in range(count)]
        return path

    def test_verify_weights_before_the_first_update(self):
        """They are kept where all ranks have the same ones, and else left out with a word: DDP sends
        rank 0's weights to all, which can come behind the start of a recording."""
        a, b = self.begin(self.rank(0), {}), self.begin(self.rank(1), {})
        merged = twinstep.merge(a, b, output=self.out)
        self.assertEqual(merged.notes, ())
        self.assertEqual(set(self.steps(self.out, "tensors/initial")), {b"0" * 64})
        tensor = self.steps(a, "tensors/tensor")[2].decode()
        for texts, words in (({2: "1" * 64}, f"tensor {tensor} differs between rank 0 and rank 1 there"),
                             (None, "of ranks 0 and 1 one alone recorded them")):
            b = self.rank(1)
            if texts is not None:
                self.begin(b, texts)
            merged = twinstep.merge(a, b, output=self.out, overwrite=True)
            self.assertEqual(merged.notes, (f"weights before the first update are left out: {words}",))
            with h5py.File(self.out) as f:
                self.assertNotIn("initial", f["runs/main/steps/tensors"])

    def left(self):
        return sorted(p.name for p in self.folder.iterdir())

    def test_verify_one_recording_of_all(self):
        a = self.rank(0, tokens=lambda t: t * 0 + 7)
        b = self.rank(1, loss=lambda x: x + 0.5, tokens=lambda t: t * 0 + 5,
                      digest_batch=lambda d: d ^ 1, grad_norm=lambda g: g * (1 + 1e-7))
        merged = twinstep.merge(b, a, output=self.out)
        self.assertEqual((merged.ranks, merged.updates, merged.complete), (2, 10, True))
        self.assertEqual(len(merged.notes), 1)
        self.assertRegex(merged.notes[0], "update 1: grad_norm differs between rank 0 .* are kept")
        loss = self.steps(a, "loss")
        self.assertEqual(self.steps(self.out, "loss").tolist(),
                         ((loss + (loss + 0.5)) / 2).tolist())
        self.assertEqual(self.steps(self.out, "tokens").tolist(), [12] * 10)
        self.assertEqual(self.steps(self.out, "grad_norm").tolist(),
                         self.steps(a, "grad_norm").tolist())
        one, other = (self.steps(p, "digest_batch")[3].tobytes() for p in (a, b))
        text = b"".join(pack("<Q", len(t)) + t for t in (b"twinstep list 1", b"digest_batch of ranks"))
        self.assertEqual(self.steps(self.out, "digest_batch")[3].tobytes(),
                         sha256(text + pack("<Q", 2) + one + other).digest())
        self.assertEqual(self.steps(self.out, "tensors/digest_parameter").tobytes(),
                         self.steps(a, "tensors/digest_parameter").tobytes())
        said = subprocess.run([PROGRAM, "import", "--check", self.out], capture_output=True,
                              text=True, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("10 updates, 15 tensors in 2 groups", said.stdout)
        self.assertIn("rank 0 of 2", said.stdout)
        self.assertEqual(self.left(), ["r0.h5", "r1.h5", "whole.h5"])
        trace = twinstep.load(self.out)
        self.assertEqual(trace.runs["main"]["lr_applied"].dims, ("step", "group"))
        self.assertEqual(trace.runs["main"]["loss"].units, "nat")

    def test_verify_replicas_that_part(self):
        def flip(d):
            d[6, 4, 0] ^= 1
            return d
        a = self.rank(0)
        b = self.rank(1, tensors__digest_parameter=flip)
        with h5py.File(a) as f:
            tensor = f["runs/main/steps/tensors/tensor"][4].decode()
        with self.assertRaisesRegex(twinstep.RanksDiffer, f"update 7, tensor {tensor}: tensors/digest_"
                                    "parameter differs between rank 0 and rank 1"):
            twinstep.merge(a, b, output=self.out)
        done = subprocess.run([sys.executable, "-m", "twinstep", "merge", a, b, "-o", self.out],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no replicas of one training: update 7", done.stdout)
        b = self.rank(1, source="trl_dpo_ahead")
        with self.assertRaisesRegex(twinstep.RanksDiffer, "training: update 1: lr_applied differs"):
            twinstep.merge(a, b, output=self.out)
        self.assertEqual(self.left(), ["r0.h5", "r1.h5"])

    def test_verify_a_rank_that_ended_early(self):
        a, b = self.rank(0), self.rank(1)
        with h5py.File(b, "r+") as f:
            f["runs/main/steps/step"].resize(6, axis=0)
            f["complete"][()] = 0
        merged = twinstep.merge(a, b, output=self.out)
        self.assertEqual((merged.updates, merged.complete), (6, False))
        self.assertIn("rank 0 has 10 updates; 6 are of all ranks", merged.notes)
        self.assertEqual(self.steps(self.out, "step").tolist(), [1, 2, 3, 4, 5, 6])
        with h5py.File(self.out) as f:
            self.assertEqual(f["complete"][()], 0)

    def test_verify_what_is_no_set_of_ranks(self):
        a, b = self.rank(0), self.rank(1)
        for files, words in (([a], "at least two ranks"), ([a, a], "rank 0 came twice"),
                             ([a, self.rank(3, world=3)], "one of 3 ranks, and 2 files"),
                             ([a, b, b], "one of 2 ranks, and 3 files"),
                             ([a, self.rank(1, step=lambda s: s + 1)], "other updates than"),
                             ([a, self.rank(2)], r"expected ranks 0 to 1, each once; got \[0, 2\]")):
            with self.assertRaisesRegex(ValueError, words):
                twinstep.merge(*files, output=self.out)
        full = unittest.mock.patch.object(ranks.writer.Trace, "_scales",
                                          side_effect=OSError(28, "full"))
        with full, self.assertRaisesRegex(OSError, "full"):
            twinstep.merge(a, self.rank(1), output=self.out)
        self.assertEqual(self.left(), ["r0.h5", "r1.h5", "r2.h5", "r3.h5"])
        self.rank(1)
        with h5py.File(b, "r+") as f:
            del f["runs/main/steps/grad_norm"]
        with self.assertRaisesRegex(ValueError, "other columns than .*: grad_norm"):
            twinstep.merge(a, b, output=self.out)
        for change, words in ((lambda f: f.attrs.modify("writer", "x"), "expected a recording"),
                              (lambda f: f["runs"].create_group("z"), "expected one run, got 2"),
                              (lambda f: f["runs"].move("main", "z"), "run z; "),
                              (lambda f: f["runs/main/steps/loss"].resize(4, axis=0), "loss has 4 rows"),
                              (lambda f: f["runs/main"].attrs.__delitem__("rank"), "no whole .*'rank'"),
                              (lambda f: f.__delitem__("complete"), "r1.h5: no whole recording")):
            self.rank(1)
            with h5py.File(b, "r+") as f:
                change(f)
            with self.assertRaisesRegex(ValueError, words):
                twinstep.merge(a, b, output=self.out)
        self.rank(1)
        (self.folder / "text").write_text("no trace", encoding="utf-8")
        for files, status in (([a, self.folder / "text"], 2), ([a, self.folder / "none"], 2)):
            done = subprocess.run([sys.executable, "-m", "twinstep", "merge", *files, "-o", self.out],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertRegex(done.stderr, "^twinstep: error: [^\n]*\n$")
        self.out.write_bytes(b"mine")
        self.assertRaises(FileExistsError, twinstep.merge, a, b, output=self.out)
        self.assertEqual(self.out.read_bytes(), b"mine")
        twinstep.merge(a, b, output=self.out, overwrite=True)
        self.assertEqual(self.left(), ["r0.h5", "r1.h5", "r2.h5", "r3.h5", "text", "whole.h5"])


if __name__ == "__main__":
    unittest.main()
