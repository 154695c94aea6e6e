# SPDX-License-Identifier: Apache-2.0
"""labels: unit

What twinstep ablate says, sentence by sentence: over closures that are open, without shares, over
noise, and of logs. Judging is tested in tests/ablate/test_ablate_judge.c; here it is the text, which
must hold no figure that nobody knows and name nothing that was not run."""
import itertools
import json
import pathlib
import re
import shutil
import struct
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).with_name("ablate")))
from case import TRAIN, Case  # noqa: E402
from trainer import save  # noqa: E402


class Words(Case):
    def text(self, code=1):
        """The first line without the name, and all; neither may have a number that is none."""
        said = self.run_program("x.yaml", "--quiet", code=code).stdout
        self.assertNotRegex(said, r"\b-?(nan|inf)\b")
        self.assertNotIn("attribution:", said)
        return said.splitlines()[0].removeprefix("x: "), said

    def script(self, line, read, factors, **rest):
        """Writes an ablation of a shell's line."""
        self.write(factors=factors, read=read, **rest)
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", line]
        (self.root / "x.yaml").write_text(json.dumps(plan))

    def test_single_says_left_and_alone_and_no_shares(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}"], hybrids="single",
                   factors={"t0": [0, 3], "t1": [0, 4]})
        head, said = self.text()
        self.assertEqual(head, "OUTSIDE THE FLOOR. With one factor repaired, this much of the gap is left: "
                               "t0 80 %, t1 60 %. Alone, each opens this much of it: t0 60 %, t1 80 %.")
        self.assertIn("  shares   none: hybrids: single does not ask for them\n", said)

    def test_one_factor_is_the_cause_with_or_without_shares(self):
        for rest in ({}, {"hybrids": "single"}):
            self.write(name="x.yaml", command=["--t0", "{t0}"], factors={"t0": [0, 3]}, **rest)
            head, _ = self.text()
            self.assertEqual(head, "OUTSIDE THE FLOOR. Cause: t0, the only factor.")
            self.assertEqual(self.run_program("x.yaml", "--quiet", code=1).stdout.count("100.000 %"),
                             1 if rest else 2)
            (self.root / "x.ablate").rename(self.root / f"x{len(rest)}.ablate")

    def test_a_failed_hybrid_is_named_and_its_figures_are_unknown(self):
        # "crash" only with a and without b
        self.write(command=["--do", "{a}{b}", "--t0", "{t0}"],
                   factors={"a": ["c", "crash"], "b": ["", "x"], "t0": [0, 3]})
        head, said = self.text()
        self.assertEqual(head, "OUTSIDE THE FLOOR. With one factor repaired, this much of the gap is left: "
                               "a 100 %, b unknown, t0 0 %. Alone, each opens this much of it: a unknown, "
                               "b 0 %, t0 100 %.")
        self.assertRegex(said, r"  shares   untestable: \w+-100 failed, and 1 more of 7 \w+ have no end point\n")
        self.assertNotIn("  inert    a", said)

    def test_an_open_closure_is_told_first_and_speaks_of_all_factors(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}"], factors={"t0": [0, 3], "t1": [0, 0.25]},
                   test={"command": [*TRAIN, "--t0", "3", "--t1", "0.25", "--hidden", "1000"]})
        head, _ = self.text()
        # d_N = (3, 1/4, 0) and the arms are (3, 1/4, 1000) apart; shares 144/145 and 1/145
        self.assertEqual(head, "OUTSIDE THE FLOOR. Something that is in no factor differs, too: baseline with every "
                               "factor of test is not test, but 100 % of |a-b| away from it, and 0.301 % away from "
                               "baseline. Of the factors, t0 makes 99.31 % of the way to all factors; with it alone "
                               "left out, 8.305 % of that way is left. Besides: t1 0.6897 %.")

    def test_an_open_closure_of_bytes_equates_nothing_with_test(self):
        self.write(command=["--t0", "{t0}", "--inert", "{no}"], factors={"t0": [0, 3], "no": ["a", "b"]},
                   test={"command": [*TRAIN, "--t0", "3", "--inert", "b", "--hidden", "1000"]},
                   read={"bytes": "{dir}/model.safetensors"})
        head, _ = self.text()
        self.assertEqual(head, "OUTSIDE THE FLOOR. Something that is in no factor differs, too: baseline with every "
                               "factor of test is not test. With one factor left out of all, the baseline stays what "
                               "it is: t0.")

    def test_every_word_has_an_open_form(self):
        # what a run leaves is a table of its levels, and the other command leaves one more element
        words = {
            "Several of the factors act, in this order: a 80 %, b 20 % of the way to all factors.":
                {"xx": [0, 0], "yx": [2, 0], "xy": [0, 1], "yy": [2, 1]},
            "Several of the factors act, and which of them is the first is open: ":
                {"xx": [0, 0], "yx": [1, 0], "xy": [0, 1], "yy": [1, 1]},
            "The factors oppose each other: of the way to all factors a +300 %, b -200 %. Leaving one out leaves ":
                {"xx": [0, 0], "yx": [3, 0], "xy": [-2, 0], "yy": [1, 0]},
            "Only together do these factors act; alone each goes: ":
                {"xx": [0, 0], "yx": [0, 0], "xy": [0, 0], "yy": [1, 0]},
            "Each of several factors goes the way to all of them by itself; alone they go: ":
                {"xx": [0, 0], "yx": [1, 0], "xy": [1, 0], "yy": [1, 0]},
            "The causes nearly cancel: alone they go this many times the way to all factors: ":
                {"xx": [0, 0], "yx": [1, 0], "xy": [-1, 0.01], "yy": [0, 0.01]},
            "The factors cancel exactly: all together they lead to the baseline's end point, and some of them lead":
                {"xx": [0, 0], "yx": [1, 0], "xy": [-1, 0], "yy": [0, 0]},
            "No factor moved anything.": {"xx": [0, 0], "yx": [0, 0], "xy": [0, 0], "yy": [0, 0]},
        }
        table = pathlib.Path(self.root / "table.py")
        for number, (sentence, at) in enumerate(words.items()):
            table.write_text("import sys, json, struct\n"
                             f"t = {at!r}[sys.argv[2]] + [float(sys.argv[3])]\n"
                             "h = json.dumps({'w': {'dtype': 'F64', 'shape': [3], 'data_offsets': [0, 24]}}).encode()\n"
                             "open(sys.argv[1], 'wb').write(struct.pack('<Q', len(h)) + h + struct.pack('<3d', *t))\n")
            self.write(factors={"a": ["x", "y"], "b": ["x", "y"]}, read={"weights": "{dir}/w"})
            plan = json.loads((self.root / "x.yaml").read_text())
            plan["name"] = f"x{number}"
            plan["command"] = [sys.executable, "-SE", str(table), "{dir}/w", "{a}{b}", "0"]
            plan["test"] = {"command": [sys.executable, "-SE", str(table), "{dir}/w", "yy", "8"]}
            (self.root / "x.yaml").write_text(json.dumps(plan))
            head, _ = self.text()
            with self.subTest(sentence):
                self.assertIn(sentence, head)
                self.assertTrue(head.split(": ", 1)[1].startswith("OUTSIDE THE FLOOR. Something that is in no factor"),
                                head)
                self.assertNotIn("to test", head)
                self.assertNotIn("the gap", head)

    def test_joint_words_name_those_of_which_they_are_true(self):
        # by the levels of a, b and c: which end points are reached, and parts of it
        either, core, half = "yyx xyy yyy".split(), ["yyy"], "yxx xyx xxy yyx yxy xyy yyy".split()
        words = [ # whether all factors are the test arm, and what is said
            (["yyx", "yyy"], {}, True,
             " Only together do these causes open the gap; alone each opens: a 0 %, b 0 % of it. Repairing one alone "
             "leaves a 0 %, b 0 %. Others differ, too; alone they open: c 0 %; repairing one alone leaves c 100 %."),
            (either, {}, True,
             " Only together with any of a, c does b open the gap; alone each opens: b 0 %, a 0 %, c 0 % of it. "
             "Repairing one alone leaves b 0 %, a 100 %, c 100 %."),
            (either, {}, False,
             " Only together with any of a, c does b act; alone each goes: b 0 %, a 0 %, c 0 % of it. "
             "Leaving out one alone leaves b 0 %, a 100 %, c 100 %."),
            (core, {"yyx": 0.75}, False,
             " Only together do these factors go most of the way; alone each goes: a 0 %, b 0 % of it. Leaving out one "
             "alone leaves a 0 %, b 0 %. Of the others, alone each goes: c 0 %; leaving out one alone leaves c 75 %."),
            (core, {"yyx": 0.75, "yxy": 0.75, "xyy": 0.75}, True,
             " Only together do causes open the gap; alone each opens: a 0 %, b 0 %, c 0 % of it. Repairing one alone "
             "leaves a 75 %, b 75 %, c 75 %."),
            (half, {"xxy": 0.5}, False,
             " Each of several factors goes the way to all of them by itself; alone they go: a 100 %, b 100 % of it. "
             "Leaving out one alone leaves a 100 %, b 100 %. Leaving all of these out leaves 50 %. Of the others, alone each goes: c 50 %; "
             "leaving out one alone leaves c 100 %."),
            (["yyx", "yyy"], {"yxy": 0.5}, True,
             " a opens the gap together with b; other mixtures open half of it or more; alone each opens: a 0 %, b 0 % "
             "of it. Repairing one alone leaves a 0 %, b 50 %. Others differ, too; alone they open: c 0 %; repairing one "
             "alone leaves c 100 %."),
            (["yyx", "yyy"], {"yxy": 0.5}, False,
             " a acts together with b; other mixtures go half of the way or more; alone each goes: a 0 %, b 0 % of it. "
             "Leaving out one alone leaves a 0 %, b 50 %. Of the others, alone each goes: c 0 %; leaving out one alone "
             "leaves c 100 %."),
            (half, {"xxy": 0.5, "xyx": 0.75}, True,
             " Each of several causes opens at least half of the gap by itself; alone they open: a 100 %, b 75 %, c 50 % "
             "of it. Repairing one alone leaves a 100 %, b 100 %, c 100 %: repair all."),
        ]
        save(str(self.root / "other"), {"w": [1.0, 8.0]})
        for reached, parts, closed, sentence in words:
            for levels in map("".join, itertools.product("xy", repeat=3)):
                save(str(self.root / levels), {"w": [parts.get(levels, float(levels in reached)), 0.0]})
            own = {} if closed else {"test": {"command": ["cp", f"{self.root}/other", "{dir}/w"]}}
            self.script(f"cp {self.root}/{{a}}{{b}}{{c}} {{dir}}/w", {"weights": "{dir}/w"},
                        dict.fromkeys("abc", ["x", "y"]), name="x.yaml", **own)
            with self.subTest(sentence):
                head = self.text()[0]
                self.assertEqual(head[-len(sentence):], sentence)
            shutil.rmtree(self.root / "x.ablate")

    def test_only_is_said_of_the_mixtures_that_were_run(self):
        for levels in map("".join, itertools.product("xy", repeat=4)):
            save(str(self.root / levels), {"w": [float(levels.startswith("yyy")), 0.0]})
        self.script(f"cp {self.root}/{{a}}{{b}}{{c}}{{d}} {{dir}}/w", {"weights": "{dir}/w"},
                    dict.fromkeys("abcd", ["x", "y"]), name="x.yaml", hybrids="single")
        self.assertEqual(self.text()[0],
                         "OUTSIDE THE FLOOR. In the mixtures that were run, only together do these causes open the gap; "
                         "alone each opens: a 0 %, b 0 %, c 0 % of it. Repairing one alone leaves a 0 %, b 0 %, c 0 %. "
                         "Others differ, too; alone they open: d 0 %; repairing one alone leaves d 100 %.")

    def test_a_share_of_exactly_0_is_none_of_the_besides(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}", "--t2", "{t2}"],
                   factors={"t0": [0, 1], "t1": [0, 0.001], "t2": [0, "0e1"]})
        self.assertEqual(self.text()[0],
                         "OUTSIDE THE FLOOR. Cause: t0 makes 100 % of the way from baseline to test; with it alone "
                         "repaired, 0.1 % of the gap is left. Besides: t1 within 0.001 % of 0.")

    def test_a_list_leaves_out_what_does_nothing_and_joins_what_has_no_order(self):
        lists = [ # end points of the levels of a, b, c and d, on one line, and what is said
            (lambda a, b, c, d: 2 * a + b + c,
             " Several causes, in this order but for those joined by \"and\": a 50 %, b 25 % and c 25 % of the way from "
             "baseline to test. With one alone repaired, this much of the gap is left: a 50 %, b 75 %, c 75 %. d makes "
             "none of it."),
            (lambda a, b, c, d: 3 * a + b,
             " Several causes, in this order: a 75 %, b 25 % of the way from baseline to test. With one alone repaired, "
             "this much of the gap is left: a 25 %, b 75 %. c, d make none of it."),
            (lambda a, b, c, d: 3 * a - 2 * c,
             " Causes oppose each other: of the way from baseline to test a +300 %, c -200 %. Repairing one alone leaves "
             "a 200 %, c 300 % of the gap. b, d make none of it."),
            (lambda a, b, c, d: 8 * a - 2.0 ** -17 * b + 2.0 ** -18 * c,
             " Cause: a makes 100 % of the way from baseline to test; with it alone repaired, 4.768e-05 % of the gap is "
             "left. Besides: b within 0.001 % of 0, c within 0.001 % of 0."),
        ]
        for end, sentence in lists:
            for levels in itertools.product((0, 1), repeat=4):
                save(str(self.root / "".join("xy"[i] for i in levels)), {"w": [float(end(*levels)), 0.0]})
            self.script(f"cp {self.root}/{{a}}{{b}}{{c}}{{d}} {{dir}}/w", {"weights": "{dir}/w"},
                        dict.fromkeys("abcd", ["x", "y"]), name="x.yaml")
            with self.subTest(sentence):
                self.assertEqual(self.text()[0], "OUTSIDE THE FLOOR." + sentence)
            shutil.rmtree(self.root / "x.ablate")

    def test_what_equal_arms_hide(self):
        # by the levels of the factors; `own`: test is a command of its own, which leaves what baseline does
        cases = (
            ("abc", lambda a, b, c: 3 * a - 3 * b, False, "weights",
             " The factors cancel exactly: all together they end where baseline does, but alone these do not (by "
             "this much in the weights): a 3, b 3; alone nothing is moved by c."),
            ("abc", lambda a, b, c: a * b + b * c - 2 * a * c, False, "weights",
             " The factors cancel exactly: all together they end where baseline does, but with one of these left "
             "out they do not (by this much in the weights): a 1, b 2, c 1."),
            ("ab", lambda a, b: 3 * a - 3 * b, False, "bytes",
             " The factors cancel exactly: all together they end where baseline does, but alone these do not: "
             "a, b."),
            ("ab", lambda a, b: 4 * a, True, "weights",
             " Something that is in no factor differs, too: baseline with every factor of test is not test. Of the "
             "factors, a makes 100 % of the way to all factors; with it alone left out, 0 % of that way is left. "
             "The other makes none of the way."),
        )
        for names, end, own, read, sentence in cases:
            for levels in itertools.product((0, 1), repeat=len(names)):
                save(str(self.root / "".join("xy"[i] for i in levels)), {"w": [float(end(*levels)), 0.0]})
            test = {"command": ["cp", f"{self.root}/xx", "{dir}/w"]} if own else None
            of = "".join("{%s}" % name for name in names)
            self.script(f"cp {self.root}/{of} {{dir}}/w", {read: "{dir}/w"},
                        dict.fromkeys(names, ["x", "y"]), name="x.yaml", test=test)
            with self.subTest(sentence):
                head, said = self.text(code=0)
                self.assertEqual(head, f"IDENTICAL: baseline and test left equal {read}." + sentence)
                self.assertIn("\n  untested other seeds and data (seed), other machines; whether ", said)
            shutil.rmtree(self.root / "x.ablate")

    def test_what_is_not_known_of_equal_arms(self):
        two = dict.fromkeys("ab", ["x", "y"])
        self.script("test {a}{b} = yx && exit 7; printf x > {dir}/w", {"bytes": "{dir}/w"}, two)
        head, said = self.text(code=0)
        self.assertEqual(head, "IDENTICAL: baseline and test left equal bytes. Whether factors cancel exactly is not "
                               "known: hybrid-10 failed.")
        self.assertNotIn("  shares ", said)
        self.script("printf x > {dir}/w; : {a}{b}", {"bytes": "{dir}/w"}, two, name="x.yaml", if_equal="stop")
        shutil.rmtree(self.root / "x.ablate")
        head, said = self.text(code=0)
        self.assertEqual(head, "IDENTICAL: baseline and test left equal bytes.")
        self.assertIn("  untested causes that cancel exactly (if_equal: stop), other seeds and data (seed), other "
                      "machines\n", said)

    def test_digests_decide_at_distance_zero(self):
        for row, code in (("0.5", 1), ("1.0", 0)):
            self.script("printf '{{\"step\": 1, \"loss\": {a}}}\\n{{\"step\": 2, \"loss\": 2.0}}\\n' > {dir}/l.jsonl",
                        {"log": "{dir}/l.jsonl"}, {"a": ["1.0", row] if code else ["1.0", "1.00"]}, name="x.yaml")
            head, said = self.text(code=code)
            if code == 0:
                self.assertEqual(head, "IDENTICAL: baseline and test left equal log (losses, as printed).")
                continue
            self.assertEqual(head, "OUTSIDE THE FLOOR. Cause: a, the only factor.")
            self.assertIn("untestable: baseline and test differ in log, and the loss of update 2, the last that both "
                          "arms have, is equal", said)
            self.assertIn("  first    update 1, loss\n", said)
            (self.root / "x.ablate").rename(self.root / "other.ablate")

    def test_percentages_of_a_rest_stand_in_no_row(self):
        for levels in itertools.product((0, 1), repeat=2):
            save(str(self.root / "".join("xy"[i] for i in levels)), {"w": [float(levels[0] - levels[1]), 0.0009765625 * levels[1]]})
        self.script(f"cp {self.root}/{{a}}{{b}} {{dir}}/w", {"weights": "{dir}/w"}, dict.fromkeys("ab", ["x", "y"]), name="x.yaml")
        head, said = self.text()
        self.assertIn(" The causes nearly cancel: alone they go this many times the arms' distance: b 1024, a 1024; ", head)
        self.assertIn("  times    so many times the way from baseline to all factors, 0.000976562\n", said)
        self.assertRegex(said, r"\n +a +[-0-9.e+]+ x +1\.02e\+03 x +1\.02e\+03 x\n")
        self.assertNotIn("%", said.split("\n  times ", 1)[1].split("\n  untested", 1)[0])

    def test_braces_of_a_level_are_told_as_they_are(self):
        self.script("printf '%s' '{a}' > {dir}/w; : $B", {"bytes": "{dir}/w"},
                    {"a": ['{{"k": 1}}', '{{"k": 2}}'], "b": {"env": {"B": ["{{", None]}}}, name="x.yaml")
        _, said = self.text()
        self.assertIn('  differs  a: {"k": 1} -> {"k": 2}\n           b: B={ -> (not set)\n', said)
        levels = {factor["name"]: factor["levels"] for factor in self.verdict(code=1)["factors"]}
        self.assertEqual(levels["a"][0]["words"], ['{"k": 1}'])
        self.assertEqual([level["environment"] for level in levels["b"]], [{"B": "{"}, {"B": None}])

    def named(self, tensors, expected, code, measure=None, noisy=False, more=()):
        """Judges two factors, a and b, whose levels leave the tensors of a function."""
        for levels in map("".join, itertools.product("xy", repeat=2)):
            save(str(self.root / levels), tensors(levels[0] == "y", levels[1] == "y"))
        line = f"cp {self.root}/{{a}}{{b}} {{dir}}/w"
        if noisy:     # a byte of the last number is another one in every run
            line += ("; r={run}; printf %.1s ${{r##*-}} | dd of={dir}/w bs=1 seek=$(($(wc -c < {dir}/w) - 3)) "
                     "conv=notrunc 2> /dev/null")
        self.script(line, {"weights": "{dir}/w"}, dict.fromkeys("ab", ["x", "y"]), name="x.yaml")
        head, said = self.text(code=code)
        self.assertRegex(head, expected)
        for row in more:
            self.assertIn(f"  {row}\n", said)
        got = self.verdict(code=code)
        shutil.rmtree(self.root / "x.ablate")
        return got

    def test_names_are_compared_without_what_wrappers_put_into_them(self):
        w = [1.0, 2.0]
        for name in ("_orig_mod.h.0.w", "module.h.0.w", "module._orig_mod.h.0.w", "h.0._orig_mod.w",
                     "h._fsdp_wrapped_module.0._checkpoint_wrapped_module.w"):
            got = self.named(lambda a, b, name=name: {name if a else "h.0.w": w, "v": w},
                             "^IDENTICAL: baseline and test left equal weights", 0)
            self.assertEqual(got["tensors"]["common"], 2)
            self.assertEqual([len(of["wrappers"]) > 0 for of in got["tensors"]["arms"]], [False, True])
        self.named(lambda a, b: {"_orig_mod.w" if a else "module.w": [1.0 + b, 2.0]},
                   "Cause: b makes 100 % .* The other makes none of the way", 1, more=[
                       'names    those of baseline without "module.", those of test without "_orig_mod.", which '
                       'wrappers put into them', "inert    a: no evidence that it acted: with and without it 2 of 2 "
                       "hybrids are equal, bit for bit"])
        # two names that would become one stay, and so does what only looks like a wrapper
        self.named(lambda a, b: {"module.w" if a else "w": w, "modulew" if a else "module.v": w, "v": w},
                   r"All 2 tensors that both arms left are equal, bit for bit; but only baseline left module\.v, only "
                   r"test left modulew \(by a\)\.", 1)

    def test_names_in_files_of_torch_are_compared_without_wrappers(self):
        # a.pt of the goldens with other keys, as DistributedDataParallel writes them
        golden = pathlib.Path(__file__).resolve().parents[1] / "golden/ablate/a.pt"
        renamed = {"x": {}, "y": {b"w": b"module.w"}, "z": {b"w": b"module.w", b"b": b"w"}}
        for level, names in renamed.items():
            with zipfile.ZipFile(golden) as old, zipfile.ZipFile(self.root / level, "w") as new:
                for entry in old.infolist():
                    data = old.read(entry)
                    for key, name in names.items() if entry.filename.endswith("data.pkl") else ():
                        data = data.replace(b"X%s%s" % (struct.pack("<I", len(key)), key),
                                            b"X%s%s" % (struct.pack("<I", len(name)), name))
                    new.writestr(entry.filename, data)
        self.script(f"cp {self.root}/{{a}} {{dir}}/w", {"weights": "{dir}/w"}, {"a": ["x", "y"]}, name="x.yaml")
        self.assertIn('  names    those of test without "module.", which wrappers put into them\n', self.text(code=0)[1])
        shutil.rmtree(self.root / "x.ablate")
        # names that would become one stay
        self.script(f"cp {self.root}/{{a}} {{dir}}/w", {"weights": "{dir}/w"}, {"a": ["x", "z"]}, name="x.yaml")
        self.assertIn("only test left ", self.text()[0])

    def test_a_folder_from_before_names_were_taken_without_wrappers_is_continued(self):
        """Digests in its records are of the names in the file: those here a program wrote that took
        no wrapper out."""
        golden = pathlib.Path(__file__).resolve().parents[1] / "golden/ablate/a.pt"
        save(str(self.root / "x.safetensors"), {"_orig_mod.w": [1.0, 2.0]})
        save(str(self.root / "y.safetensors"), {"_orig_mod.w": [1.5, 2.0]})
        for level in "xy":
            with zipfile.ZipFile(golden) as old, zipfile.ZipFile(self.root / f"{level}.pt", "w") as new:
                for entry in old.infolist():
                    data = old.read(entry)
                    if entry.filename.endswith("data.pkl"):
                        data = data.replace(b"X" + struct.pack("<I", 1) + b"w", b"X" + struct.pack("<I", 8) + b"module.w")
                    new.writestr(entry.filename, data)
        x, y = ("929a88bf8f35d43a11b39d439fbc1f534b51f2ed6220d49f3621c0f57adeb1ff",
                "10a7418754a216daff581bc34971be28107e2288adc30884cc08047ab0f6f014")
        torch = "624786b17b0f398b4ce5ee4fb0a946760a6bcfb5635e4c8365b221a5d19f29a1"
        for end, older in (("safetensors", {"x": x, "y": y}), ("pt", {"x": torch, "y": torch})):
            self.script(f"cp {self.root}/{{a}}.{end} {{dir}}/w", {"weights": "{dir}/w"}, {"a": ["x", "y"]}, name="x.yaml")
            code = 1 if end == "safetensors" else 0
            said = self.text(code=code)
            records = sorted((self.root / "x.ablate/runs").glob("*/done"))
            self.assertGreaterEqual(len(records), 4)
            for record in records:
                text = record.read_text()
                digest = older["x" if "run baseline" in text else "y"]
                self.assertNotIn(digest, text)
                record.write_text(re.sub(r"(?m)^weights [0-9a-f]{64}$", f"weights {digest}", text))
            self.assertEqual(self.text(code=code), said)
            records[0].write_text(records[0].read_text().replace(older["x"], older["x"][::-1]))
            refused = self.run_program("x.yaml", "--quiet", code=2)
            self.assertIn("weights were changed after the run ended, or a version of twinstep recorded them that reads "
                          "them otherwise; the plan can be run in another folder (--output)", refused.stderr)
            shutil.rmtree(self.root / "x.ablate")

    def test_tensors_of_one_arm_alone_are_named_and_others_are_measured(self):
        w, head = [1.0, 2.0], {"head": [3.0]}
        got = self.named(lambda a, b: {"w": w, **({} if b else head)},
                         r"^OUTSIDE THE FLOOR\. The one tensor that both arms left is equal, bit for bit; but only "
                         r"baseline left head \(by b\)\. With one factor repaired, the test arm equals the baseline: "
                         r"b\.$", 1, more=["tensors  only baseline left head; alone, these change which there are: b",
                                          "shares   untestable: the tensors that both arms left are equal in baseline "
                                          "and test, so there is no distance that could have parts"])
        self.assertEqual(got["tensors"], {"common": 1, "equal": True, "arms": [
            {"only": 1, "first": "head", "wrappers": []}, {"only": 0, "first": None, "wrappers": []}]})
        self.assertEqual([f["alone_names"] for f in got["factors"]], [False, True])
        got = self.named(lambda a, b: {"w": [1.0 + a, 2.0], "v": w, **(head if b else {}), **({"x": w} if b else {})},
                         r"^OUTSIDE THE FLOOR\. Distances are of the 2 tensors that both arms left: only test left head "
                         r"and 1 more \(by b\)\. Cause: a makes 100 % of the way from baseline to test; with it alone "
                         r"repaired, 0 % of the gap is left\. The other makes none of the way\.$", 1,
                         more=["measure  weights: 2 tensors of both arms, 4 elements, |a-b| = 1"])
        self.assertEqual((got["distance"], got["closure"]), (1.0, "rerun-equal"))
        # a hybrid without a tensor of both arms has no distance
        self.named(lambda a, b: {"v": [1.0 + a], **({"w": w} if a == b else {})}, "No repair of one factor", 1,
                   more=["shares   untestable: hybrids have no distance: w is in both arms and not in hybrid-10"])
        self.named(lambda a, b: {"v" if a else "w": w}, "The arms have no tensor in common: only baseline left w", 1)

    def test_tensors_of_one_arm_alone_are_a_difference_over_noise(self):
        got = self.named(lambda a, b: {"w": [1.0, 2.0], **({"head": [3.0]} if b else {})},
                         r"^OUTSIDE THE FLOOR\. In the one tensor that both arms left they are not told apart from "
                         r"repeats; but only test left head \(by b\)\.", 1, noisy=True)
        self.assertEqual(got["floor"]["kind"], "noisy")

    def test_a_log_beside_weights_is_compared_too(self):
        golden = pathlib.Path(__file__).resolve().parents[1] / "golden/ablate"
        self.script(f"cp {golden}/{{w}}.pt {{dir}}/m.pt; printf '{{{{\"step\": 1, \"loss\": {{a}}}}}}\\n' > {{dir}}/l.jsonl",
                    {"weights": "{dir}/m.pt", "log": "{dir}/l.jsonl"}, {"a": ["1.0", "2.0"], "w": ["a", "b"]})
        _, said = self.text()
        self.assertNotIn("  inert", said)
        self.assertRegex(said, r"  partly   a: with and without it, 2 of 2 \w+ are equal in weights; it changes log\n")
        self.script(f"cp {golden}/a.pt {{dir}}/m.pt; printf '{{{{\"step\": 1, \"loss\": {{a}}}}}}\\n' > {{dir}}/l.jsonl",
                    {"weights": "{dir}/m.pt", "log": "{dir}/l.jsonl"}, {"a": ["1.0", "2.0"]}, name="x.yaml")
        (self.root / "x.ablate").rename(self.root / "other.ablate")
        head, _ = self.text()
        self.assertEqual(head, "OUTSIDE THE FLOOR. The arms left equal weights and differ in log (losses, as printed). "
                               "Cause: a, the only factor.")

    def test_a_loss_has_its_signed_gaps_in_the_table(self):
        # loss of update 1: (9 - 1) / 2 more with t0, (1/4 - 1) / 2 with t1
        self.write(command=["--t0", "{t0}", "--t1", "{t1}"], factors={"t0": [1, 3], "t1": [1, 0.5]},
                   read={"log": "{dir}/log.jsonl"})
        _, said = self.text()
        self.assertRegex(said, r"\n +t0 .* -0\.375 +\+4\n")
        self.assertRegex(said, r"\n +t1 .* \+4 +-0\.375\n")
        self.assertIn("loss at update 1: all factors +3.625; where a factor changes the rows or their order, it is the loss of "
                      "other rows\n", said)


    def test_a_hybrid_that_does_not_repeat_takes_the_shares_and_is_named(self):
        # with a and without b every run is another one, as with a kernel that only this combination takes
        self.write(factors={"a": ["0", "1"], "b": ["0", "1"]})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", "case {a}{b} in 10) v=$(od -An -N4 -tu4 /dev/urandom);; *) v={a}{b};; esac; exec "
                           + " ".join(TRAIN[:-1]) + " {dir} --t0 $v"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        head, said = self.text()
        self.assertRegex(head, r"^OUTSIDE THE FLOOR\. Which factor makes how much of it is not known: "
                               r"(\w+-10)-2 differs from \1 in weights, although the same command was run\.$")
        self.assertNotIn("repeat", said.splitlines()[-2])

        # commands do not repeat, so the arms need as many runs as noise does
        self.assertRegex(said, r"\n  floor    exact: 5 runs of each arm.*\n           (\w+-10)-2 differs from \1 in weights, "
                               r"although the same command was run, so more of the arms were run: p = 0\.007937 over "
                               r"all relabelings of 5 and 5 \(alpha 0\.01\); a second outcome would have shown in "
                               r"these 10 runs 19 times of 20 if it comes in 26 % of runs, and a rarer one less often\n")

    def test_an_exact_floor_says_what_its_runs_leave_to_chance(self):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]})
        plan = self.run_program("x.yaml", "--dry-run", code=0).stdout
        self.assertIn("x: up to 8 runs, ", plan)
        self.assertIn("\n  2 more of the arms, where they differ and all repeats are equal: fewer could be chance\n", plan)
        self.assertIn("\n  floor    exact: 3 runs of each arm, each in a process of its own, left equal weights\n"
                      "           the repeats agreed; the chance that this is luck, of a command with two outcomes, is at "
                      "most 0.78 % (alpha 1 %); a second outcome would have shown in these 6 runs 19 times of 20 if it "
                      "comes in 39 % of runs, and a rarer one less often\n", self.text()[1])
        self.assertEqual(len(self.began()), 8)
        shutil.rmtree(self.root / "x.ablate")
        self.write(command=["--inert", "{a}"], factors={"a": ["p", "q"]})
        self.assertIn("left equal weights\n           a second outcome would have shown in these 4 runs 19 times of 20 if it "
                      "comes in 53 % of runs, and a rarer one less often\n", self.text(code=0)[1])

    def test_factors_that_cancel_or_act_together_beside_a_cause_are_named(self):
        for formula, factors, told, linked in (
                ("{x} * {y} + {z}", {"x": ["2", "4"], "y": ["4", "2"], "z": ["0", "3"]},
                 " x and y cancel exactly: the baseline is the same with them, and all factors are the same without, "
                 "bit for bit. They count as one factor in these shares.", [{"how": "cancel", "factors": ["x", "y"]}]),
                ("{x} * {y} + {z} * {x}", {"x": ["2", "4"], "y": ["4", "2"], "z": ["0", "3"]},
                 " x and y cancel exactly in the baseline: it is the same with them, bit for bit.",
                 [{"how": "cancel-in-baseline", "factors": ["x", "y"]}]),
                ("({x} + {y}) * {z} + 5 * {x} + {y} * 7", {"x": ["2", "4"], "y": ["4", "2"], "z": ["0", "3"]},
                 "", []),
                ("5 * {x} * {y} + {z} + {i}", {"x": ["0", "1"], "y": ["0", "1"], "z": ["0", "3"], "i": ["0", "00"]},
                 " x and y act only together: without the other one, neither changed any of 8 hybrids.",
                 [{"how": "together", "factors": ["x", "y"]}]),
                ("{x} + {y} + {v} + {z}", {"x": ["0", "1"], "y": ["0", "2"], "v": ["3", "0"], "z": ["0", "9"]},
                 " x, y and v cancel exactly: the baseline is the same with them, and all factors are the same "
                 "without, bit for bit. They count as one factor in these shares.",
                 [{"how": "cancel", "factors": ["x", "y", "v"]}])):
            self.script(f"exec {' '.join(TRAIN[:-1])} {{dir}} --t0 $(( {formula} ))",
                        {"weights": "{dir}/model.safetensors"}, factors)
            head, _ = self.text()
            self.assertTrue(head.endswith(told) if told else "cancel" not in head, head)
            got = self.verdict(code=1)
            self.assertEqual([{key: of[key] for key in ("how", "factors")} for of in got["linked"]], linked)
            self.assertFalse(any(of["nearly"] for of in got["linked"]))
            joined = got["joined"]
            self.assertEqual(joined is not None, bool(linked) and linked[0]["how"] == "cancel", joined)
            if joined:
                self.assertIn("OUTSIDE THE FLOOR. Cause: z makes 100 % of the way from baseline to test; with it alone "
                              "repaired, 0 % of the gap is left. x", head)
                self.assertEqual([(of["factors"], of["share"]["value"]) for of in joined["factors"]],
                                 [(["z"], 1.0), (linked[0]["factors"], 0.0)])
            shutil.rmtree(self.root / "x.ablate")

    def nearly(self, end, read="weights", factors="abcd", **rest):
        """What is said of factors whose mixtures leave the vectors of a function."""
        for levels in itertools.product((0, 1), repeat=len(factors)):
            name = str(self.root / "".join("xy"[i] for i in levels))
            if read == "weights":
                save(name, {"w": end(*levels)})
            else:
                pathlib.Path(name).write_text('{"step": 1, "loss": %r}\n' % end(*levels)[0])
        of = "".join("{%s}" % name for name in factors)
        self.script(f"cp {self.root}/{of} {{dir}}/w.jsonl", {read: "{dir}/w.jsonl"}, dict.fromkeys(factors, ["x", "y"]),
                    name="x.yaml", **rest)
        head, said = self.text()
        got = self.verdict(code=1)
        shutil.rmtree(self.root / "x.ablate")
        return head, said, got

    def test_factors_that_cancel_but_for_rounding_count_as_one(self):
        # c and d lead 1 apart and back to within 2^-10, beside a, 3 along another axis, and b, 1 along it
        tiny = 2.0 ** -10
        head, said, got = self.nearly(lambda a, b, c, d: [3.0 * a + b, c - d * (1.0 - tiny)])
        self.assertEqual(head, "OUTSIDE THE FLOOR. Several causes, in this order: a 75 %, b 25 % of the way from baseline "
                               "to test. With one alone repaired, this much of the gap is left: a 25 %, b 75 %. c and d "
                               "belong together and count as one factor in these shares: alone each moves c 25 %, d 24.98 "
                               "% of the gap, and together 0.02441 %.")
        self.assertRegex(said, r"\n           these as one factor +0\.000 % +100\.000 % +0\.024 %\n"
                               r"             c +- +103\.\d+ % +25\.000 %\n             d +- +103\.\d+ % +24\.976 %\n")
        linked, = got["linked"]
        full = 16.0 + tiny * tiny
        self.assertEqual({key: linked[key] for key in ("how", "factors", "nearly", "joined")},
                         {"how": "cancel", "factors": ["c", "d"], "nearly": True, "joined": True})
        for key in ("moves_base", "moves_test"):
            self.assertAlmostEqual(linked[key], tiny / full ** 0.5, delta=1e-15)
        # the game of a, b and both others: d_N = (4, tiny), and each adds its own part
        for of, share in zip(got["joined"]["factors"], (12.0 / full, 4.0 / full, tiny * tiny / full)):
            self.assertAlmostEqual(of["share"]["value"], share, delta=1e-15)
        self.assertEqual([of["factors"] for of in got["joined"]["factors"]], [["a"], ["b"], ["c", "d"]])
        self.assertEqual(got["joined"]["word"], "several")
        # their own shares stay in the JSON: c makes tiny of tiny along that axis, and d less than none
        self.assertEqual([of["name"] for of in got["factors"][:2]], ["a", "b"])

    def test_parts_of_a_group_that_go_far_do_not_make_a_gap_of_the_group_nearly_nothing(self):
        # c and d lead 30 apart and back to within 2^-10, beside a, which goes 1: alone each goes 30 times the gap
        tiny = 2.0 ** -10
        head, said, got = self.nearly(lambda a, c, d: [1.0 * a, 30.0 * (c - d) + tiny * d], factors="acd")
        self.assertEqual(head, "OUTSIDE THE FLOOR. Cause: a makes 100 % of the way from baseline to test; with it alone "
                               "repaired, 0.09766 % of the gap is left. c and d belong together and count as one factor "
                               "in these shares: alone each moves c 3000 %, d 3000 % of the gap, and together 0.09766 %.")
        self.assertIn("  shares   of the way from baseline to all factors, 1\n", said)
        self.assertEqual((got["word"], got["joined"]["word"]), ("nearly-cancel", "cause"))

    def test_what_does_not_nearly_cancel_is_not_joined(self):
        for end, more in (
                # a fiftieth of what each moves is left
                (lambda a, b, c, d: [3.0 * a + b, c - d * (1.0 - 0.02)], {}),
                # they cancel in the baseline and not in test, where a doubles one of them
                (lambda a, b, c, d: [3.0 * a + b, c * (1 + a) - d * (1.0 - 2.0 ** -10)], {}),
                # each moves less than a hundredth of the gap
                (lambda a, b, c, d: [300.0 * a + b, c - d * (1.0 - 2.0 ** -10)], {}),
                # of one number, opposite changes of one size are no sign that they belong together
                (lambda a, b, c, d: [3.0 * a + b + c - d * (1.0 - 2.0 ** -10)], {"read": "log"})):
            head, _, got = self.nearly(end, **more)
            self.assertEqual((got["linked"], got["joined"]), ([], None), head)
            self.assertNotIn("belong together", head)

    def test_factors_that_nearly_cancel_are_named_where_there_are_no_shares(self):
        # of three, hybrids: single has each alone and all but each, and so every pair
        head, _, got = self.nearly(lambda a, c, d: [3.0 * a, c - d * (1.0 - 2.0 ** -10)], factors="acd",
                                   hybrids="single")
        self.assertIn(" c and d nearly cancel: alone each moves c 33.33 %, d 33.3 % of the gap, and together 0.03255 %.",
                      head)
        self.assertEqual((len(got["linked"]), got["joined"]), (1, None))

    def test_hybrids_that_were_run_where_no_arm_was_are_named(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}"], factors={"t0": [0, 3], "t1": [0, 4]})
        self.assertNotIn("where no arm was", self.text()[1])
        runs = self.root / "x.ablate/runs"
        for name in runs.glob("*-10*"):
            place = re.search("place (.*)", (name / "done").read_text())[1]
            (name / "done").write_text((name / "done").read_text().replace(f"place {place}", "place other"))
        head, _ = self.text()
        self.assertRegex(head, r" Of the \w+, 2 were run where no arm was \(\w+-10 on other, \.\.\.\): a difference of "
                               r"machines or devices would look like a factor\.$")

    def test_shares_say_why_they_do_not_add_up_with_what_is_left(self):
        note = ("\n           share is measured along the way alone; left and alone are whole distances, with what lies "
                "across it, so the columns do not add up to 100 %\n  untested ")
        self.write(command=["--t0", "{t0}", "--t1", "{t1}"], factors={"t0": [0, 3], "t1": [0, 4]})
        self.assertIn(note, self.text()[1])
        shutil.rmtree(self.root / "x.ablate")
        self.write(name="x.yaml", command=["--t0", "{t0}", "--t1", "{t1}"], factors={"t0": [0, 3], "t1": [0, 4]},
                   hybrids="single")
        self.assertNotIn("add up", self.text()[1])
        shutil.rmtree(self.root / "x.ablate")
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]})
        self.assertNotIn("add up", self.text()[1])

    def test_what_was_run_once_is_untested(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}", "--t2", "{t2}"],
                   factors={"t0": [0, 1], "t1": [0, 2], "t2": [0, 10]})
        self.assertRegex(self.text()[1], r"\n  untested .*; whether 4 of 7 \w+, which were run once, repeat\n")


