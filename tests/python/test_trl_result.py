# SPDX-License-Identifier: Apache-2.0
"""labels: unit

The ablations of docs/TRL.md and docs/measurements/ablate.md as they once came out
(tests/golden/ablate/*.json, what their commands print with --json, without the folder and the runs),
against the figures on these pages. No torch is needed; test_trl_page.py, which needs it, runs the
first page again."""
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {"trl.json": "docs/TRL.md", "trl_four.json": "docs/measurements/ablate.md"}


class Result(unittest.TestCase):
    def each(self):
        for name, page in PAGES.items():
            kept = json.loads((ROOT / "tests/golden/ablate" / name).read_text(encoding="utf-8"))
            yield kept, (ROOT / page).read_text(encoding="utf-8")

    def test_the_table_of_the_page_is_what_is_kept(self):
        for kept, page in self.each():
            rows = re.findall(r"^ +([a-z0-9-]+) +(\S+) % +(\S+) % +(\S+) % +(\S+) +(\S+)$", page, re.M)
            self.assertEqual([row[0] for row in rows], [factor["name"] for factor in kept["factors"]])
            for (name, *figures), factor in zip(rows, kept["factors"]):
                shown = [f"{100 * factor[key]['value']:.3f}" for key in ("share", "left", "alone")]
                shown += [f"{factor[key]:+.4g}" for key in ("loss_left", "loss_alone")]
                self.assertEqual(figures, shown, name)

    def test_the_sentence_about_a_script_of_ones_own_is_what_is_kept(self):
        kept = json.loads((ROOT / "tests/golden/ablate/trl_own.json").read_text(encoding="utf-8"))
        page = (ROOT / "docs/TRL.md").read_text(encoding="utf-8")
        first, *others = kept["factors"]
        self.assertEqual((kept["verdict"], kept["word"], kept["closure"], first["name"]),
                         ("outside-floor", "cause", "exact", "script"))
        self.assertIn(f"dpo: OUTSIDE THE FLOOR. Cause: script makes {100 * first['share']['value']:.4g} % of the "
                      "way from baseline to test; with it alone repaired, "
                      f"{100 * first['left']['value']:.4g} % of the gap is left. Besides: "
                      + ", ".join(f"{f['name']} {100 * f['share']['value']:.4g} %" for f in others) + ".\n", page)

    def test_the_words_of_the_page_are_what_is_kept(self):
        for kept, page in self.each():
            self.assertEqual((kept["verdict"], kept["word"], kept["closure"], kept["floor"]["kind"]),
                             ("outside-floor", "cause", "exact", "exact"))
            self.assertIn(f"trl: OUTSIDE THE FLOOR. Cause: {kept['factors'][0]['name']} makes ", page)
            self.assertIn(f"|a-b| = {kept['distance']:.6g}\n", page)
            self.assertIn(f"loss at update {kept['update']}: all factors {kept['loss_gap']:+.4g}", page)
            self.assertAlmostEqual(sum(factor["share"]["value"] for factor in kept["factors"]), 1.0, delta=1e-12)

    def test_what_does_nothing_is_inert(self):
        for kept, page in self.each():
            for factor in kept["factors"]:
                self.assertEqual(f"inert    {factor['name']}: no evidence that it acted" in page, factor["inert"])
                if factor["inert"]:
                    self.assertEqual((factor["share"]["value"], factor["alone"]["value"]), (0.0, 0.0))


if __name__ == "__main__":
    unittest.main()
