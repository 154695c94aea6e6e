# SPDX-License-Identifier: Apache-2.0
"""labels: unit

The ablation of docs/TRL.md as it once came out (tests/golden/ablate/trl.json, the JSON that its last
command prints with --json, without the folder and the runs), against the figures on that page. No
torch is needed; test_trl_page.py, which needs it, runs the page again."""
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Result(unittest.TestCase):
    def setUp(self):
        self.kept = json.loads((ROOT / "tests/golden/ablate/trl.json").read_text(encoding="utf-8"))
        self.page = (ROOT / "docs/TRL.md").read_text(encoding="utf-8")

    def test_the_table_of_the_page_is_what_is_kept(self):
        rows = re.findall(r"^ +([a-z0-9-]+) +(\S+) % +(\S+) % +(\S+) % +(\S+) +(\S+)$", self.page, re.M)
        self.assertEqual([row[0] for row in rows], [factor["name"] for factor in self.kept["factors"]])
        for (name, *figures), factor in zip(rows, self.kept["factors"]):
            shown = [f"{100 * factor[key]['value']:.3f}" for key in ("share", "left", "alone")]
            shown += [f"{factor[key]:+.4g}" for key in ("loss_left", "loss_alone")]
            self.assertEqual(figures, shown, name)

    def test_the_words_of_the_page_are_what_is_kept(self):
        self.assertEqual((self.kept["verdict"], self.kept["word"], self.kept["closure"], self.kept["floor"]["kind"]),
                         ("outside-floor", "cause", "exact", "exact"))
        self.assertIn("trl: OUTSIDE THE FLOOR. Cause: loop makes ", self.page)
        self.assertIn(f"|a-b| = {self.kept['distance']:.6g}\n", self.page)
        self.assertIn(f"loss at update {self.kept['update']}: all factors {self.kept['loss_gap']:+.3g}", self.page)
        self.assertAlmostEqual(sum(factor["share"]["value"] for factor in self.kept["factors"]), 1.0, delta=1e-12)


if __name__ == "__main__":
    unittest.main()
