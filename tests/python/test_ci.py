# SPDX-License-Identifier: Apache-2.0
"""labels: unit

assert_same_training on real logs: equal, different, undecidable; what stands in the job summary;
and the hooks of the plugin, called as pytest calls them."""
import argparse
import gzip
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import twinstep
from twinstep import ci, pytest_plugin, results

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = ROOT / "tests/golden/logs/hf5/dpo-linear-cold/trainer_state.json"


class Assertion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(ci.told.clear)

    def csv(self, name, *losses):
        file = self.folder / name
        rows = "".join(f"{i},{loss}\n" for i, loss in enumerate(losses, 1))
        file.write_text(f"step,loss\n{rows}", encoding="utf-8")
        return file

    def test_equal_logs_pass(self):
        ci.assert_same_training(LOG, LOG)
        self.assertRegex(ci.told[0], "equal-within-precision")

    def test_a_difference_fails_with_its_update(self):
        a, b = self.csv("a.csv", 0.51, 0.42, 0.33), self.csv("b.csv", 0.51, 0.47, 0.33)
        with self.assertRaisesRegex(AssertionError, "differs.*\ncolumn loss: 1 of 3 updates differ, from update 2"):
            ci.assert_same_training(a, b)
        self.assertIsInstance(twinstep.compare(a, b).columns[0], results.ComparedColumn)

    def test_what_cannot_be_decided_fails(self):
        for status in (1, 3):
            found = results.Comparison("untestable", "no updates in common", (), status, {
                "floor": {"verdict": "outside-floor", "words": "p = 0.01", "pairs": 99}})
            with mock.patch.object(ci, "compare", return_value=found):
                self.assertRaisesRegex(AssertionError, r"no updates.*\nfloor: outside-floor: p = 0.01 \(99", ci.assert_same_training, LOG, LOG)

    def test_a_floor_that_is_none_is_an_error(self):
        with self.assertRaises(twinstep.ProgramError):
            ci.assert_same_training(LOG, LOG, floor=LOG)
        with mock.patch.object(ci, "default_floor", LOG), self.assertRaises(twinstep.ProgramError):
            ci.assert_same_training(LOG, LOG)

    def test_noise_passes_within_its_measured_floor(self):
        for name in ("racing.floor", "racing_a", "racing_b", "racing_rate"):
            packed = (ROOT / f"tests/golden/record/{name}.h5.gz").read_bytes()
            (self.folder / f"{name}.h5").write_bytes(gzip.decompress(packed))
        a, b, rate, floor = (self.folder / f"{name}.h5" for name in (
            "racing_a", "racing_b", "racing_rate", "racing.floor"))
        self.assertRaises(AssertionError, ci.assert_same_training, a, b)
        ci.assert_same_training(a, b, floor=floor)
        self.assertIn("floor: inside-floor", ci.told[-1])
        with mock.patch.object(ci, "default_floor", floor):
            ci.assert_same_training(a, b)
            self.assertRaisesRegex(AssertionError, "outside-floor", ci.assert_same_training, a, rate)

    def test_the_summary_holds_no_markup_and_no_control_characters_of_a_log(self):
        found = results.Comparison("differs", "</pre><script>\x1b[2J::error::x", (), 1)
        place = self.folder / "summary.md"
        with mock.patch.object(ci, "compare", return_value=found), mock.patch.object(ci, "summary", place):
            self.assertRaises(AssertionError, ci.assert_same_training, "a", "b")
        text = place.read_text(encoding="utf-8")
        self.assertEqual(text.count("</pre>"), 1)
        self.assertIn("&lt;script&gt;\N{REPLACEMENT CHARACTER}[2J", text)

    def test_no_line_begins_with_a_word_of_a_log_or_a_file(self):
        """A runner of GitHub takes a line that begins with :: for a command, and ##[ anywhere."""
        column = mock.Mock(column="::error::c ##[error]d", different=1, pairs=1, first_update=1)
        found = results.Comparison("::error::v", "w\n::error::x", (column,), 1,
                                   raw={"floor": {"verdict": "v", "words": "w\r\n::error::y", "pairs": 3}})
        place = self.folder / "summary.md"
        with mock.patch.object(ci, "compare", return_value=found), mock.patch.object(ci, "summary", place):
            with self.assertRaises(AssertionError) as raised:
                ci.assert_same_training("::error::a", "::stop-commands::b\n::warning::c##[warning]d")
        for text in (str(raised.exception), ci.told[-1], place.read_text(encoding="utf-8")):
            self.assertNotIn("##[", text)
            self.assertIn("c ##\\u005berror]d", text)
            lines = text.replace("<pre>", "").splitlines()
            self.assertEqual([line.split(" ")[0] for line in lines if line and not line.startswith("</pre>")],
                             ["training", "floor:", "column"])

    @unittest.skipUnless(importlib.util.find_spec("pytest"), "no pytest (Debian: python3-pytest)")
    def test_a_real_pytest_tells_every_verdict(self):
        for name in ("racing.floor", "racing_a", "racing_b", "racing_rate"):
            packed = (ROOT / f"tests/golden/record/{name}.h5.gz").read_bytes()
            (self.folder / f"{name}.h5").write_bytes(gzip.decompress(packed))
        (self.folder / "test_training.py").write_text(
            "from twinstep import assert_same_training\n"
            "def test_same():\n    assert_same_training('racing_a.h5', 'racing_b.h5')\n"
            "def test_other_rate():\n    assert_same_training('racing_a.h5', 'racing_rate.h5')\n",
            encoding="utf-8")
        summary = self.folder / "summary.md"

        def run(*words):
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-p", "twinstep.pytest_plugin", "-p", "no:cacheprovider",
                 *words], cwd=self.folder, capture_output=True, text=True, check=False,
                env={**os.environ, "GITHUB_STEP_SUMMARY": str(summary)})
            return done.returncode, done.stdout + done.stderr
        status, said = run("--twinstep", "--twinstep-floor=racing.floor.h5")
        self.assertEqual(status, 1, said)
        self.assertIn("1 failed, 1 passed", said)
        self.assertRegex(said, "=+ twinstep =+")
        self.assertIn("floor: inside-floor: p = ", said)
        self.assertIn("floor: outside-floor: p = 0.01", said)
        self.assertEqual(summary.read_text(encoding="utf-8").count("<pre>"), 2)
        status, said = run("test_training.py::test_same")
        self.assertEqual(status, 1, said)       # without a floor noise is a difference
        self.assertNotRegex(said, "=+ twinstep =+")

    def test_the_plugin_takes_its_options(self):
        parser = argparse.ArgumentParser()
        group = mock.Mock(getgroup=lambda name: mock.Mock(addoption=parser.add_argument))
        pytest_plugin.pytest_addoption(group)
        for words, place in ((["--twinstep", "--twinstep-floor=f.h5"], pathlib.Path("s.md")), ([], None)):
            options = parser.parse_args(words)
            config = mock.Mock(getoption=lambda name: getattr(options, name))
            reporter = mock.Mock()
            with mock.patch.dict(os.environ, {"GITHUB_STEP_SUMMARY": "s.md"}), mock.patch.object(
                    ci, "summary", None), mock.patch.object(ci, "default_floor", None):
                pytest_plugin.pytest_configure(config)
                self.assertEqual((ci.summary, ci.default_floor), (place, "f.h5" if words else None))
            ci.told.append("said")
            pytest_plugin.pytest_terminal_summary(reporter, config)
            self.assertEqual(reporter.write_line.call_count, len(words) // 2)


if __name__ == "__main__":
    unittest.main()
