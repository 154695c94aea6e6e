# SPDX-License-Identifier: Apache-2.0
"""labels: unit

Traces as `twinstep.load` reads them: against the program's own export, live and killed, hostile
files, and what the pictures draw."""
import builtins
import csv
import gzip
import io
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest
from unittest import mock

import h5py
import numpy as np

import twinstep

FOLDER = tempfile.TemporaryDirectory()
HERE = pathlib.Path(FOLDER.name)
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = {"common.model.layers": 1, "common.model.hidden": 16, "common.model.mlp": 32}
SMALL = [f"--set={key}={value}" for key, value in MODEL.items()]


def setUpModule():
    unittest.addModuleCleanup(FOLDER.cleanup)
    twinstep.run("lr-set-before-step", output=HERE / "pair.h5", set=MODEL)


def kill_early(words):
    """Kills a run in its arms' first updates, where columns are longer than `step`, and returns how many both
    arms then have; again where the kill came later, or between the rows of both arms."""
    for _ in range(20):
        for left in HERE.glob("k.h5*"):
            left.unlink()
        process = subprocess.Popen([twinstep.program(), "run", "lr-set-before-step", *words, "-o", HERE / "k.h5"],
                                   stdout=subprocess.DEVNULL)
        while process.poll() is None and rows_of_part("step")[1] < 2:
            time.sleep(0.005)
        process.kill()
        process.wait()
        counts, ahead = rows_of_part("step"), rows_of_part("loss")
        if counts[0] == counts[1] and 2 <= counts[1] < ahead[1]:
            return counts[1]
    raise AssertionError(f"no kill in the middle: {counts} updates, {ahead} rows")


def rows_of_part(column):
    """The length of a column in both arms of the live file; zeros where it is not there yet."""
    try:
        with h5py.File(HERE / "k.h5.part", "r", libver="latest", swmr=True) as file:
            return [file[f"runs/{arm}/steps/{column}"].shape[0] for arm in ("baseline", "test")]
    except (OSError, KeyError):
        return [0, 0]


class Columns(unittest.TestCase):
    def test_they_are_what_export_writes(self):
        trace = twinstep.load(HERE / "pair.h5")
        for name, run in trace.runs.items():
            text = subprocess.run([twinstep.program(), "export", HERE / "pair.h5", "--run", name, "--to", "csv"],
                                  check=True, capture_output=True, text=True).stdout
            rows = list(csv.DictReader(io.StringIO(text)))
            compared = 0
            for column in set(rows[0]) & set(run):
                if run[column].dims == ("step",):
                    told = [float(row[column]) if row[column] else float("nan") for row in rows]
                    np.testing.assert_array_equal(run[column].values.astype(float), told, column)
                    compared += 1
            self.assertGreater(compared, 15)

    def test_axes_have_names_and_units(self):
        run = twinstep.load(HERE / "pair.h5").arm("test")
        self.assertEqual(run.updates, 5)
        self.assertEqual((run["loss"].units, run["loss"].long_name), ("nat", "loss of the update"))
        norm = run["tensors/grad_norm"]
        self.assertEqual(norm.dims, ("step", "tensor"))
        self.assertEqual(norm.shape, (5, len(run.names["tensor"])))
        self.assertIn("model.embed_tokens.weight", run.names["tensor"])
        self.assertEqual(run.attributes["arm"], "test")

    def test_a_digest_is_its_hexadecimal_digits(self):
        run = twinstep.load(HERE / "pair.h5").arm("test")
        with h5py.File(HERE / "pair.h5") as file:
            raw = file["runs/test/steps/digest_root"][:]
        self.assertEqual(run["digest_root"].hex[3], raw[3].tobytes().hex())
        self.assertRaises(TypeError, lambda: run["loss"].hex)

    def test_a_wrong_name_tells_the_right_ones(self):
        trace = twinstep.load(HERE / "pair.h5")
        with self.assertRaisesRegex(KeyError, "lr_applied"):
            trace.arm("test")["los"]
        with self.assertRaisesRegex(KeyError, "baseline"):
            trace.arm("tset")

    def test_verdict_is_that_of_attribute(self):
        trace = twinstep.load(HERE / "pair.h5")
        judged = twinstep.attribute(HERE / "pair.h5")
        self.assertEqual(trace.verdict.raw, judged.raw)
        self.assertEqual(trace.verdict.cause, "schedule")
        self.assertIn("OUTSIDE THE FLOOR", trace.text)


