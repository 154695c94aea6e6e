# SPDX-License-Identifier: Apache-2.0
"""labels: cli

twinstep tokenize: every form of rows gives the ids that TRL made of it (tests/golden/chat), bad rows
and files are refused with their line, and nothing is left of them. The tokenizer is the stub of
tests/golden/chat; `pretokenise` holds the script against the real transformers where that is."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

CHAT = pathlib.Path(__file__).resolve().parents[1] / "golden/chat"
sys.path.insert(0, str(CHAT))
import pretokenise_rows as rows_here  # noqa: E402

import twinstep  # noqa: E402
from twinstep import tokens  # noqa: E402


class Tokens(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model"
        self.model.mkdir()
        self.fixture = rows_here.read_fixture()
        rows_here.write_tokenizer(str(self.model), self.fixture)
        path = os.pathsep.join([str(CHAT / "stub"), os.environ.get("PYTHONPATH", "")])
        patch = mock.patch.dict(os.environ, {"PYTHONPATH": path})
        patch.start()
        self.addCleanup(patch.stop)

    def test_validate_every_form_as_trl_makes_it(self):
        for name, rows in rows_here.ROWS.items():
            out = self.folder / f"{name}.jsonl"
            made = twinstep.tokenize(self.model, rows, output=out)
            rows_here.check_fixture(self.fixture, name, made)
            self.assertEqual([json.loads(line) for line in out.read_text().splitlines()], made)
            shown = subprocess.run([os.environ["TWINSTEP_PROGRAM"], "data", "show", out], check=False,
                                   capture_output=True, text=True)
            self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_verify_the_command(self):
        rows = self.folder / "rows.jsonl"
        rows.write_text("".join(json.dumps(row) + "\n" for row in rows_here.ROWS["texts"]), encoding="utf-8")
        out = self.folder / "ids.jsonl"

        def run(*words):
            return subprocess.run([sys.executable, "-m", "twinstep", "tokenize", *map(str, words)],
                                  capture_output=True, text=True, check=False)
        done = run(self.model, rows, "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{len(rows_here.ROWS['texts'])} rows of token ids", done.stdout)
        before = out.read_bytes()
        rows.write_text('{"text": "a"}\n{"text": 5}\n', encoding="utf-8")
        for words, said in (((self.model, rows, "-o", out), "exists"),
                            ((self.model, rows, "-o", out, "--overwrite"), "line 2: "),
                            ((self.model, self.folder / "none", "-o", out, "--overwrite"), "none"),
                            ((self.folder, rows, "-o", out, "--overwrite"), "tokenizer.json")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertRegex(done.stderr, "^twinstep: error: [^\n]*\n$")
            self.assertIn(said, done.stderr)
        self.assertEqual(out.read_bytes(), before)
        self.assertEqual(run("--help").returncode, 0)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["ids.jsonl", "model", "rows.jsonl"])

    def test_verify_every_bad_row_is_refused(self):
        for given, needle in rows_here.REFUSED:
            (self.folder / "rows.jsonl").write_text(given, encoding="utf-8")
            with self.assertRaises(tokens.NotTokenized) as caught:
                twinstep.tokenize(self.model, self.folder / "rows.jsonl", output=self.folder / "ids")
            self.assertIn(needle, str(caught.exception))
        self.assertFalse((self.folder / "ids").exists())
        with self.assertRaisesRegex(tokens.NotTokenized, "there is no row"):
            twinstep.tokenize(self.model, [])


if __name__ == "__main__":
    unittest.main()