class Noise(Case):
    def write_values(self, test, hybrid=(), **factors):
        """Arms whose runs leave the numbers of a table, one weight each."""
        cases = "".join(f"{name}) v={value};; " for name, value in {
            **{f"baseline-{i + 1}": i for i in range(5)}, **{f"test-{i + 1}": v for i, v in enumerate(test)},
            **dict(hybrid)}.items())
        line = (f"case {{run}} in {cases}*) v=3;; esac; exec {' '.join(TRAIN[:-1])} {{dir}} --t0 $v --inert {{a}}" +
                "".join(f"{{{factor}}}" for factor in factors))
        self.write(factors={"a": ["p", "q"], **factors})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", line]
        (self.root / "x.yaml").write_text(json.dumps(plan))

    def test_inside_is_not_called_alike(self):
        self.write_values([8, 7, 6, 5, 2.5])
        got = self.verdict(code=0)
        self.assertEqual((got["verdict"], got["floor"]["shift"]), ("inside-floor", 13.5))
        head = self.run_program("x.yaml", "--quiet", code=0).stdout.splitlines()[0]
        self.assertEqual(head, "x: INSIDE THE FLOOR: the arms are not told apart from repeats (p = 0.02381, alpha 0.01; "
                               "a shift of more than 13.5 in any direction would be).")

    def test_an_arm_that_repeats_beside_one_that_does_not_is_named(self):
        steady = {f"baseline-{i + 1}": 3 for i in range(5)}
        def alone(*values):
            return {f"hybrid-1{i}": value for i, value in zip(("", "-2", "-3", "-4", "-5"), values)}
        self.write_values([4, 5, 4.5, 6, 4.2], {**steady, **alone(4.1, 5.1, 4.4, 6.1, 4.3)})
        head, said = self.run_program("x.yaml", "--quiet", code=1).stdout.split("\n", 1)
        self.assertTrue(head.startswith(
            "x: OUTSIDE THE FLOOR. All runs of baseline are bit-equal; only test does not repeat itself (by 2 at most): "
            "the factor brings nondeterminism, and no shift beyond it is shown."), head)
        self.assertIn("\n  floor    noisy: runs of test differ in weights, by 2 at most; those of baseline are equal; p = ",
                      said)
        shutil.rmtree(self.root / "x.ablate")
        # a alone brings the noise, and b moves all by 10
        hybrids = {f"hybrid-{mask}{i}": value for mask, values in
                   (("10", (3, 4, 2.5)), ("01", (13, 13, 13)), ("11", (12, 14, 13.5, 11, 12.5)))
                   for i, value in zip(("", "-2", "-3", "-4", "-5"), values)}
        self.write_values([12.1, 14.1, 13.4, 11.1, 12.6], {**steady, **hybrids}, b=["r", "s"])
        head, said = self.run_program("x.yaml", "--quiet", code=1).stdout.split("\n", 1)
        self.assertTrue(head.startswith(
            "x: OUTSIDE THE FLOOR. All runs of baseline are bit-equal; only test does not repeat itself (by 3 at most): "
            "the factors bring nondeterminism, and the arms are 8.1 apart at least. Alone, a does not repeat; b does. "), head)
        self.assertEqual(self.verdict(code=1)["floor"]["unsteady"], ["test"])
        shutil.rmtree(self.root / "x.ablate")
        self.write_values([9, 9, 9, 9, 9], alone(9, 9, 9, 9, 9))
        head = self.run_program("x.yaml", "--quiet", code=1).stdout.split("\n", 1)[0]
        self.assertIn(" All runs of test are bit-equal; only baseline does not repeat itself (by 4 at most): the factor "
                      "takes away nondeterminism, and the arms are 5 apart at least. ", head)

    def inside_untested(self, expected, **factors):
        self.write_values([8, 7, 6, 5, 2.5], **factors)
        shown = self.run_program("x.yaml", "--quiet", code=0).stdout
        self.assertIn(f"\n  untested {expected}other seeds and data (seed), other machines\n", shown)

    def test_inside_says_that_nothing_was_looked_for(self):
        self.inside_untested("causes that cancel (over a noisy floor hybrids are run where the arms differ), ",
                             b=["r", "s"])

    def test_one_factor_cancels_nothing(self):
        self.inside_untested("")


if __name__ == "__main__":
    unittest.main()
