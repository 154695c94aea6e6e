# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Floor files that the package writes: the program reads them, judges by them, and has the same digest
for the same contents; what no floor can hold is refused, and nothing is left of it."""
import dataclasses
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy as np
except ImportError:
    print("left out: no h5py")
    sys.exit(77)

import twinstep
from twinstep import floor_file

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/record"
PROGRAM = os.environ["TWINSTEP_PROGRAM"]


def contents(pairs=99, steps=4, **changed):
    """Gaps of 1 to `pairs` thousandths, so that the rank of another gap is known."""
    gaps = np.repeat(np.arange(1, pairs + 1)[:, None] / 1000.0, steps, 1)
    whole = floor_file.Contents(
        "mine", "main", "twinstep.noise", "lr: 0.1\n", "by hand", False, steps,
        {name: gaps for name in floor_file.COLUMNS},
        [floor_file.Row(("off", "f32", "2", "repeat", "", "", "gradient a\tb", "w"),
                        (1.0,) * 9, (0.5,) * steps)], "off\tf32\tinstance\top\tx\t1\t0\t0\t0\n")
    return dataclasses.replace(whole, **changed)


class FloorFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "f.h5"

    def log(self, name, *losses):
        rows = "".join(f"{i},{loss:.17f},1.000000000000\n" for i, loss in enumerate(losses, 1))
        (self.folder / name).write_text(f"step,loss,grad_norm\n{rows}", encoding="utf-8")
        return self.folder / name

    def against(self, *losses):
        """Compares with a loss of 0.5; the first is 0.25 higher, as equal losses that never move
        would prove nothing."""
        a = self.log("a.csv", 0.75, 0.5, 0.5, 0.5)
        b = self.log("b.csv", losses[0] + 0.25, *losses[1:])
        return twinstep.compare(a, b, floor=self.file)

    def refused(self):
        done = subprocess.run([PROGRAM, "compare", self.log("a.csv", 0.5), self.log("b.csv", 0.5),
                               "--floor", self.file], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        return done.stderr

    def test_verify_the_program_judges_by_it(self):
        floor_file.write(self.file, contents())
        inside = self.against(0.5, 0.55, 0.5, 0.5)
        self.assertEqual((inside.status, inside.raw["floor"]["verdict"]), (0, "inside-floor"))
        outside = self.against(0.5, 0.7, 0.5, 0.5)
        self.assertEqual((outside.status, outside.raw["floor"]["verdict"]), (1, "outside-floor"))
        self.assertEqual(outside.raw["floor"]["pairs"], 99)

    def test_verify_an_exact_floor_leaves_no_room(self):
        nothing = {name: np.zeros((1, 4)) for name in floor_file.COLUMNS}
        floor_file.write(self.file, contents(columns=nothing, exact=True))
        self.assertEqual(self.against(0.5, 0.5, 0.5, 0.5).status, 0)
        found = self.against(0.5, 0.5, 0.5000000000000001, 0.5)
        self.assertIn("equal to the last bit, and these are not", found.raw["floor"]["words"])

    def test_corroborate_digest_and_texts_with_the_program(self):
        for name in ("trl_dpo", "trl_dpo_again", "trl_dpo_ahead"):
            packed = (GOLDEN / f"{name}.h5.gz").read_bytes()
            (self.folder / f"{name}.h5").write_bytes(gzip.decompress(packed))
        for other, exact in (("trl_dpo_again", True), ("trl_dpo_ahead", False)):
            theirs, ours = self.folder / f"{other}.floor.h5", self.folder / f"{other}.ours.h5"
            subprocess.run([PROGRAM, "floor", self.folder / "trl_dpo.h5", self.folder / f"{other}.h5",
                            "-o", theirs], capture_output=True, check=False)
            with h5py.File(theirs) as f:
                noise = f["noise"]
                say = {k: v.decode() for k, v in noise.attrs.items()}
                text = noise["configuration"][:].tobytes().decode()
                columns = {n: noise[f"pairs_{n}"][:] for n in ("loss", "grad_norm")}
                wanted = noise["sha256"][:].tobytes()
            floor_file.write(ours, floor_file.Contents(
                say["scenario_name"], say["arm"], say["writer"], text, say["protocol"], exact, 10,
                columns))
            with h5py.File(ours) as f:
                self.assertEqual(f["noise/sha256"][:].tobytes(), wanted)
                self.assertEqual({k: v.decode() for k, v in f["noise"].attrs.items()}, say)

    def test_verify_a_changed_file_is_refused(self):
        floor_file.write(self.file, contents())
        with h5py.File(self.file, "r+") as f:
            f["noise/pairs_loss"][3, 0] = 1e-4
        self.assertIn("its digest is of other contents", self.refused())

    def test_verify_a_long_text_has_the_program_s_digest(self):
        # more than one block of the digest, and a last word that is not whole
        floor_file.write(self.file, contents(configuration="k: " + "x" * 200_003 + "\n"))
        self.assertEqual(self.against(0.5, 0.5, 0.5, 0.5).status, 0)

    def test_verify_what_no_floor_can_hold(self):
        bad = np.full((99, 4), np.nan)
        good = contents().columns
        for columns, steps in (({**good, "loss": bad}, 4), ({**good, "loss": -good["loss"]}, 4),
                               ({**good, "distance": np.zeros((98, 4))}, 4), (good, 5), (good, 0),
                               ({"distance": good["distance"]}, 4), ({}, 4)):
            with self.assertRaises(ValueError):
                floor_file.write(self.file, contents(columns=columns, steps=steps))
        short = floor_file.Row(("off",), (1.0,) * 9, (0.5,) * 4)
        self.assertRaises(ValueError, floor_file.write, self.file, contents(strata=[short]))
        self.assertEqual(os.listdir(self.folder), [])

    def test_verify_nothing_is_overwritten_or_left_behind(self):
        self.file.write_bytes(b"mine")
        self.assertRaises(FileExistsError, floor_file.write, self.file, contents())
        self.assertEqual(self.file.read_bytes(), b"mine")
        self.assertRaises(OSError, floor_file.write, self.folder / "no" / "f.h5", contents())
        self.assertEqual(os.listdir(self.folder), ["f.h5"])
        floor_file.write(self.file, contents(), overwrite=True)
        self.assertEqual(self.against(0.5, 0.5, 0.5, 0.5).status, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.csv", "b.csv", "f.h5"])


if __name__ == "__main__":
    unittest.main()