class Files(unittest.TestCase):
    def test_live_and_killed(self):
        words = [twinstep.program(), "run", "lr-set-before-step", *SMALL, "--set", "steps=4000", "--set",
                 "common.schedule.total=4000", "--jobs", "1", "--quiet", "-o", HERE / "long.h5"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            deadline, seen = time.monotonic() + 60, 0
            while seen < 3 and time.monotonic() < deadline:
                time.sleep(0.02)
                try:
                    seen = twinstep.load(HERE / "long.h5.part").arm("test").updates
                except (FileNotFoundError, twinstep.NotATrace, KeyError):
                    pass  # its objects are not all there yet
        finally:
            process.kill()
            process.wait()
        self.assertGreaterEqual(seen, 3)
        killed = twinstep.load(HERE / "long.h5.part")
        self.assertFalse(killed.complete)
        self.assertEqual(killed.seal, "opening")
        self.assertIsNone(killed.verdict)
        run = killed.arm("test")
        self.assertGreaterEqual(run.updates, seen)
        np.testing.assert_array_equal(run.step, np.arange(1, run.updates + 1))
        self.assertTrue(np.isfinite(run["loss"].values).all())
        self.assertRaisesRegex(ValueError, "no verdict", killed.plot.shares)

    def test_locks_of_the_environment(self):
        """HDF5 does as this variable says, whatever a program asks of it."""
        for value in ("TRUE", "1", "BEST_EFFORT", "FALSE"):
            done = subprocess.run([twinstep.program(), "run", "lr-set-before-step", *SMALL, "--quiet", "--set",
                                   "steps=2", "-o", f"locks-{value}.h5"], cwd=HERE, capture_output=True, text=True,
                                  check=False, env={**os.environ, "HDF5_USE_FILE_LOCKING": value})
            self.assertEqual((done.returncode, done.stderr), (0, ""), value)
            self.assertTrue(twinstep.load(HERE / f"locks-{value}.h5").complete)

    def test_rows_ahead_of_step_are_no_updates(self):
        """Columns of a killed trace are longer than `step`, and no reader takes what they hold there
        for an update: what each says is that of as many updates of a run that was never killed."""
        words = ["--set", "steps=24", "--set", "common.schedule.total=24", "--set", "attribution.twin=false",
                 *SMALL, "--quiet", "--reproducible"]
        self.said(0, "run", "lr-set-before-step", *words, "-o", "w.h5")
        whole, count = twinstep.load(HERE / "w.h5"), kill_early(words)
        killed = twinstep.load(HERE / "k.h5.part")
        self.assertEqual([killed.arm(name).updates for name in ("baseline", "test")], [count, count])
        self.assert_rows(killed, whole, count)
        self.said(0, "recover", "k.h5.part", "-o", "r.h5")
        self.assert_rows(twinstep.load(HERE / "r.h5"), whole, count)
        with h5py.File(HERE / "r.h5") as file:
            self.assertEqual(file["runs/test/steps/loss"].shape, (count,))
        rows = [self.said(0, "export", name, "--to", "csv").splitlines() for name in ("k.h5.part", "w.h5")]
        self.assertEqual(rows[0], rows[1][:count + 1])
        self.assertEqual(json.loads(self.said(3, "attribute", "k.h5.part", "--json"))["updates"], count)
        self.assertEqual(json.loads(self.said(0, "certify", "k.h5.part", "--json"))["checked"], count)
        self.said(3, "compare", "k.h5.part", "w.h5")     # one of them ended early
        compared = json.loads(self.said(0, "compare", "k.h5.part", "w.h5", "--common", "--json"))
        self.assertEqual([compared[log]["rows"] for log in "ab"], [count, 24])
        self.assertIn(f"k.h5.part: twinstep trace, {count} rows", self.said(0, "doctor", "k.h5.part"))
        self.assertIn(f"test: {count} updates replayed, bit-equal", self.said(0, "replay", "k.h5.part"))
        self.assertIn(f"of {count} recorded updates", self.said(1, "bisect", "k.h5.part"))
        self.said(0, "report", "k.h5.part", "-o", "k.html")
        self.assertIn(f"baseline finished {count}, test finished {count}", (HERE / "k.html").read_text())
        self.said(0, "run", "lr-set-before-step", *words, "-o", "g.h5", "--resume", "k.h5.part")
        self.assertEqual((HERE / "g.h5").read_bytes(), (HERE / "w.h5").read_bytes())

    def said(self, status, *words):
        done = subprocess.run([twinstep.program(), *words], cwd=HERE, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, f"{words}: {done.stderr}")
        return done.stdout

    def assert_rows(self, trace, whole, count):
        for arm in ("baseline", "test"):
            for name, column in trace.arm(arm).items():
                if column.dims[:1] == ("step",):
                    np.testing.assert_array_equal(column.values, whole.arm(arm)[name].values[:count], name)

    def test_what_was_changed_after_it_was_sealed_is_refused(self):
        whole = (HERE / "pair.h5").read_bytes()
        self.assertEqual(twinstep.load(HERE / "pair.h5").seal, "whole")
        with h5py.File(HERE / "pair.h5") as file:
            places = {name: file[name].id.get_offset() for name in ("runs/test/steps/phases/phase", "floor/equal")}
        for name, words in (("runs/test/steps/phases/phase", "names, texts"), ("floor/equal", "results")):
            changed = bytearray(whole)
            changed[places[name]] ^= 1
            (HERE / "changed.h5").write_bytes(changed)
            with self.assertRaisesRegex(twinstep.NotATrace, f"damaged: {words}", msg=name):
                twinstep.load(HERE / "changed.h5")
        (HERE / "changed.h5").write_bytes(whole)
        with h5py.File(HERE / "changed.h5", "r+", libver=("v110", "v110")) as file:
            del file["seal"]
        self.assertRaisesRegex(twinstep.NotATrace, "its seals are gone", twinstep.load, HERE / "changed.h5")
        subprocess.run([twinstep.program(), "recover", HERE / "pair.h5", "-o", HERE / "again.h5"], check=True,
                       capture_output=True)
        self.assertEqual(twinstep.load(HERE / "again.h5").seal, "unfinished")
        said = subprocess.run([twinstep.program(), "recover", HERE / "pair.h5", "-o", HERE / "a\n\tb.h5"],
                              check=True, capture_output=True, text=True).stdout
        self.assertRegex(said, r"^\S*/a\\u000a\\u0009b\.h5: every finished update of \S*pair\.h5 \(twinstep "
                               r"doctor \S*/a\\u000a\\u0009b\.h5; h5py\)\n$")

    def test_other_files_are_refused_by_name(self):
        self.assertRaises(FileNotFoundError, twinstep.load, HERE / "none.h5")
        (HERE / "text.h5").write_text("no HDF5\n", encoding="utf-8")
        self.assertRaisesRegex(twinstep.NotATrace, "text.h5", twinstep.load, HERE / "text.h5")
        with h5py.File(HERE / "other.h5", "w"):
            pass
        self.assertRaisesRegex(twinstep.NotATrace, "twinstep_trace", twinstep.load, HERE / "other.h5")
        with h5py.File(HERE / "later.h5", "w") as file:
            file.attrs["twinstep_trace"] = 4
        self.assertRaisesRegex(twinstep.NotATrace, "version 4", twinstep.load, HERE / "later.h5")


class Libraries(unittest.TestCase):
    def test_what_is_missing_is_named(self):
        real = builtins.__import__

        def none_of(name, *words, **options):
            if name.split(".")[0] in ("xarray", "pandas", "matplotlib"):
                raise ImportError(f"No module named {name!r}")
            return real(name, *words, **options)
        trace = twinstep.load(HERE / "pair.h5")
        run = trace.arm("test")
        from twinstep import plots  # noqa: F401: what it imports itself is not in question
        with mock.patch.object(builtins, "__import__", none_of):
            for ask, library in ((run.to_xarray, "xarray"), (run.to_pandas, "pandas"),
                                 (trace.plot.gap, "matplotlib")):
                with self.assertRaisesRegex(ImportError, f"pip install {library}"):
                    ask()


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import matplotlib
        matplotlib.use("Agg")
        cls.trace = twinstep.load(HERE / "pair.h5")

    def test_gap(self):
        axes = self.trace.plot.gap()
        a, b = (self.trace.arm(name)["loss"].values for name in ("baseline", "test"))
        gap = np.abs(a - b)
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.where(gap > 0, gap, np.nan))
        self.assertEqual(axes.get_yscale(), "log")
        distance = self.trace.plot.gap("distance").lines[0].get_ydata()
        self.assertEqual(distance[-1], self.trace.verdict.distance)

    def test_floor_is_the_band_of_its_pairs(self):
        pairs = np.array([[1e-6, 3e-6], [2e-6, 2e-6], [4e-6, 1e-6]])
        with h5py.File(HERE / "floor.h5", "w") as file:
            file.attrs["twinstep_trace"] = 1
            file["noise/pairs_loss"] = pairs
        floor = twinstep.load(HERE / "floor.h5")
        axes = self.trace.plot.gap(floor=floor)
        band = axes.collections[0].get_paths()[0].vertices
        self.assertEqual((band[:, 1].min(), band[:, 1].max()), (1e-6, 4e-6))
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), [2e-6, 2e-6])
        self.assertRaisesRegex(KeyError, "it has: loss", self.trace.plot.gap, "grad_norm", floor=floor)
        with h5py.File(HERE / "floor.h5", "a") as file:
            file["noise/pairs_grad_norm"] = pairs
        axes = self.trace.plot.gap("grad_norm", floor=twinstep.load(HERE / "floor.h5"))
        a, b = (self.trace.arm(name)["grad_norm"].values for name in ("baseline", "test"))
        gap = np.abs(a - b) / a         # as twinstep.noise and twinstep floor have their pairs
        np.testing.assert_array_equal(axes.lines[1].get_ydata(), np.where(gap > 0, gap, np.nan))
        self.assertEqual(axes.get_ylabel(), "|A - B| / |A| of grad_norm")

    def test_two_recordings(self):
        names = ("trl_dpo", "trl_dpo_ahead")
        for name in names:
            packed = ROOT / f"tests/golden/record/{name}.h5.gz"
            (HERE / f"{name}.h5").write_bytes(gzip.decompress(packed.read_bytes()))
        a, b = (twinstep.load(HERE / f"{name}.h5") for name in names)
        gap = np.abs(a.runs["main"]["loss"].values - b.runs["main"]["loss"].values)
        for against in (b, b.runs["main"]):
            line, = a.plot.gap(against=against).lines
            np.testing.assert_array_equal(line.get_ydata(), np.where(gap > 0, gap, np.nan))
            self.assertEqual(line.get_label(), "|A - B|, trl_dpo.h5, trl_dpo_ahead.h5")
        rates = a.plot.curves("lr_applied", against=b).lines
        self.assertEqual(len(rates), 4)         # two groups of each
        self.assertRaisesRegex(ValueError, "no two arms, but main: give against=", a.plot.gap)
        self.assertRaisesRegex(ValueError, r"pair.h5 has \d+ runs", a.plot.gap, against=self.trace)
        with h5py.File(HERE / "trl_dpo.h5", "a") as file:
            file.copy("runs/main", "runs/other")
        line, = twinstep.load(HERE / "trl_dpo.h5").plot.gap("grad_norm").lines
        self.assertTrue(np.isnan(line.get_ydata()).all())

    def test_shares(self):
        axes = self.trace.plot.shares()
        self.assertEqual([bar.get_width() for bar in axes.patches], [100.0])
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()], ["schedule"])
        lines = self.trace.plot.shares_over_time().lines
        np.testing.assert_array_equal(lines[0].get_xdata(), [mark.update for mark in self.trace.verdict.marks])

    def test_curves_are_drawn_where_asked(self):
        axes = self.trace.plot.curves("grad_norm")
        self.assertIs(self.trace.plot.curves("grad_norm", axes=axes), axes)
        self.assertEqual(axes.get_ylabel(), "grad_norm, nat")


if __name__ == "__main__":
    unittest.main()
