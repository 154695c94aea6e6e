# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Names of files that hold line ends begin no line of their own in what a verb prints: a folder of
that kind could otherwise say a verdict."""
import gzip
import json
import lzma
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
PROGRAM = os.environ["TWINSTEP_PROGRAM"]
FORGED = "x\nEQUAL: no difference\ty"


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / FORGED
        self.folder.mkdir()

    def said(self, count, *words):
        """What a verb prints, which has the folder's name `count` times."""
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        for line in done.stdout.splitlines():
            self.assertFalse(line.startswith("EQUAL: no difference"), done.stdout)
        self.assertNotIn("\t", done.stdout)
        self.assertEqual(done.stdout.count(r"x\u000aEQUAL: no difference\u0009y/"), count, done.stdout)
        return done.stdout

    def test_verify_run(self):
        self.said(2, "run", "lr-set-before-step", "--set", "steps=2", "--quiet", "-o", self.folder / "t.h5")

    def test_verify_floor(self):
        for name in ("racing_a", "racing_b", "trl_dpo", "trl_dpo_again"):
            with gzip.open(GOLDEN / f"record/{name}.h5.gz") as f:
                (self.folder / f"{name}.h5").write_bytes(f.read())
        for pair, count, word in ((("racing_a", "racing_b"), 3, "noisy: "),
                                  (("trl_dpo", "trl_dpo_again"), 1, "exact: ")):
            files = [self.folder / f"{name}.h5" for name in pair]
            self.assertIn(f"\n{word}", self.said(count, "floor", *files, "-o", self.folder / f"{word[:5]}.h5"))

    def test_verify_ops(self):
        llama, by_sqrt, again = (self.folder / f"{name}.json" for name in ("a", "b", "again"))
        for path, name in ((llama, "llama"), (by_sqrt, "llama_norm_by_sqrt-model.norm"), (again, "llama")):
            with lzma.open(GOLDEN / f"foreign/ops/{name}.json.xz") as f:
                path.write_bytes(f.read())
        # A and B; where it is; what its inputs are values of; and what is like it.
        self.assertIn("DIFFERS: ", self.said(5, "ops", llama, by_sqrt))
        self.assertIn("EQUAL: no op of ", self.said(4, "ops", llama, again))

    def test_verify_rollout(self):
        random.seed(4)
        for name, size in (("floor", 0.01), ("new", 0.1)):
            rows = []
            for _ in range(40):
                ours = [-random.random() - 0.1 for _ in range(30)]
                theirs = [min(-1e-6, v + random.gauss(0, size)) for v in ours]
                rows.append(json.dumps({"rollout_logprobs": ours, "trainer_logprobs": theirs}))
            (self.folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        self.assertIn(": OUTSIDE: ", self.said(2, "rollout", self.folder / "new.jsonl", "--floor",
                                               self.folder / "floor.jsonl"))


if __name__ == "__main__":
    unittest.main()
