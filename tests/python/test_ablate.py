# SPDX-License-Identifier: Apache-2.0
"""labels: unit

twinstep ablate on a training whose shares can be computed on paper (ablate/trainer.py): verdicts,
floors, failures of commands, and resuming. test_ablate_long.py has what takes more trainings."""
import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).with_name("ablate")))
from case import PROGRAM, TRAIN, Case, Slow, alive  # noqa: E402


class Paper(Case):
    def test_shares_left_and_alone_are_those_of_a_right_triangle(self):
        # d = (3, 0) and (0, 4): shares 9/25 and 16/25, a repair leaves the other leg
        self.write(command=["--t0", "{t0}", "--t1", "{t1}", "--inert", "{no}"],
                   factors={"t0": [0, 3], "t1": [0, 4], "no": ["a", "b"]},
                   read={"weights": "{dir}/model.safetensors", "log": "{dir}/log.jsonl"})
        got = self.verdict(code=1)
        self.assertEqual(got["verdict"], "outside-floor")
        self.assertEqual((got["floor"]["kind"], got["distance"], got["word"]), ("exact", 5.0, "several"))
        self.assertEqual([f["name"] for f in got["factors"]], ["t1", "t0", "no"])
        shares = self.figures(got, "share")
        for name, share in {"t0": 9 / 25, "t1": 16 / 25, "no": 0.0}.items():
            self.assertAlmostEqual(shares[name], share, delta=1e-15)
        self.assertEqual(self.figures(got, "left"), {"t0": 0.8, "t1": 0.6, "no": 1.0})
        self.assertEqual(self.figures(got, "alone"), {"t0": 0.6, "t1": 0.8, "no": 0.0})
        self.assertEqual([(f["inert"], f["neighbours"]) for f in got["factors"]],
                         [(False, 4), (False, 4), (True, 4)])
        # the loss of update 1 is t.t/2: 1/2 for the third weight, and 9/2 and 16/2 beside it
        self.assertEqual((got["update"], got["loss_gap"]), (1, 12.5))
        self.assertEqual([f["loss_alone"] for f in got["factors"]], [8.0, 4.5, 0.0])
        self.assertEqual(got["closure"], "rerun-equal")
        self.assertEqual(len(self.began()), 11 + 3)
        self.assertEqual(self.began().count("hybrid-111"), 1)
        # t1 comes first: all factors, all but t1, and t1 alone are run once more
        self.assertEqual(sorted(self.began()[11:]), ["hybrid-010-2", "hybrid-101-2", "hybrid-111-2"])
        self.assertEqual(got["run_once"], 4)

    def test_opposing_causes_have_signed_shares(self):
        # w = lr t: 1 x 2 -> 1/2 x 8. d_lr = -1, d_t = 6, d_N = 2, so shares are -5/4 and 9/4
        self.write(command=["--lr", "{lr}", "--t0", "{t0}"], factors={"lr": [1, 0.5], "t0": [2, 8]},
                   test=None, environment={"SHIFT": "-1"}, read={"weights": "{dir}/model.safetensors"})
        self.env["SHIFT"] = "7"  # what the file says counts
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] += ["--t1", "0"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        got = self.verdict(code=1)
        self.assertEqual(got["word"], "oppose")
        self.assertEqual(self.figures(got, "share"), {"t0": 2.25, "lr": -1.25})
        self.assertEqual(self.figures(got, "alone"), {"t0": 3.0, "lr": 0.5})

    def test_loss_alone_gives_signed_gaps(self):
        # loss of update 1: (9 - 1) / 2 more with t0, (1/4 - 1) / 2 with t1
        self.write(command=["--t0", "{t0}", "--t1", "{t1}"], factors={"t0": [1, 3], "t1": [1, 0.5]},
                   read={"log": "{dir}/log.jsonl"})
        got = self.verdict(code=1)
        self.assertEqual((got["measure"], got["update"]), ("loss", 1))
        self.assertEqual(got["full"], 4.0 - 0.375)
        shares = self.figures(got, "share")
        self.assertAlmostEqual(shares["t0"], 4.0 / 3.625, delta=1e-15)
        self.assertAlmostEqual(shares["t1"], -0.375 / 3.625, delta=1e-15)

    def test_files_of_torch_save_are_weights(self):
        # torch 2.15.0 saved {"model": {"w": f32, "b": bf16}, "steps": 3, "seen": [i64]}: w is [1, 2, 3]
        # and [1, 2, 6], b is [4, 8] and [8, 8], so the distance is 5
        golden = pathlib.Path(__file__).resolve().parents[1] / "golden/ablate"
        self.write(factors={"of": ["a", "b"]}, read={"weights": "{dir}/model.pt"})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", f"cp {golden}/{{of}}.pt {{dir}}/model.pt"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        got = self.verdict(code=1)
        self.assertEqual((got["measure"], got["distance"], got["word"]), ("weights", 5.0, "cause"))
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("weights: 3 tensors, 5 elements (integers beside them: equality only), |a-b| = 5", text)

    def test_traces_say_where_a_factor_acts_first(self):
        # recorded DPO trainings by TRL: as it is, and with each update's LR one ahead
        golden = pathlib.Path(__file__).resolve().parents[1] / "golden/record"
        self.write(factors={"lr": ["trl_dpo", "trl_dpo_ahead"]}, read={"trace": "{dir}/t.h5"})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", f"gunzip -c {golden}/{{lr}}.h5.gz > '{{dir}}/t.h5'"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        got = self.verdict(code=1)
        first = {"update": 1, "phase": "optimize", "tensor": "model.embed_tokens.weight"}
        self.assertEqual((got["first"], got["factors"][0]["first"]), (first, first))
        self.assertEqual((got["measure"], got["update"], got["word"]), ("loss", 10, "cause"))
        text = self.run_program("x.yaml", "--quiet", "-o", "a b", code=1).stdout
        self.assertIn("first    update 1, optimize, model.embed_tokens.weight", text)
        # the commands that it ends with can be pasted, and say what the test arm does otherwise
        compare, doctor = self.next_commands(text)
        runs = f"{os.path.realpath(self.root)}/a b/runs"
        self.assertEqual(compare, f"twinstep compare '{runs}/baseline-1/out/t.h5' '{runs}/test-1/out/t.h5'")
        self.assertIn("Both logs record the LR that was applied; it differs from update 1 on",
                      self.paste(compare))
        self.assertIn("lr_applied_ahead: likely", self.paste(doctor))

    def test_digests_alone_give_equality_and_the_first_place(self):
        # the same recordings without their losses: nothing is left that has a size
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        golden = pathlib.Path(__file__).resolve().parents[1] / "golden/record"
        for name in ("trl_dpo", "trl_dpo_ahead"):
            path = self.root / f"{name}.h5"
            path.write_bytes(gzip.decompress((golden / f"{name}.h5.gz").read_bytes()))
            with h5py.File(path, "r+") as f:
                del f["runs/main/steps/loss"]
                f.pop("seal", None)
        self.write(factors={"lr": ["trl_dpo", "trl_dpo_ahead"], "no": ["1", "2"]},
                   read={"trace": "{dir}/t.h5"})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", f"cp {self.root}/{{lr}}.h5 '{{dir}}/t.h5'; : {{no}}"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        got = self.verdict(code=1)
        self.assertEqual((got["verdict"], got["distance"], got["word"]), ("outside-floor", None, "none"))
        self.assertEqual(got["first"], {"update": 1, "phase": "optimize",
                                        "tensor": "model.embed_tokens.weight"})
        self.assertEqual({f["name"]: (f["left_equal"], f["alone_equal"], f["share"]["value"], f["inert"])
                          for f in got["factors"]},
                         {"lr": (True, False, None, False), "no": (False, True, None, True)})
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("With one factor repaired, the test arm equals the baseline: lr.", text)

    def next_commands(self, text):
        """What stands under `next`, and `twinstep` at the head of each line."""
        return re.findall("^           (twinstep .*)$", text.split("\n  next     ", 1)[1], re.M)

    def paste(self, command):
        said = subprocess.run(f'twinstep() {{ "{PROGRAM}" "$@"; }}; {command}', shell=True, cwd=self.root,
                              env=self.env, text=True, capture_output=True, timeout=120, check=False)
        self.assertEqual((said.returncode, said.stderr), (1, ""))
        return said.stdout

    def test_logs_are_named_as_what_to_look_at_and_weights_are_not(self):
        self.write(command=["--t0", "{t0}", "--steps", "3"], factors={"t0": [0, 3]},
                   read={"weights": "{dir}/model.safetensors", "log": "{dir}/log.jsonl"})
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("column", self.paste(self.next_commands(text)[0]))
        self.write("y.yaml", command=["--t0", "{t0}"], factors={"t0": [0, 3]})
        self.assertNotIn("next", self.run_program("y.yaml", "--quiet", code=1).stdout)
        self.write("z.yaml", command=["--inert", "{no}"], factors={"no": ["a", "b"]},
                   read={"log": "{dir}/log.jsonl"})
        self.assertNotIn("next", self.run_program("z.yaml", "--quiet", code=0).stdout)

    def test_bytes_alone_give_equality_and_no_shares(self):
        self.write(command=["--t0", "{t0}", "--inert", "{no}"], factors={"t0": [0, 3], "no": ["a", "b"]},
                   read={"bytes": "{dir}/model.safetensors"})
        got = self.verdict(code=1)
        self.assertEqual((got["measure"], got["distance"], got["word"]), ("bytes", None, "none"))
        self.assertEqual({f["name"]: (f["left_equal"], f["alone_equal"], f["share"]["value"], f["inert"])
                          for f in got["factors"]},
                         {"t0": (True, False, None, False), "no": (False, True, None, True)})
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("With one factor repaired, the test arm equals the baseline: t0.", text)

    def test_an_environment_factor_and_one_of_many_words(self):
        self.write(command=["{flags}"], factors={
            "shift": {"env": {"SHIFT": [None, "3"]}}, "flags": [[], ["--t0", "5"]]})
        self.env["SHIFT"] = "100"
        got = self.verdict(code=1)
        self.assertEqual(got["distance"], 5.0)
        self.assertAlmostEqual(self.figures(got, "share")["flags"], 16 / 25, delta=1e-15)
        self.assertEqual(got["factors"][1]["levels"][0]["environment"], {"SHIFT": None})

    def test_the_program_is_looked_for_in_the_path_of_the_run(self):
        # two environments with a program of one name each, as two of venv are
        for name, text in (("A", "1"), ("B", "2"), ("C", "0")):
            (self.root / name).mkdir()
            (self.root / name / "prog").write_text(f"#!/bin/sh\necho {text} > $1\n")
            (self.root / name / "prog").chmod(0o755)
        path = self.env["PATH"]
        self.env["PATH"] = f"{self.root}/C:{path}"
        self.write(factors={"venv": {"env": {"PATH": [f"{self.root}/{name}:{path}" for name in "AB"]}}},
                   read={"bytes": "{dir}/x"})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["prog", "{dir}/x"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        self.assertEqual(self.verdict(code=1)["verdict"], "outside-floor")
        for run, text in (("baseline-1", "1"), ("test-1", "2")):
            self.assertEqual((self.root / f"x.ablate/runs/{run}/out/x").read_text(), text + "\n")

    def test_equal_arms_run_no_hybrid_of_one_factor_or_where_the_file_says_so(self):
        two = {"command": ["--lr", "{lr}", "--t", "{t}", "0", "0"], "factors": {"lr": [1, 0.5], "t": [1, 2]}}
        for rest in ({"command": ["--inert", "{no}"], "factors": {"no": ["a", "b"]}},
                     {**two, "if_equal": "stop"}):
            self.write(**rest)
            got = self.verdict(code=0)
            self.assertEqual((got["verdict"], got["floor"]["kind"], got["word"]), ("identical", "exact", "none"))
            self.assertEqual(sorted(self.began()), ["baseline-1", "baseline-2", "test-1", "test-2"])
            self.count.unlink()
            shutil.rmtree(self.root / "x.ablate")
        self.write(**two, if_equal="never")
        self.assertIn("if_equal: expected hybrids or stop, got the text \"never\"",
                      self.run_program("x.yaml", code=2).stderr)

    def test_factors_that_cancel_exactly_are_found(self):
        # w = lr t: 1 x 1 and 1/2 x 2. LR alone leaves 1/2, t alone 2; either repair is the other alone
        self.write(command=["--lr", "{lr}", "--t", "{t}", "0", "0"], factors={"lr": [1, 0.5], "t": [1, 2]})
        got = self.verdict(code=0)
        self.assertEqual((got["verdict"], got["word"], got["closure"]),
                         ("identical", "cancel-exactly", "rerun-equal"))
        self.assertEqual([(f["name"], f["moves_alone"], f["moves_left"]) for f in got["factors"]],
                         [("lr", 0.5, 1.0), ("t", 1.0, 0.5)])
        # what differs from the baseline is run once more
        self.assertEqual(sorted(self.began()[4:7]), ["hybrid-01", "hybrid-10", "hybrid-11"])
        self.assertEqual(sorted(self.began()[7:]), ["hybrid-01-2", "hybrid-10-2"])

    def test_equal_arms_have_fewer_hybrids_and_the_price_says_how_many(self):
        four = {f"a{i}": ["0", "1"] for i in range(4)}
        self.write(command=["--inert", "".join("{%s}" % name for name in four)], factors=four)
        text = self.run_program("x.yaml", "--dry-run", code=0).stdout
        self.assertIn("\n  4 of the arms; if they are equal, 9 and up to 4 more (each factor alone, all but each, "
                      "all), to see whether causes cancel; if_equal: stop leaves these out\n", text)
        self.assertEqual(self.verdict("--dry-run", code=0)["runs_if_equal"], 4 + 9)
        got = self.verdict(code=0)
        self.assertEqual((got["verdict"], got["word"]), ("identical", "equal"))
        self.assertEqual(len(self.began()), 4 + 9)    # nothing differs, so nothing is run once more
        self.assertEqual([(f["inert"], f["neighbours"]) for f in got["factors"]], [(True, 2)] * 4)
        text = self.run_program("x.yaml", "--quiet", code=0).stdout
        self.assertIn("IDENTICAL: baseline and test left equal weights. No factor moves anything alone, and no set "
                      "of all but one does, either.\n", text)
        self.assertIn("; whether 9 of 9 hybrids, which were run once, repeat; mixtures of 2 factors\n", text)


class Closure(Case):
    def write_own(self, *hidden):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]},
                   test={"command": [*TRAIN, "--t0", "3", *hidden]})

    def test_exact_with_the_users_own_second_command(self):
        self.write_own()
        got = self.verdict(code=1)
        self.assertEqual((got["closure"], got["open"], got["word"]), ("exact", 0.0, "cause"))

    def test_open_when_the_second_command_hides_a_difference(self):
        self.write_own("--hidden", "4")
        got = self.verdict(code=1)
        self.assertEqual((got["closure"], got["open"]), ("open", 4.0))
        self.assertEqual((got["distance"], got["full"]), (5.0, 3.0))
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("Something that is in no factor differs, too: baseline with every factor of test is not test, "
                      "but 80 % of |a-b| away from it, and 60 % away from baseline.", text)
        self.assertIn("  closure  OPEN: ", text)

    def test_words_of_a_factor_are_printed(self):
        """As they stand in the command: none, some, and the first six of many."""
        many = [f"w{i}" for i in range(9)]
        self.write(factors={"none": [[], ["--wd", "0.1"]], "six": [["x"], many[:6]],
                            "many": ["y", many]}, read={"bytes": "{dir}/x"})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", 'echo "$@" > {dir}/x', "sh", "{none}", "{six}", "{many}"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("  differs  none: (nothing) -> --wd 0.1\n"
                      "           six: x -> w0 w1 w2 w3 w4 w5\n"
                      "           many: y -> w0 w1 w2 w3 w4 w5 ... (9 words)\n", text)

    def test_a_rerun_that_comes_out_otherwise_breaks_the_floor(self):
        # a training that looks at its own folder: equal in repeats, another one in the hybrid
        self.write(factors={"a": ["x", "y"]}, read={"bytes": "{dir}/x"})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", "case {run} in hybrid*) echo z;; *) echo {a};; esac > {dir}/x"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        self.assertIn("the rerun of test came out otherwise", self.verdict(code=3)["reason"])


class Two(Case):
    def lines(self, good="", bad=""):
        words = " ".join(TRAIN)
        return ["--good", f"OMP_NUM_THREADS=1 SHIFT=0 {words} --config a.json {good}",
                "--bad", f"OMP_NUM_THREADS=1 {words} --config b.json {bad}",
                "--weights", "{dir}/model.safetensors"]

    def write_files(self):
        (self.root / "a.json").write_text('{"t": [1, 1, 1], "lr": 1.0, "o": {"x.y": 1, "n": "a\\"w"}}')
        (self.root / "b.json").write_text('{"t": [4, 1, 1], "o": {"x.y": 2, "n": "a\\"w"}, "lr": 0.5}')

    def test_variables_options_and_leaves_become_factors_and_closure_is_proven(self):
        # w = lr t: d_t = (3, 0, 0), d_lr = (-1, -1, -1) / 2, d_N = (1, -1/2, -1/2), so <d_t, d_N> = 3,
        # <d_lr, d_N> = 0 and D^2 = 3/2: shares 3/2 and -1/2
        self.write_files()
        said = self.run_program(*self.lines(), "--json", "--quiet", "--slots", "2", code=1)
        got = json.loads(said.stdout)
        shares = self.figures(got, "share")
        self.assertEqual(list(shares), ["t", "lr", "SHIFT", "o._x.y_"])
        for name, share in {"t": 1.5, "lr": -0.5, "SHIFT": 0.0, "o._x.y_": 0.0}.items():
            self.assertAlmostEqual(shares[name], share, delta=1e-15)
        self.assertEqual((got["closure"], got["word"]), ("exact", "oppose"))
        text = self.run_program(*self.lines(), "--quiet", code=1).stdout    # read again, nothing is run
        for line in ("t: [1, 1, 1] -> [4, 1, 1] (b.json)\n", 'lr: 1.0 -> 0.5 (b.json)\n',
                     'o._x.y_: o."x.y" 1 -> 2 (b.json)\n'):
            self.assertRegex(text, r"(  differs  |           )" + re.escape(line))
        mixed = self.root / "good-bad.ablate/runs/hybrid-0110/file-file1/a.json"
        self.assertEqual(json.loads(mixed.read_text()),
                         {"t": [4, 1, 1], "lr": 0.5, "o": {"x.y": 1, "n": 'a"w'}})

    def test_of_a_variable_that_a_line_sets_twice_the_last_value_counts(self):
        text = self.run_program("--good", "A=0 C=1 x {dir}", "--bad", "A=1 B=2 A=3 C=1 x {dir}", "--bytes", "{dir}/x",
                                "--dry-run", code=0).stdout
        self.assertIn('environment: {C: "1"}\nfactors:\n  A: {env: {A: ["0", "3"]}}\n  B: {env: {B: [null, "2"]}}\n', text)
        self.assertIn('  environment: {B: "2", A: "3", C: "1"}\n', text)
        (self.root / "x.yaml").write_text(text)
        self.run_program("x.yaml", "--dry-run", code=0)

    def test_leaves_of_toml_become_factors_and_mixed_files_keep_comments(self):
        # as above: shares 3/2 and -1/2
        good = '# of the first file\n[o]\n"x.y" = 1\n[train]\nt = [1, 1, 1] # targets\nlr = 1.0\n'
        (self.root / "a.toml").write_text(good)
        (self.root / "b.toml").write_text('train = {lr = 0.5, t = [4,\n1, 1]}\no."x.y" = 2\n')
        got = json.loads(self.run_program(*(w.replace(".json", ".toml") for w in self.lines()), "--json",
                                          "--quiet", "--slots", "2", code=1).stdout)
        shares = self.figures(got, "share")
        self.assertEqual(set(shares), {"o._x.y_", "train.t", "train.lr", "SHIFT"})
        for name, share in {"train.t": 1.5, "train.lr": -0.5, "SHIFT": 0.0, "o._x.y_": 0.0}.items():
            self.assertAlmostEqual(shares[name], share, delta=1e-15)
        self.assertEqual((got["closure"], got["word"]), ("exact", "oppose"))
        mixed = {p.read_text() for p in self.root.glob("good-bad.ablate/runs/hybrid-*/file-file1/a.toml")}
        self.assertIn(good.replace("1.0", "0.5"), mixed)
        self.assertIn(good.replace("[1, 1, 1]", "[4,\n1, 1]"), mixed)

    def test_values_of_leaves_are_told_whatever_they_are(self):
        (self.root / "a.yaml").write_text('a: cosine\nb: "\\e[31m"\nc: [1]\nd: 1\n'
                                          'f: 1\ng: yes\nh: "true"\ni: .inf\n'
                                          'j: [0.9, true, "1", x, ~, [{k: v}]]\n'
                                          f'l: [{", ".join(map(str, range(100)))}, a]\nm: {[0] * 60}\n'
                                          f'n: {{k: {"x" * 50}, l: {"y" * 50}}}\n')
        (self.root / "b.yaml").write_text("a: 'linear'\nb: ~\nc: 2\ne: {x: 1}\n"
                                          "f: '1'\ng: 'yes'\nh: true\ni: 1e-3\nj: []\n"
                                          f'l: [{", ".join(map(str, range(100)))}, b, c]\nm: {[1] * 60}\n'
                                          'n: 1\n')
        (self.root / "s").write_text('echo 1 > "$2/x"')
        said = self.run_program(*(w for arm in ("good a", "bad b") for w in
                                  ("--" + arm.split()[0], f"sh s {arm.split()[1]}.yaml {{dir}}")),
                                "--bytes", "{dir}/x", "--quiet", code=0).stdout
        for line in ('a: "cosine" -> "linear"', 'c: [1] -> 2',
                     'd: 1 -> (not there)', "e: (not there) -> {x: 1} (b.yaml)\n",
                     'j: [0.9, true, "1", "x", nothing, [{k: "v"}]] -> [] (b.yaml)\n',
                     'l: [(100 alike), "a"] -> [(100 alike), "b", "c"] (b.yaml)\n',
                     f"m: [{'0, ' * 32}0... -> [{'1, ' * 32}1... (b.yaml)\n",
                     f'n: {{k: "{"x" * 50}", l: ... -> 1 (b.yaml)\n', 'f: 1 -> "1"',
                     'g: yes -> "yes"', 'h: "true" -> true',
                     'i: ".inf" -> 1e-3'):
            self.assertIn(line, said)
        self.assertRegex(said, r'b: ".*31m" -> nothing \(b\.yaml\)\n')
        self.assertNotIn("\x1b", said)

    def test_a_dry_run_writes_the_file_and_it_gives_the_same_plan(self):
        self.write_files()
        lines = self.lines("--t1 2 --steps=1", "--decay 0.5 --steps=2 --inert '{x}'")
        text = self.run_program(*lines, "--dry-run", code=0).stdout
        for line in ('  t: {leaves: {file1: ["t"]}}', '  SHIFT: {env: {SHIFT: ["0", null]}}',
                     '  t1: [["--t1", "2"], []]', '  steps: ["1", "2"]', '  decay: [[], ["--decay", "0.5"]]',
                     '  inert: [[], ["--inert", "{{x}}"]]', 'environment: {OMP_NUM_THREADS: "1"}'):
            self.assertIn(line + "\n", text)
        self.assertEqual(self.began(), [])
        (self.root / "x.yaml").write_text(text)
        plans = [json.loads(self.run_program(*words, "--dry-run", "--json", code=0).stdout)
                 for words in (["x.yaml"], lines)]
        self.assertEqual(plans[0]["plan"], plans[1]["plan"])

    def test_files_that_cannot_be_mixed_are_one_factor_with_the_reason(self):
        for name in ("a", "b"):
            (self.root / f"{name}.ini").write_text(f'x = "{name}"\n')
            (self.root / f"{name}.toml").write_text(f"x = {name}\n")
        for end, why in (("ini", "a.ini is neither .yaml, .json nor .toml"),
                         ("toml", 'a.toml:1:5: error: expected a string, a number, a truth value, '
                                  'a date, an array or a table, got "a"')):
            words = ["--good", f"cat a.{end} {{dir}}", "--bad", f"cat b.{end} {{dir}}", "--bytes", "{dir}/x",
                     "--dry-run"]
            text = self.run_program(*words, code=0).stdout
            self.assertIn(f"# a.{end} and b.{end} are one factor: {why}\n", text)
            self.assertIn(f'  word: ["a.{end}", "b.{end}"]\n', text)

    def test_a_command_that_does_not_name_its_folder_is_told(self):
        for good, bad, told in (("x {dir} 1", "x {dir} 2", []), ("A={dir} x 1", "x 2", ["--bad"]),
                                ("x 1", "A={dir} x 2", ["--good"]), ("x 1", "x 2", ["--good", "--bad"])):
            text = self.run_program("--good", good, "--bad", bad, "--bytes", "{dir}/x", "--dry-run",
                                    code=0).stdout
            self.assertEqual([o for o in ("--good", "--bad")
                              if f"# {{dir}} stands nowhere in {o}: it is the folder" in text], told, text)
            got = json.loads(self.run_program("--good", good, "--bad", bad, "--bytes", "{dir}/x",
                                              "--dry-run", "--json", code=0).stdout)
            first = "test" if told == ["--bad"] else "baseline"
            if told:
                self.assertRegex(got["note"], rf"^\{{dir\}} stands nowhere in the command of {first}-1 \(")
            else:
                self.assertIsNone(got["note"])

    def test_a_file_whose_commands_do_not_name_the_folder_is_told(self):
        plan = {"ablate": 1, "name": "f", "command": ["true", "{word}"], "factors": {"word": ["a", "b"]},
                "read": {"bytes": "{dir}/x"}, "floor": {"runs": 2}}
        (self.root / "f.yaml").write_text(json.dumps(plan))
        self.assertIn("  note     {dir} stands nowhere in the command of baseline-1 (",
                      self.run_program("f.yaml", "--dry-run", code=0).stdout)
        self.assertRegex(self.run_program("f.yaml", code=2).stderr,    # before anything is run
                         r"f.yaml: error: \{dir\} stands nowhere in the command of baseline-1 \(15 of 15 runs\): it is "
                         r"the folder that a run writes to, and what is read lies there; nothing has been run\n$")
        self.assertFalse((self.root / "f.ablate").exists())
        plan["test"] = {"command": ["true", "b", "{dir}"]}     # one arm is enough
        (self.root / "f.yaml").write_text(json.dumps(plan))
        self.assertIn("f.yaml: error: {dir} stands nowhere in the command of baseline-1 (",
                      self.run_program("f.yaml", code=2).stderr)
        del plan["test"]
        plan["command"].append("{dir}")
        (self.root / "f.yaml").write_text(json.dumps(plan))
        self.assertNotIn("  note ", self.run_program("f.yaml", "--dry-run", code=0).stdout)
        said = self.run_program("f.yaml", "-o", "other", code=3).stdout
        self.assertRegex(said, r"f: UNTESTABLE: (baseline|test)-1 failed\.\n")

    def test_the_end_of_stderr_is_what_a_terminal_shows(self):
        # a bar that is rewritten 600 times in one line, a line of Windows, a long one, and the error
        self.script("python3 - <<'END' >&2\n"
                    "import sys\n"
                    "sys.stderr.write('first\\n' + ''.join(f'\\r{{i}} %|' + '#' * 40 for i in range(600)) + '\\n')\n"
                    "sys.stderr.write('last step\\r\\n\\n' + 'x' * 3000 + '\\nOSError: no such file\\r')\n"
                    "END\nexit 3; : {a} {dir}")
        got = self.verdict(code=3)
        self.assertEqual(self.reason(got).splitlines(), [
            "exit status 3; its stderr ends:", "599 %|" + "#" * 40, "last step", "x" * 200 + "...",
            "OSError: no such file"])

    def settings(self, *pairs, code=0):
        """What a dry run writes of two YAML files with these settings."""
        for name, level in (("p.yaml", 0), ("q.yaml", 1)):
            (self.root / name).write_text("".join(f"{key}: {values[level]}\n" for key, values in pairs))
        return self.run_program("--good", "x p.yaml {dir}", "--bad", "x q.yaml {dir}", "--bytes", "{dir}/x", "--dry-run",
                                code=code).stdout

    def test_settings_that_make_one_batch_are_one_factor(self):
        rows, accumulation = ("per_device_train_batch_size", (2, 4)), ("gradient_accumulation_steps", (2, 1))
        text = self.settings(("seed", (7, 8)), rows, ("warmup_steps", (4, 0)), accumulation)
        self.assertIn("# per_device_train_batch_size x gradient_accumulation_steps is 4 in both, one effective batch, so "
                      "they are one factor: one alone would train with a batch that neither command has\n", text)
        self.assertIn("""factors:
  seed: {leaves: {file1: ["seed"]}}
  effective_batch: {leaves: {file1: ["per_device_train_batch_size", "gradient_accumulation_steps"]}}
  warmup_steps: {leaves: {file1: ["warmup_steps"]}}
test:
""", text)
        (self.root / "x.yaml").write_text(text)
        self.run_program("x.yaml", "--dry-run", code=0)
        for pairs in ((("a", (1, 2)), ("train_micro_batch_size_per_gpu", (1, 8)), ("gradient_accumulation", (16, 2))),
                      (("batch_size", (3, 1)), ("accumulate_grad_batches", (2, 3)), ("num_processes", (1, 2)))):
            text = self.settings(*pairs)
            self.assertIn(f'  effective_batch: {{leaves: {{file1: ["{pairs[-2][0]}", "{pairs[-1][0]}"]}}}}\n'
                          if pairs[0][0] == "a" else
                          '  effective_batch: {leaves: {file1: ["batch_size", "accumulate_grad_batches", "num_processes"]}}\n',
                          text)
        # another product, one of them alone, a second setting of the same kind, a value that is no number, and a
        # third setting by which the batch is another one
        for pairs in ((rows, ("gradient_accumulation_steps", (2, 2.5))), (rows, ("gradient_accumulation_steps", (3, 1))),
                      (rows, accumulation, ("batch_size", (1, 2))), (rows, ("gradient_accumulation_steps", (2, "auto"))),
                      (rows, accumulation, ("num_processes", (1, 2))), (rows, accumulation, ("num_processes", ("auto", 1)))):
            self.assertNotIn("effective_batch", self.settings(*pairs))

    def test_a_leaf_that_is_the_output_folder_is_told(self):
        for key, values, is_told in (("out", ("a", "b"), True), ("trainer.output_dir", ("a", "b"), True),
                                     ("where", ("out-good", "out-bad"), True), ("to", ("./outputs/a", "./outputs/b"), True),
                                     ("kept", ("x/model", "y"), False), ("outer", ("1", "2"), False),
                                     ("data", ("outlier.jsonl", "b"), False), ("kept", ("model_a", "model_b"), True),
                                     ("max_steps", ("100", "200"), False)):
            for name, value in zip(("p.yaml", "q.yaml"), values):
                (self.root / name).write_text(f"seed: {value != values[0]}\n" + (
                    f"{key}: {value}\n" if "." not in key else "{}:\n  {}: {}\n".format(*key.split("."), value)))
            text = self.run_program("--good", "x p.yaml {dir}", "--bad", "x q.yaml {dir}", "--weights", "{dir}/model_b/100-b",
                                    "--dry-run", code=0).stdout
            told = [line for line in text.splitlines() if "looks like the folder that a run writes to" in line]
            self.assertEqual(told, [f"# {key} of p.yaml and q.yaml looks like the folder that a run writes to, and is no "
                                    "cause: have the script take it from the command line (output_dir=sys.argv[2]), give "
                                    "{dir} there in both commands, and delete it from both files"] * is_told, text)

    def test_files_of_a_file_belong_to_the_folder_where_twinstep_is_started(self):
        self.write_files()
        text = self.run_program(*self.lines("--t1 2", "--t1 3"), "--dry-run", code=0).stdout
        (self.root / "there").mkdir()
        (self.root / "there/x.yaml").write_text(text)
        self.run_program("there/x.yaml", "--dry-run", code=0)
        said = subprocess.run([PROGRAM, "ablate", "x.yaml", "--dry-run"], cwd=self.root / "there", text=True,
                              capture_output=True)
        self.assertEqual((said.returncode, said.stdout), (2, ""))
        self.assertIn(f"x.yaml: error: files: file1: a.json: not there, seen from {os.path.realpath(self.root)}/there, "
                      "where twinstep is started; paths of a file and of its commands belong to that folder\n", said.stderr)

    def test_a_dry_run_keeps_the_slots_and_says_what_the_names_of_files_stand_for(self):
        self.write_files()
        lines = self.lines("--t1 2", "--t1 3")
        text = self.run_program(*lines, "--dry-run", "--slots", "3", code=0).stdout
        self.assertIn("\nrun: {slots: 3}\n# as it stands here: up to ", text)
        self.assertNotIn("run:", self.run_program(*lines, "--dry-run", code=0).stdout)
        (self.root / "x.yaml").write_text(text)
        plan = self.run_program("x.yaml", "--dry-run", code=0).stdout
        self.assertRegex(plan, "^good-bad: up to \\d+ runs, 3 at a time")
        self.assertIn("\n  files    {file1} is a copy of a.json that each run has for itself, with the leaves of b.json "
                      "that its factors take\n", plan)
        for slots in ("0", "many"):
            said = self.run_program(*lines, "--dry-run", "--slots", slots, code=2)
            self.assertEqual(said.stdout, "")
            self.assertIn("--slots: expected a whole number from 1 to 64", said.stderr)

    def test_files_that_are_not_there_are_told(self):
        def dry(good, bad, code):
            return self.run_program("--good", f"python {good} {{dir}}", "--bad", f"python {bad} {{dir}}", "--weights", "{dir}",
                                    "--dry-run", code=code)
        here = os.path.realpath(self.root)
        (self.root / "is.yaml").write_text("a: 1\n")
        for good, bad, names in (("t.py no.yaml", "t.py none.yaml", "no.yaml and none.yaml"),
                                 ("t.py --config=is.yaml", "t.py --config=no.yml", "no.yml"),
                                 ("t.py a/no.json", "t.py is.yaml", "a/no.json"), ("t.py no.toml", "t.py x", "no.toml")):
            said = dry(good, bad, 2)
            self.assertEqual((said.stdout, said.stderr), ("", f"twinstep: error: ablate: {names}: not there, seen from {here}, where the "
                             "commands would be started, so the two cannot be compared; a file that a run writes belongs "
                             "into {dir}\n"))
        for good, bad, names in (("t.py 1", "t.py 2", "t.py"), ("t.py a.sh", "u.py a.sh", "t.py, a.sh, u.py"),
                                 ("t.py is.yaml 1", "t.py is.yaml 2 --more=no.yaml", "t.py, no.yaml"),
                                 ("is.yaml 1", "is.yaml 2", ""), ("{dir}/a.json 1", "{dir}/a.json 2", "")):
            notes = [line for line in dry(good, bad, 0).stdout.splitlines() if "not there" in line]
            self.assertEqual(notes, [f"# not there, seen from {here}, where the commands would be started: {names}"]
                             * bool(names))

    def test_options_that_make_one_batch_are_one_factor(self):
        for good, bad, factor in (
                ("--per-device-train-batch-size 2 --lr 1 --gradient_accumulation_steps=4",
                 "--lr 2 --gradient_accumulation_steps=2 --per-device-train-batch-size 4",
                 '[["--per-device-train-batch-size", "2", "--gradient_accumulation_steps=4"], '
                 '["--per-device-train-batch-size", "4", "--gradient_accumulation_steps=2"]]'),
                ("trainer.accumulate_grad_batches=6 --lr 1 data.batch_size=1", "trainer.accumulate_grad_batches=1 --lr 2 "
                 "data.batch_size=6", '[["trainer.accumulate_grad_batches=6", "data.batch_size=1"], '
                 '["trainer.accumulate_grad_batches=1", "data.batch_size=6"]]')):
            text = self.run_program("--good", f"x {good} {{dir}}", "--bad", f"x {bad} {{dir}}", "--bytes", "{dir}/x",
                                    "--dry-run", code=0).stdout
            self.assertIn(f"  effective_batch: {factor}\n", text)
            self.assertIn('  lr: ["1", "2"]\n', text)
            self.assertEqual(text.count("{effective_batch}"), 1, text)
            (self.root / "x.yaml").write_text(text)
            self.run_program("x.yaml", "--dry-run", code=0)

    def test_options_on_two_sides_of_a_script_are_not_moved(self):
        """A launcher's options stand before the script, the script's own behind it."""
        def dry(good, bad):
            return self.run_program("--good", f"{good} {{dir}}", "--bad", f"{bad} {{dir}}", "--bytes", "{dir}/x",
                                    "--dry-run", code=0).stdout
        for script in ("t.py", "--standalone t.py", "-m pkg.t", "--x=1 t.py --y 2"):
            for rows in ("--batch_size=%d", "--batch_size %d"):
                for launcher in ("torchrun --nproc_per_node=%d", "accelerate launch --num-processes %d"):
                    text = dry(f"{launcher % 2} {script} {rows % 8}", f"{launcher % 4} {script} {rows % 4}")
                    self.assertNotIn("effective_batch", text)
                    name = launcher.split("--")[1].split("=")[0].split()[0]
                    self.assertIn(f'  {name}: ["2", "4"]\n', text)
                    self.assertIn(f"# --batch_size x --{name} is 16 in both, one effective batch, but "
                                  f"{script.removesuffix(' --y 2').split()[-1]} stands between them, so they are factors "
                                  "of their own: one alone", text)
                    self.assertEqual(text.count("effective batch"), 1)
        # two launchers are one factor, in which the numbers of processes stand; Python is one process
        for good, bad, option in (("torchrun --nproc_per_node 2", "accelerate launch --num_processes=4", "num_processes"),
                                  ("torchrun --nproc_per_node 2", "python", "nproc_per_node")):
            rows = (8, 4) if "accelerate" in bad else (4, 8)
            text = dry(f"{good} t.py --batch_size {rows[0]}", f"{bad} t.py --batch_size {rows[1]}")
            self.assertIn(f"# --batch_size x --{option} is {8 if bad == 'python' else 16} in both, one effective batch, but "
                          "t.py stands between them", text)
        for good, bad in (("torchrun --nproc_per_node 2", "accelerate launch"), ("torchrun --nproc_per_node 2", "env python"),
                          ("torchrun --nproc_per_node 2 --nproc_per_node 2", "python")):
            self.assertNotIn("effective batch", dry(f"{good} t.py --batch_size 4", f"{bad} t.py --batch_size 8"))
        # what stands behind the value of the last one stays where it is
        for more in ("", " a", " --lr 1"):
            text = dry(f"x --batch_size 4 --grad_accum_steps 2{more}", f"x --grad_accum_steps 4 --batch_size 2{more}")
            self.assertIn('  effective_batch: [["--batch_size", "4", "--grad_accum_steps", "2"], '
                          '["--batch_size", "2", "--grad_accum_steps", "4"]]\n', text)
        self.assertIn('command: ["x", "{effective_batch}", "a", "{dir}"]\n', dry(
            "x --batch_size 4 --grad_accum_steps 2 a", "x --batch_size 2 --grad_accum_steps 4 a"))
        self.assertNotIn("effective_batch", dry("x --batch_size 4 --grad_accum_steps 2 a", "x --batch_size 2 "
                                                "--grad_accum_steps 4 b"))

    def test_a_number_joined_to_a_short_option_is_its_value(self):
        for good, bad, command, factors in (
                ("-l0.1 -o", "-l0.2 -o", '"-l{l}", "-o"', {"l": '["0.1", "0.2"]'}),
                ("-b4 -a2", "-a1 -b8", '"-b{b}", "-a{a}"', {"b": '["4", "8"]', "a": '["2", "1"]'}),
                ("-l1e-4 x", "-l-0.1 x", '"-l{l}", "x"', {"l": '["1e-4", "-0.1"]'}),
                ("-l0.1 x", "-l 0.2 x", '"{l}", "x"', {"l": '[["-l0.1"], ["-l", "0.2"]]'}),
                ("-v1 -v2", "-v2", '"{v}", "-v2"', {"v": '[["-v1"], []]'}),
                ("-lr0.1 x", "-lr0.2 x", '"{lr0.1}", "x"', {"lr0.1": '["-lr0.1", "-lr0.2"]'}),
                ("-D1=2 x", "-D1=3 x", '"-D1={D1}", "x"', {"D1": '["2", "3"]'})):
            text = self.run_program("--good", f"p {good} {{dir}}", "--bad", f"p {bad} {{dir}}", "--bytes", "{dir}/x",
                                    "--dry-run", code=0).stdout
            self.assertIn(f'command: ["p", {command}, "{{dir}}"]\n', text)
            for name, levels in factors.items():
                self.assertIn(f"  {name}: {levels}\n", text)

    def test_two_scripts_are_a_factor_that_is_called_so(self):
        text = self.run_program("--good", "python a.py --x {dir}", "--bad", "python b.py --x {dir}",
                                "--bytes", "{dir}/x", "--dry-run", code=0).stdout
        self.assertIn('  script: ["a.py", "b.py"]\n', text)
        text = self.run_program("--good", "sh .py {dir}", "--bad", "sh b.py {dir}", "--bytes", "{dir}/x",
                                "--dry-run", code=0).stdout
        self.assertIn('  word: [".py", "b.py"]\n', text)

    def test_leaves_in_no_factor_are_refused(self):
        self.write_files()
        self.write(command=["--config", "{c}"], files={"c": ["a.json", "b.json"]},
                   factors={"t": {"leaves": {"c": ["t"]}}, "o": {"leaves": {"c": ['o."x.y"']}}})
        self.assertIn("x.yaml: error: files: c: leaf lr differs between a.json and b.json and is in no factor",
                      self.run_program("x.yaml", "--dry-run", code=2).stderr)
        self.write(command=["--config", "{c}"], files={"c": ["a.json", "b.json"]},
                   factors={"t": {"leaves": {"c": ["t", "lr", 'o."x.y"', "o.n"]}}})
        self.assertIn("leaf o.n of c does not differ", self.run_program("x.yaml", "--dry-run", code=2).stderr)

    def test_a_factor_with_the_folder_of_the_run_in_it_is_told(self):
        text = self.run_program("--good", "a --out={dir}/a --log {dir}", "--bad", "a --out={dir}/b --log {dir}",
                                "--bytes", "{dir}/x", "--dry-run", code=0).stdout
        self.assertIn("# out holds {dir}: the arms write to different places, and a run is read in one;", text)
        self.assertNotIn("# log", text)
        for good, bad, holds in (("a --x {dir}", "a --x {dir} --log {dir}/l", False),
                                 ("D={dir}/a a", "D={dir}/b a", True), ("a {dir}", "D={dir}/b a {dir}", False),
                                 ("a --x {dir}", "a --x {dir}/b y", True)):
            text = self.run_program("--good", good, "--bad", bad, "--bytes", "{dir}/x", "--dry-run", code=0).stdout
            self.assertEqual("holds {dir}" in text, holds, text)

    def test_lines_that_go_on_are_joined_as_a_shell_joins_them(self):
        line = 'printf \\\n  "a\\\nb" \'c\\\nd\' {dir} %s\\\n'
        text = self.run_program("--good", line % "x", "--bad", line % "y", "--bytes", "{dir}/x",
                                "--dry-run", code=0).stdout
        words = json.loads(re.search("^command: (.*)$", text, re.M)[1])
        self.assertEqual(words, ["printf", "ab", "c\\\nd", "{dir}", "{word}"])
        # what sh makes of the line
        said = subprocess.run(["sh", "-c", "printf '%s|' " + line.split(" ", 1)[1] % "x"], text=True,
                              capture_output=True, check=True).stdout
        self.assertEqual(said.split("|")[:4], words[1:4] + ["x"])

    def test_names_that_begin_as_those_of_files_do(self):
        self.write_files()
        text = self.run_program("--good", "FILE=1 file --file 1 --file1 2 --config a.json {dir}",
                                "--bad", "FILE=2 file2 --file 2 --file1 3 --config b.json {dir}",
                                "--bytes", "{dir}/x", "--dry-run", code=0).stdout
        for line in ('FILE: {env: {FILE: ["1", "2"]}}', 'program: ["file", "file2"]', 'file: ["1", "2"]',
                     'file1-2: ["2", "3"]', 't: {leaves: {file1: ["t"]}}'):
            self.assertIn(f"  {line}\n", text)
        self.assertNotIn("to be mended", text)

    def test_words_of_two_lines_find_each_other(self):
        # --good, --bad, the template of both, the factors
        shown = [
            # keys stand for themselves, whatever option is before them and in whatever order
            ("p --out {dir} o.lr=.1", "p --out {dir} o.lr=.2 o.wd=.1",
             "p --out {dir} o.lr={o.lr} {o.wd}", {"o.lr": [".1", ".2"], "o.wd": [[], ["o.wd=.1"]]}),
            ("p o.lr=.3 o.n=q {dir}", "p o.n=q o.lr=.3 o.wd=.1 {dir}", "p o.lr=.3 o.n=q {o.wd} {dir}",
             {"o.wd": [[], ["o.wd=.1"]]}),
            ("p --fast o.lr=1 o.a=1 {dir}", "p --fast o.lr=2 d.n=x {dir}",
             "p --fast o.lr={o.lr} {o.a} {d.n} {dir}",
             {"o.lr": ["1", "2"], "o.a": [["o.a=1"], []], "d.n": [[], ["d.n=x"]]}),
            ("p {dir} --fast x o.lr=1", "p {dir} --fast o.lr=2 x", "p {dir} --fast x o.lr={o.lr}",
             {"o.lr": ["1", "2"]}),
            ("p +o.lr=1 ++a@b/c=1 {dir}", "p ++o.lr=2 '~o.x' a@b/c=2 {dir}",
             "p {o.lr} {o.x} {a_b_c} {dir}", {"o.lr": ["+o.lr=1", "++o.lr=2"], "o.x": [[], ["~o.x"]],
                                              "a_b_c": ["++a@b/c=1", "a@b/c=2"]}),
            ("p k=1 k=2 {dir}", "p k=1 k=3 k=4 {dir}", "p k=1 k={k} {k-2} {dir}",
             {"k": ["2", "3"], "k-2": [[], ["k=4"]]}),
            ("p k=1 k=2 {dir}", "p k=2 {dir}", "p {k} k=2 {dir}", {"k": [["k=1"], []]}),
            ("p k=1 k=2 {dir}", "p k=2 k=1 {dir}", "p k={k} k={k-2} {dir}", {"k": ["1", "2"], "k-2": ["2", "1"]}),
            ("env A=1 B=2 p {dir}", "env B=2 A=3 C=1 p {dir}", "env A={A} B=2 {C} p {dir}",
             {"A": ["1", "3"], "C": [[], ["C=1"]]}),
            # an option that is given once for each key
            ("p --set a=1 --set b=2 {dir}", "p --set b=2 --set a=3 --set c=1 {dir}",
             "p --set a={a} --set b=2 {c} {dir}", {"a": ["1", "3"], "c": [[], ["--set", "c=1"]]}),
            ("p --set=a=1 --set=b=2 {dir}", "p --set=b=2 --set=a=3 --set=c=1 {dir}",
             "p --set=a={a} --set=b=2 {c} {dir}", {"a": ["1", "3"], "c": [[], ["--set=c=1"]]}),
            # values that look like keys
            ("p --name x a=1 {dir}", "p --name k=v a=1 {dir}", "p --name {name} a=1 {dir}", {"name": ["x", "k=v"]}),
            ("p --with torch==2.1 {dir}", "p --with torch==2.2 {dir}", "p --with {with} {dir}",
             {"with": ["torch==2.1", "torch==2.2"]}),
            ("p {dir}", "p {dir} --args k=v", "p {dir} {args}", {"args": [[], ["--args", "k=v"]]}),
            ("p a=1 {dir}", "p a=1 {dir} --fast k=v", "p a=1 {dir} {fast} {k}",
             {"fast": [[], ["--fast"]], "k": [[], ["k=v"]]}),
            # words that stand for themselves
            ("p --out {dir} --lr .1 d.jsonl", "p --out {dir} --lr .2 --fp16 d.jsonl",
             "p --out {dir} --lr {lr} {fp16} d.jsonl", {"lr": [".1", ".2"], "fp16": [[], ["--fp16"]]}),
            ("p --lr .1 d.jsonl e.jsonl {dir}", "p --lr .2 --fp16 d.jsonl f.jsonl {dir}",
             "p --lr {lr} {fp16} d.jsonl {word} {dir}",
             {"lr": [".1", ".2"], "fp16": [[], ["--fp16"]], "word": ["e.jsonl", "f.jsonl"]}),
            ("p --lr .1 5 {dir}", "p --lr .2 --fp16 5 {dir}", "p --lr {lr} {fp16} 5 {dir}",
             {"lr": [".1", ".2"], "fp16": [[], ["--fp16"]]}),
            ("torchrun --standalone t.py {dir}", "torchrun --standalone --nnodes 1 t.py {dir}",
             "torchrun --standalone {nnodes} t.py {dir}", {"nnodes": [[], ["--nnodes", "1"]]}),
            ("torchrun --nproc 2 t.py {dir}", "accelerate launch t.py {dir}", "{program} t.py {dir}",
             {"program": [["torchrun", "--nproc", "2"], ["accelerate", "launch"]]}),
            ("python t.py {dir}", "nice -n 5 python t.py {dir}", "{program} python t.py {dir}",
             {"program": [[], ["nice", "-n", "5"]]}),
            ("torchrun t.py --x 3 {dir}", "torchrun --x 1 t.py --x 2 {dir}", "torchrun {x} t.py --x {x-2} {dir}",
             {"x": [[], ["--x", "1"]], "x-2": ["3", "2"]}),
            ("torchrun t.py {dir} --x 1", "torchrun --x 1 t.py {dir} --x 2", "torchrun {x} t.py {dir} --x {x-2}",
             {"x": [[], ["--x", "1"]], "x-2": ["1", "2"]}),
            ("p x {dir}", "p y z {dir}", "p {word} {dir}", {"word": [["x"], ["y", "z"]]}),
            ("p x {dir} 1", "p y {dir} 2 3", "p {word} {dir} {word-2}", {"word": ["x", "y"], "word-2": [["1"], ["2", "3"]]}),
            ("p --load c.pt {dir}", "p --resume c.pt {dir}", "p {load} c.pt {dir}", {"load": ["--load", "--resume"]}),
            ("p --load c.pt {dir}", "p --lr .1 c.pt {dir}", "p {lr} {load} c.pt {dir}",
             {"lr": [[], ["--lr", ".1"]], "load": [["--load"], []]}),
            # values
            ("p --a 1 --b 0 {dir}", "p --b 1 --a 0 {dir}", "p --a {a} --b {b} {dir}", {"a": ["1", "0"], "b": ["0", "1"]}),
            ("p --a 2 {dir}", "p --b 2 {dir}", "p {a} {b} {dir}", {"a": [["--a", "2"], []], "b": [[], ["--b", "2"]]}),
            ("p --g 0 1 2 --o {dir}", "p --g 0 1 --o {dir}", "p --g 0 1 {g} --o {dir}", {"g": [["2"], []]}),
            ("p --g 0 1 2 t.py --o {dir}", "p --g 3 t.py --o {dir}", "p --g {g} t.py --o {dir}",
             {"g": [["0", "1", "2"], ["3"]]}),
            ("p --t 4 1 1 --o {dir}", "p --t 1 1 4 --o {dir}", "p --t {t} 1 {t-2} --o {dir}",
             {"t": ["4", "1"], "t-2": ["1", "4"]}),
            ("p --seed 1 {dir}", "p --seed 2 {dir}", "p --seed {factor:seed} {dir}", {"seed": ["1", "2"]}),
            ("p {dir}", "p {dir} --port 2", "p {dir} {factor:port}", {"port": [[], ["--port", "2"]]}),
            ("p --x=1 {dir}", "p --x 1 {dir}", "p {x} {dir}", {"x": [["--x=1"], ["--x", "1"]]}),
        ]
        for good, bad, template, factors in shown:
            words = ["--good", good, "--bad", bad, "--bytes", "{dir}/x", "--dry-run"]
            text = self.run_program(*words, code=0).stdout
            with self.subTest(f"{good} / {bad}"):
                self.assertEqual(json.loads(re.search("^command: (.*)$", text, re.M)[1]), template.split())
                found = dict(re.findall("^  ([^ :]*): (.*)$", text.split("test:")[0], re.M))
                self.assertEqual({name: json.loads(levels) for name, levels in found.items()}, factors)
                self.assertNotIn("holds {dir}", text)
                self.assertNotIn("to be mended", text)
                self.assertEqual("k=v is taken for the value of --args" in text, "--args" in bad)

    def test_another_order_alone_is_no_difference(self):
        for good, bad in (("p a=1 b=2 {dir}", "p b=2 a=1 {dir}"), ("p --x 1 -y {dir}", "p -y --x 1 {dir}")):
            said = self.run_program("--good", good, "--bad", bad, "--bytes", "{dir}/x", code=2)
            self.assertIn("differ in no word, variable or leaf; what differs is the order of words", said.stderr)
        said = self.run_program("--good", "p {dir}", "--bad", "p  {dir}", "--bytes", "{dir}/x", code=2)
        self.assertRegex(said.stderr, "differ in no word, variable or leaf\n")

    def test_too_many_words_are_refused(self):
        said = self.run_program("--good", "p {dir}" + " x" * 1999, "--bad", "p {dir}", "--bytes", "{dir}/x", code=2)
        self.assertIn("--good: more than 2000 words", said.stderr)

    def test_lines_that_need_a_shell_are_refused(self):
        for line, expected in (("a $HOME", r"\$ at character 3: no shell"), ("a > b", "> at character 3"),
                               ("a 'b", "a quote ' that nothing closes"), ("A=b", "expected a command"),
                               ('a "$X"', r"\$ at character 4"), ("a *.py", r"\* at character 3")):
            said = self.run_program("--good", line, "--bad", "b", "--log", "{dir}/x", code=2)
            self.assertRegex(said.stderr, "--good: " + expected)


class Executor(Case):
    def test_a_line_for_one_shell_holds_words_variables_and_folder(self):
        # a stand-in for ssh: joins its words with blanks and lets a shell in another folder read them
        (self.root / "ssh").write_text("#!/bin/sh\nshift\ncd /\nunset SHIFT\nexec sh -c \"$*\"\n")
        (self.root / "ssh").chmod(0o755)
        self.write(command=["--t0", "{t0}", "--inert", "it's $HOME `x` \\ \"q\" *\n{no}"],
                   environment={"SHIFT": "3 ", "GONE": None},
                   factors={"t0": [0, 3], "no": ["a b", "c;d"], "t1": {"words": [[], ["--t1", "5"]]}})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"].append("{t1}")
        (self.root / "x.yaml").write_text(json.dumps(plan))
        here = self.verdict("-o", "here", code=1)
        self.env["SHIFT"] = "100"
        there = self.verdict("-o", "there", "--executor", f"{self.root}/ssh node {{command}}", code=1)
        self.assertEqual(there | {"folder": ""}, here | {"folder": ""})
        self.assertEqual(there["distance"], 5.0)
        line = (self.root / "there/runs/test-1/command").read_text()
        self.assertIn("SHIFT=3 ", line)
        self.assertEqual((self.root / "there/runs/test-1/host").read_text().strip(), os.uname().nodename)
        (self.root / "ssh").write_text("#!/bin/sh\nexit 0\n")  # says that it ran what it did not
        got = self.verdict("-o", "nowhere", "--executor", f"{self.root}/ssh node {{command}}", code=3)
        self.assertRegex(self.reason(got), "host is empty: the executor did not run {command}")
        said = self.run_program("x.yaml", "--executor", "ssh node", "-o", "refused", code=2)
        self.assertIn("--executor: expected a command with {command} in it", said.stderr)
        for more in ((), ("--dry-run",)):
            said = self.run_program("x.yaml", "--executor", "{command} {command}", "-o", "refused", *more, code=2)
            self.assertRegex(said.stderr, "^twinstep: error: --executor: {command} is a line for a shell, and")
        self.assertFalse((self.root / "refused").exists())
        said = self.run_program("x.yaml", "--executor", "no-such-ssh {command}", "-o", "unstarted", code=2)
        self.assertIn("error: --executor: no-such-ssh: cannot be started: No such file", said.stderr)
        (self.root / "unstartable").write_text("#!/bin/sh\n")
        for word in ("./unstartable", str(self.root)):
            said = self.run_program("x.yaml", "--executor", f"{word} {{command}}", "-o", "unstarted", code=2)
            self.assertIn(f"error: --executor: {word}: cannot be started: Permission denied", said.stderr)
        (self.root / "unstartable").write_text("#!/no/such/shell\n")      # which only its start tells
        (self.root / "unstartable").chmod(0o755)
        for slots in ("1", "2"):
            said = self.run_program("x.yaml", "--executor", "./unstartable {command}", "-o", "unstarted",
                                    "--slots", slots, code=2)
            self.assertIn("error: --executor: ./unstartable: cannot be started: No such file", said.stderr)
        self.assertFalse((self.root / "unstarted").exists())    # a slip of the pen leaves no folder
        (self.root / "own").mkdir()
        self.run_program("x.yaml", "--executor", "./unstartable {command}", "-o", "own", code=2)
        self.assertEqual(os.listdir(self.root / "own"), [])   # which was there before, and stays
        self.run_program("x.yaml", "--executor", "./unstartable {command}", "-o", "there", code=1)  # all is done
        (self.root / "nowhere/runs/mine").mkdir()
        shutil.rmtree(self.root / "nowhere/runs/test-1")
        self.run_program("x.yaml", "--executor", "./unstartable {command}", "-o", "nowhere", code=2)
        self.assertTrue((self.root / "nowhere/runs/mine").exists())     # which others have begun stays
        self.assertFalse((self.root / "nowhere/runs/test-1").exists())
        self.assertEqual(self.verdict("-o", "found", "--executor", "env sh -c {command}", code=1)["distance"], 5.0)

    def test_a_command_that_cannot_be_started_leaves_no_folder_that_refuses_the_mended_one(self):
        words = ("--bytes", "{dir}/w", "-o", "pair")
        said = self.run_program("--good", "no-such-touch {dir}/w", "--bad", "no-such-touch {dir}/w {dir}/v", *words,
                                code=2)
        self.assertRegex(said.stderr, "command of (baseline|test)-1: no-such-touch: cannot be started: No such file")
        self.assertFalse((self.root / "pair").exists())
        (self.root / "pair").mkdir()    # whoever made the folder: no plan is left in it
        self.run_program("--good", "no-such-touch {dir}/w", "--bad", "no-such-touch {dir}/w {dir}/v", *words, code=2)
        self.run_program("--good", "touch {dir}/w", "--bad", "touch {dir}/w {dir}/v", *words, code=0)


class Noise(Case):
    def test_an_effect_above_the_noise_has_shares_with_intervals(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}", "--noise", "0.25"],
                   factors={"t0": [0, 3], "t1": [0, 4]})
        got = self.verdict(code=1)
        self.assertEqual((got["floor"]["kind"], got["floor"]["runs"]), ("noisy", 5))
        self.assertEqual(got["floor"]["p"], 2 / 252)  # of C(10, 5), the arms and their exchange
        self.assertEqual(len(self.began()), 10 + 3 * 3 + 2)  # of all factors as many as of test
        share = {f["name"]: f["share"] for f in got["factors"]}
        self.assertAlmostEqual(share["t1"]["value"], 16 / 25, delta=0.2)
        self.assertLess(share["t1"]["low"], share["t1"]["value"])
        self.assertEqual([f["inert"] for f in got["factors"]], [False, False])
        self.assertEqual(got["closure"], "rerun-equal")

    def test_a_rerun_that_chance_alone_sets_apart_is_told_with_its_p(self):
        # of salts 0, 1, ... the first whose five reruns of test are furthest from its five repeats
        self.env["ABLATE_SALT"] = "9"
        self.write(command=["--noise", "0.25", "--t0", "{t0}"], factors={"t0": [0, 3]})
        self.assertEqual(self.verdict(code=3)["reason"],
                         "the rerun of test came out otherwise than its repeats (p = 0.007937: chance "
                         "alone does that in no more than such a share of ablations), so the floor does "
                         "not hold: raise floor.noisy")

    def test_too_few_runs_cannot_decide(self):
        self.write(command=["--noise", "0.25", "--t0", "{t0}"], factors={"t0": [0, 3]},
                   floor={"noisy": 2})
        got = self.verdict(code=3)
        self.assertIn("floor.noisy", got["reason"])

    def test_noisy_bytes_are_untestable(self):
        self.write(command=["--noise", "0.25", "--t0", "{t0}"], factors={"t0": [0, 3]},
                   read={"bytes": "{dir}/model.safetensors"}, floor={"noisy": 2})
        self.assertIn("only equality", self.verdict(code=3)["reason"])


class Turns(Case):
    def began_in(self, name, more=None):
        """The runs of arms in the order in which they began; the plan's line of them."""
        self.write(f"{name}.yaml", command=["--noise", "0.25", "--t0", "{t0}"], factors={"t0": [0, 0.001]},
                   run={"slots": 1}, hybrids="single", floor={"noisy": 6}, **(more or {}))
        before = len(self.began())
        said = subprocess.run([PROGRAM, "ablate", f"{name}.yaml", "--quiet"], cwd=self.root, env=self.env,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertIn(said.returncode, (0, 1), said.stderr)     # it is noise, so either may be said
        line = re.search("^turns (.*)$", (self.root / f"{name}.ablate/plan").read_text(), re.M)[1]
        return [run for run in self.began()[before:] if "hybrid" not in run], line.split()

    def test_repeats_come_in_an_order_that_is_drawn_and_kept(self):
        orders = set()
        for name in ("a", "b", "c", "d"):
            began, planned = self.began_in(name)
            self.assertEqual(began, planned)
            self.assertEqual([r for r in began if r.startswith("test")], [f"test-{i}" for i in range(1, 7)])
            self.assertEqual(sorted(began[:4]), ["baseline-1", "baseline-2", "test-1", "test-2"])
            orders.add(" ".join(run.split("-")[0] for run in began))
        self.assertGreater(len(orders), 1)
        self.assertEqual(self.began_in("d"), ([], planned))     # the plan is read again, and nothing is run

    def test_another_seed_is_another_order(self):
        orders = {" ".join(self.began_in(f"s{seed}", {"seed": seed})[1]) for seed in range(4)}
        self.assertGreater(len(orders), 1)


class Failures(Case):
    def test_an_arm_that_crashes_ends_the_plan_and_its_stderr_is_told(self):
        self.write(command=["--do", "{do}"], factors={"do": ["train", "crash"]}, run={"slots": 1})
        said = self.run_program("x.yaml", code=3)
        self.assertIn("UNTESTABLE: test-1 failed.", said.stdout)
        self.assertIn("failed   test-1: exit status 7", said.stdout)
        self.assertIn("RuntimeError: CUDA out of memory", said.stdout)
        self.assertIn("\\u001b[31m", said.stdout)
        self.assertNotIn("\x1b", said.stdout + said.stderr)
        *before, last = self.began()
        self.assertEqual(last, "test-1")
        self.assertIn(before, ([], ["baseline-1"], ["baseline-1", "baseline-2"]))
        # a failed run is tried again when the ablation is continued, and its first attempt is kept
        self.run_program("x.yaml", code=3)
        self.assertEqual(self.began(), [*before, "test-1", "test-1"])
        self.assertTrue((self.root / "x.ablate/runs/test-1.1/stderr").exists())

    def test_bytes_that_are_no_text_are_told_as_text(self):
        self.write(factors={"a": ["x", "y"]}, read={"bytes": "{dir}/x"})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", "printf 'a\\000b\\377\\303' >&2; exit 3; {a} {dir}"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        self.assertEqual(self.reason(self.verdict(code=3)), "exit status 3; its stderr ends:\na?b??")

    def test_a_hybrid_that_crashes_takes_the_shares_and_nothing_else(self):
        # "crash" only with a and without b
        self.write(command=["--do", "{a}{b}", "--t0", "{t0}"],
                   factors={"a": ["c", "crash"], "b": ["", "x"], "t0": [0, 3]})
        got = self.verdict(code=1)
        self.assertIn("hybrid", got["no_shares"])
        self.assertEqual(self.figures(got, "share"), {"a": None, "b": None, "t0": None})
        self.assertEqual(self.figures(got, "alone"), {"a": None, "b": 0.0, "t0": 1.0})
        self.assertEqual(self.figures(got, "left"), {"a": 1.0, "b": None, "t0": 0.0})
        self.assertEqual(sorted(r["id"] for r in got["runs"] if r["state"] == "failed"),
                         ["hybrid-100", "hybrid-101"])

    def test_a_hung_run_is_ended_with_its_children(self):
        self.write(command=["--do", "{do}"], factors={"do": ["train", "hang"]},
                   run={"slots": 2, "timeout": 8})     # in which its child must have begun
        start = time.monotonic()
        got = self.verdict(code=3)
        self.assertLess(time.monotonic() - start, 60)
        reasons = [r["reason"] for r in got["runs"] if r["state"] == "failed"]
        self.assertIn("not done after 8 s (run.timeout), so ended", reasons[0])
        child = int((self.root / "x.ablate/runs/test-1/out/child").read_text())
        self.assertFalse(alive(child))

    def test_what_a_run_leaves_behind_is_ended_and_told(self):
        self.write(command=["--do", "{do}"], factors={"do": ["train", "leave"]})
        said = self.run_program("x.yaml", code=0)
        self.assertIn("1 processes that it left were ended", said.stderr)
        self.assertFalse(alive(int((self.root / "x.ablate/runs/test-1/out/child").read_text())))

    def test_a_run_that_leaves_nothing_has_failed(self):
        self.write(command=["--do", "{do}"], factors={"do": ["train", "nothing"]})
        got = self.verdict(code=3)
        reason = next(r["reason"] for r in got["runs"] if r["state"] == "failed")
        self.assertTrue(reason.startswith("exit status 0, but: "), reason)
        self.assertIn("model.safetensors", reason)

    def test_damaged_weights_are_told_with_run_file_and_fault(self):
        """A file that was cut off or whose header lies is a run that failed: of an arm the answer is
        untestable, of a hybrid it is known but for that hybrid. What other runs left is kept."""
        text = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        head = len(text).to_bytes(8, "little") + text
        golden = pathlib.Path(__file__).resolve().parents[1] / "golden/ablate"
        for word, value in (("x", b"\0\0\x80\x3f"), ("y", b"\0\0\0\x40")):       # 1.0 and 2.0
            (self.root / f"{word}.safetensors").write_bytes(head + 2 * value)
            saved = (golden / f"{'a' if word == 'x' else 'b'}.pt").read_bytes()
            (self.root / f"{word}.pt").write_bytes(saved)
        for end, content, fault in (
                ("safetensors", head + bytes(5), "inside the 5 bytes of data, got 8: is the file cut"),
                ("safetensors", head[:30], "but only 22 follow its length: the file is cut short"),
                ("safetensors", bytes([255]) + head[1:] + bytes(8), "expected a header of 255 bytes"),
                ("safetensors", (1 << 60).to_bytes(8, "little") + text, "got a length of 115292150460"),
                ("safetensors", bytes(64), "got a header of 0 bytes"),
                ("safetensors", b"", "got 0 bytes"), ("pt", b"", "got 0 bytes"),
                ("pt", saved[:len(saved) // 2], "expected a zip, got none of its end"),
                ("pt", saved[:-30], "zip")):
            (self.root / "bad").write_bytes(content)
            for run, code in (("test-1", 3), ("hybrid-10", 1)):
                with self.subTest(end=end, fault=fault, run=run):
                    shutil.rmtree(self.root / "x.ablate", ignore_errors=True)
                    self.write(factors={"a": ["x", "y"], "b": ["x", "y"]}, run={"slots": 1},
                               read={"weights": f"{{dir}}/w.{end}"})
                    plan = json.loads((self.root / "x.yaml").read_text())
                    plan["command"] = ["sh", "-c", f": {{b}}; if [ {{run}} = {run} ]; then cp bad "
                                       f"{{dir}}/w.{end}; else cp {{a}}.{end} {{dir}}/w.{end}; fi"]
                    (self.root / "x.yaml").write_text(json.dumps(plan))
                    got = self.verdict(code=code)
                    failed = [r for r in got["runs"] if r["state"] == "failed"]
                    self.assertEqual([r["id"] for r in failed], [run])
                    self.assertIn(f"/x.ablate/runs/{run}/out/w.{end}: ", failed[0]["reason"])
                    self.assertIn(fault, failed[0]["reason"])
                    done = [r["id"] for r in got["runs"] if r["state"] == "done"]
                    self.assertEqual(len(done) >= 6, code == 1)
                    for other in done:
                        self.assertTrue((self.root / f"x.ablate/runs/{other}/done").exists())

    def test_not_a_number_is_a_difference_without_shares(self):
        self.write(command=["--do", "{do}"], factors={"do": ["train", "nan"]})
        got = self.verdict(code=1)
        self.assertEqual((got["verdict"], got["distance"]), ("outside-floor", None))
        self.assertEqual(got["no_shares"], "end points have no distance: w of test is not finite")

    def test_other_shapes_are_a_difference_without_shares(self):
        self.write(command=["--size", "{n}"], factors={"n": [3, 4]})
        got = self.verdict(code=1)
        self.assertEqual(got["no_shares"],
                         "end points have no distance: w is F64 [3] in baseline and F64 [4] in test")

    def test_a_program_that_is_not_there_is_an_error(self):
        self.write(factors={"a": ["x", "y"]})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["no-such-program-here", "{a}", "{dir}"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        said = self.run_program("x.yaml", code=2)
        self.assertRegex(said.stderr, "error: x.yaml: command of (baseline|test)-1: no-such-program-here: cannot be "
                                      "started: No such file or directory")


class Folder(Slow):
    def test_interrupted_and_killed_ablations_continue_without_a_run_twice(self):
        self.slow()
        whole = self.verdict("-o", "whole", code=1)
        self.count.unlink()
        first = self.start()
        self.wait_for(2)
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=60)
        self.assertEqual((first.returncode, out), (130, ""))
        self.assertIn("Continue with: twinstep ablate x.yaml --json", err)
        self.assertEqual(self.trainings(), [])
        second = self.start()
        self.wait_for(4)
        second.kill()
        second.communicate(timeout=60)
        end = time.monotonic() + 20
        while self.trainings() and time.monotonic() < end:  # their guard sees the end
            time.sleep(0.02)
        self.assertEqual(self.trainings(), [])
        got = self.verdict(code=1)
        self.assertEqual(got | {"folder": ""}, whole | {"folder": ""})
        ran = self.began()
        # each run once, but the two that were running when their planner ended
        self.assertEqual(len(ran), len(set(ran)) + 2, ran)
        self.assertEqual(len(set(ran)), 7 + 3)  # with the second runs that the answer hangs on
        self.count.unlink()
        self.assertEqual(self.verdict(code=1), got)
        self.assertEqual(self.began(), [])

    def test_a_changed_plan_is_refused(self):
        data = self.root / "data.txt"
        data.write_text("one")
        self.write(command=["--t0", "{t0}", "--inert", f"--x={data}"], factors={"t0": [0, 3]})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"][-1:] = [str(data)]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        self.verdict(code=1)
        data.write_text("two")
        said = self.run_program("x.yaml", code=2)
        self.assertIn(f"holds runs of another plan, so it cannot be continued: {data} has changed since the first run "
                      "(another folder: --output); if runs write to it, they are not alike: let it lie in {dir}\n",
                      said.stderr)
        self.assertNotRegex(said.stderr, "[0-9a-f]{64}")
        data.write_text("one")
        self.verdict("--slots", "1", code=1)
        plan["factors"] = {"t0": [0, 5]}
        (self.root / "x.yaml").write_text(json.dumps(plan))
        said = self.run_program("x.yaml", code=2)
        self.assertIn('it has "factor t0 test 3", now it would be "factor t0 test 5"', said.stderr)
        plan["factors"] = {"t0": [0, 3]}
        for more, told in (({"read": {**plan["read"], "log": "{dir}/log.jsonl"}}, '"read log {dir}/log.jsonl" was not there before'),
                           ({"environment": {"A": "1"}}, '"command environment A=1" was not there before'),
                           ({"if_equal": "stop"}, '"if_equal stop" was not there before')):
            (self.root / "x.yaml").write_text(json.dumps(plan | more))
            self.assertIn(f"so it cannot be continued: {told} (another folder: --output)\n",
                          self.run_program("x.yaml", code=2).stderr)
        (self.root / "x.yaml").write_text(json.dumps(plan | {"if_equal": "stop"}))
        self.run_program("x.yaml", "-o", "other", "--quiet", code=1)
        (self.root / "x.yaml").write_text(json.dumps(plan))
        self.assertIn('"if_equal stop" was there before, and is not now (another folder: --output)\n',
                      self.run_program("x.yaml", "-o", "other", code=2).stderr)

    def test_a_file_that_runs_make_is_no_input(self):
        # named by the command, and not there when the plan is made
        self.write(factors={"a": ["x", "y"]}, read={"bytes": "{dir}/x"}, run={"slots": 1})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", "echo {run} >> \"$1\"; echo {a} > {dir}/x; if [ -e pid ]; then kill -9 $(cat pid); fi",
                           "sh", "rows.csv", "x.yaml"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        # its planner is killed in the first run
        first = subprocess.Popen(["sh", "-c", 'echo $$ > pid; exec "$0" ablate x.yaml', PROGRAM],
                                 cwd=self.root, env=self.env, stderr=subprocess.DEVNULL)
        self.assertEqual(first.wait(60), -signal.SIGKILL)
        (self.root / "pid").unlink()
        self.assertTrue((self.root / "rows.csv").exists())
        kept = (self.root / "x.ablate/plan").read_text()
        self.assertIn("input x.yaml ", kept)
        self.assertNotIn("input rows.csv", kept)
        self.assertEqual(self.verdict(code=1)["verdict"], "outside-floor")
        self.assertEqual(self.verdict(code=1)["verdict"], "outside-floor")
        # one that was there is an input, and runs that change it are not alike
        self.run_program("x.yaml", "-o", "other", code=1)
        self.assertIn("input rows.csv ", (self.root / "other/plan").read_text())
        said = self.run_program("x.yaml", "-o", "other", code=2)
        self.assertIn("if runs write to it, they are not alike", said.stderr)

    def test_what_was_changed_after_a_run_is_seen(self):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]})
        self.verdict(code=1)
        runs = self.root / "x.ablate/runs"
        (runs / "test-1/out/model.safetensors").write_bytes(
            (runs / "baseline-1/out/model.safetensors").read_bytes())
        self.assertIn("weights were changed after the run ended",
                      self.run_program("x.yaml", code=2).stderr)

    def test_folders_that_others_can_write_are_refused(self):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]})
        (self.root / "x.ablate").mkdir()
        (self.root / "x.ablate").chmod(0o777)
        self.assertIn("others can write to it (mode 777)", self.run_program("x.yaml", code=2).stderr)
        (self.root / "x.ablate").chmod(0o755)
        (self.root / "x.ablate/thesis.tex").write_text("mine")
        self.assertIn("is no folder of an ablation", self.run_program("x.yaml", code=2).stderr)
        (self.root / "x.yaml").chmod(0o666)
        self.assertIn("everybody can write to it", self.run_program("x.yaml", code=2).stderr)
        self.assertEqual(self.began(), [])

    def test_nobody_else_can_write_what_is_kept_whatever_the_umask_is(self):
        (self.root / "a.json").write_text('{"lr": 1}')
        (self.root / "b.json").write_text('{"lr": 2}')
        self.write(command=["--config", "{c}", "--do", "{do}"], files={"c": ["a.json", "b.json"]},
                   factors={"lr": {"leaves": {"c": ["lr"]}}, "do": ["train", "crash"]}, run={"slots": 1})
        plan = json.loads((self.root / "x.yaml").read_text())
        (self.root / "y.yaml").write_text(json.dumps(plan | {"run": {"slots": 2}}))
        kept = os.umask(0)
        self.addCleanup(os.umask, kept)
        self.run_program("x.yaml", code=3)      # where test comes first, nothing is done
        self.run_program("y.yaml", code=3)
        own = [path for folder in "xy" for path in (self.root / f"{folder}.ablate").rglob("*")
               if path.parent.name != "out"]
        self.assertEqual({"plan", "done", "failed", "command", "a.json", "stdout"} -
                         {path.name for path in own}, set())
        for path in own:
            self.assertEqual(path.stat().st_mode & 0o022, 0, path)

    def test_what_others_could_have_written_is_not_read(self):
        self.write(command=["--do", "{do}"], factors={"do": ["train", "crash"]}, run={"slots": 2})
        self.run_program("x.yaml", code=3)
        for name in ("plan", "runs/baseline-1/done", "runs/test-1/failed"):
            path = self.root / "x.ablate" / name
            path.chmod(0o664)
            self.assertIn(f"{path}: others can write to it (mode 664)",
                          self.run_program("x.yaml", code=2).stderr)
            path.chmod(0o644)

    def test_files_that_others_can_write_are_refused(self):
        for name in ("a.json", "b.json"):
            (self.root / name).write_text(json.dumps({"lr": name}))
        self.write(command=["--config", "{c}"], files={"c": ["a.json", "b.json"]},
                   factors={"lr": {"leaves": {"c": ["lr"]}}})
        (self.root / "b.json").chmod(0o646)
        self.assertIn("b.json: error: everybody can write to it (mode 646), so others could change what is",
                      self.run_program("x.yaml", "--dry-run", code=2).stderr)
        (self.root / "b.json").chmod(0o644)
        self.run_program("x.yaml", "--dry-run", code=0)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to give a file away")
    def test_files_of_others_and_of_their_groups_are_refused(self):
        self.write(factors={"a": ["x", "y"]}, command=["{a}"])
        path = self.root / "x.yaml"
        nobody = 54321  # neither a user nor a group of this system
        path.chmod(0o664)
        os.chown(path, -1, nobody)
        self.assertIn("x.yaml: error: its group, which has other members, can write to it (mode 664)",
                      self.run_program("x.yaml", "--dry-run", code=2).stderr)
        path.chmod(0o644)
        self.run_program("x.yaml", "--dry-run", code=0)
        os.chown(path, nobody, -1)
        self.assertIn("x.yaml: error: belongs to another user, so others could run commands as you",
                      self.run_program("x.yaml", "--dry-run", code=2).stderr)

    def test_a_folder_whose_name_is_no_text_is_refused_before_anything_is_run(self):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]})
        said = self.run_program("x.yaml", "--json", "-o", b"o\xff", code=2)
        self.assertIn("--json: the folder of runs:1:2: error:", said.stderr)
        self.assertEqual(self.began(), [])

    def test_a_folder_that_cannot_get_its_plan_is_not_left(self):
        self.write(factors={"t0": [0, 3]}, command=["--t0", "{t0}"])
        said = self.run_program("x.yaml", "-o", "new", code=2,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertIn("new/plan", said.stderr)
        self.assertFalse((self.root / "new").exists())
        (self.root / "old").mkdir(mode=0o755)  # a folder of the user's stays
        self.run_program("x.yaml", "-o", "old", code=2,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual(list((self.root / "old").iterdir()), [])

    def test_the_price_counts_noise_and_the_time_to_end_and_its_commands_can_be_pasted(self):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]}, run={"slots": 3, "timeout": 100},
                   environment={"A": "it's a $B", "C": "", "D": None})
        text = self.run_program("x.yaml", "--dry-run", code=0).stdout
        runs, noise = (int(re.search(of, text)[1]) for of in (r"up to (\d+) runs", r"differ: (\d+) more"))
        noise += int(re.search(r"the arms, (\d+) more of hybrids", text)[1])
        sure = 110 * -(-runs // 3)
        self.assertIn(f"each 100 s and 10 s to end: {sure} s at most, {sure + 110 * -(-noise // 3)} s if repeats",
                      text)
        line = re.search("^  baseline-1 +(.*) D=.not set. ", text, re.M)[1]
        said = subprocess.run(["sh", "-c", line + " env"], text=True, capture_output=True, check=True).stdout
        self.assertIn("A=it's a $B\n", said)
        self.assertIn("C=\n", said)

    def test_a_dry_run_runs_nothing_and_says_the_price(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}"], factors={"t0": [0, 3], "t1": [0, 4]})
        text = self.run_program("x.yaml", "--dry-run", code=0).stdout
        self.assertIn("x: up to 10 runs, 2 at a time", text)
        got = self.verdict("--dry-run", code=0)
        self.assertEqual((got["runs_planned"], got["runs_again"], got["runs_if_noisy"]), (7, 3, 6 + 6 + 2))
        self.assertEqual(got["runs_if_equal"], 7)
        self.assertEqual([r["id"] for r in got["runs"] if r["stage"] == "hybrids"],
                         ["hybrid-10", "hybrid-01", "hybrid-11"])
        self.assertEqual(self.began(), [])
        self.assertFalse((self.root / "x.ablate").exists())

    def test_slots_have_ports_and_devices_of_their_own(self):
        # what a run leaves is the device's name, so the floor must see it: each arm is run on both
        script = "echo {gpu} $CUDA_VISIBLE_DEVICES {port} > {dir}/x; sleep 0.3; "\
                 "echo $OMP_WAIT_POLICY$OMP_STACKSIZE$GOMP_SPINCOUNT"
        self.write(factors={"a": ["x", "y"]}, read={"bytes": "{dir}/x"}, 
                   run={"devices": ["5", "6,7"], "port": 41000})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", script, "{a}"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        self.env.pop("OMP_WAIT_POLICY", None)  # this program sets it for itself alone,
        self.env.update(GOMP_SPINCOUNT="1000", TWINSTEP_WAIT_LOOKS="1")  # as this one, by this mark,
        self.env["OMP_STACKSIZE"] = "3M"       # and takes this away for itself alone
        said = self.run_program("x.yaml", "--quiet", code=3)
        # or, if one slot was so slow that it got all of an arm, that is seen
        self.assertRegex(said.stdout, "runs differ from their repeats|difference of machines or devices")
        lines = {(path / "out/x").read_text() for path in (self.root / "x.ablate/runs").iterdir()}
        self.assertEqual({line.split()[0] for line in lines}, {"5", "6,7"})
        for line in lines:
            gpu, visible, port = line.split()
            self.assertEqual(visible, gpu)
            self.assertEqual((int(port) - 41000) % 64, ["5", "6,7"].index(gpu))
        self.assertEqual({path.read_text() for path in (self.root / "x.ablate/runs").glob("*/stdout")},
                         {"3M\n"})


    def test_arms_that_never_shared_a_device_are_not_told_apart(self):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]}, run={"slots": 1})
        self.verdict(code=1)
        for run in (self.root / "x.ablate/runs").glob("test-*/done"):
            run.write_text(re.sub("place .*", "place another-machine", run.read_text()))
        got = self.verdict(code=3)
        self.assertRegex(got["reason"], "baseline was run on .* only, and test never: a difference of "
                                        "machines")


class Refused(Case):
    def test_slots_of_one_process(self):
        self.write(command=["--t0", "{t0}"], factors={"t0": [0, 3]}, run={"shared": True})
        self.assertIn("--slots: run.shared says that one process does the runs",
                      self.run_program("x.yaml", "--slots", "2", code=2).stderr)
        self.run_program("x.yaml", "--slots", "1", "--dry-run", code=0)

    def test_errors_name_file_line_column_and_key(self):
        good = ("ablate: 1\ncommand: [a, \"{f}\", \"{dir}\"]\nfactors: {f: [x, y]}\n"
                "read: {weights: \"{dir}/w\"}\n")
        for old, new, expected in (
                ("ablate: 1\n", "", r"x.yaml:1:1: error: ablate: expected ablate: 1"),
                ("ablate: 1", "ablate: 2", r"x.yaml:1:9: error: ablate: expected 1"),
                ("[a, \"{f}\"", "[a, {f}", r"x.yaml:2:14: error: command: expected a word, got a map"),
                ("\"{f}\"", "\"{g}\"", r"x.yaml:2:14: error: command: no factor is called \{g\}"),
                ("\"{f}\"", "\"{dri}\"", r"did you mean dir\?"),
                ("\"{f}\"", "\"{f\"", r"x.yaml:2:14: error: command: a single brace in"),
                ("\"{f}\", ", "", r"x.yaml:3:11: error: f: \{f\} stands nowhere"),
                ("command: [a,", "command: \"a b\" #", r"command: expected a list of words \(no shell"),
                ("[x, y]", "[x]", r"x.yaml:3:14: error: f: expected a list of two"),
                ("[x, y]", "[x, x]", r"f: both levels are the same"),
                ("{f: [", "{dir: [", r"command: no factor is called \{f\}"),
                ("{f}\", \"{dir}\"]\nfactors: {f: [", "{dir}\"]\nfactors: {dir: [",
                 r"dir: \{factor:dir\} stands nowhere"),
                ("[x, y]", "{wrods: [x, y]}", r"unknown key wrods; did you mean words\?"),
                ("{dir}/w", "out/w", r"x.yaml:4:17: error: weights: expected a path with \{dir\}"),
                ("read:", "raed:", r"unknown key raed; did you mean read\?"),
                ("{weights: \"{dir}/w\"}", "{}", r"read: expected at least one of"),
                ("ablate: 1", "ablate: 1\nrun: {slots: 0}", r"slots: expected a whole number from 1"),
                ("ablate: 1", "ablate: 1\nrun: {timeout: soon}", r"timeout: expected a number of sec"),
                ("ablate: 1", "ablate: 1\nrun: {slots: 2, devices: [0]}", r"no more than the 1 devices"),
                ("ablate: 1", "ablate: 1\nrun: {shared: yes}", r"shared: expected true or false, got \"yes\""),
                ("ablate: 1", "ablate: 1\nrun: {slots: 2, shared: true}", r"one run at a time, and slots is 2"),
                ("ablate: 1", "ablate: 1\nfloor: {runs: 1}", r"runs: expected a whole number from 2"),
                ("ablate: 1", "ablate: 1\nname: a/b", r"name: expected a name without /"),
                ("ablate: 1", "ablate: 1\ntest: {environment: {A: b}}", r"test: expected command"),
                ("ablate: 1", "ablate: 1\ntest: {command: [a, \"{f}\"]}", r"no factor is called \{f\}"),
                ("{dir}/w", "{dir}/{port}", r"x.yaml:4:17: error: weights: \{port\} is not known when a run"),
                ("{dir}/w", "{dir}/{gpu}", r"weights: \{gpu\} is not known when a run is read"),
                ("\"{dir}\"]", "\"{dir}{gpu}\"]", r"x.yaml:2:21: error: command: \{gpu\} needs run.devices"),
                ("[x, y]}", "[x, y], g: {env: {CUDA_VISIBLE_DEVICES: [a, b]}}}\nrun: {devices: [1]}",
                 r"x.yaml:3:22: error: g: run.devices sets CUDA_VISIBLE_DEVICES"),
                ("[x, y]}", "[x, y]}\nenvironment: {CUDA_VISIBLE_DEVICES: a}\nrun: {devices: [1]}",
                 r"x.yaml:4:1: error: environment: run.devices sets CUDA_VISIBLE_DEVICES"),
                ("[x, y]}", "[x, y], g: {env: {A: [a, b]}}, h: {env: {B: [a, b], A: [c, d]}}}",
                 r"x.yaml:3:\d+: error: h: factor g sets A, too"),
                ("[x, y]}", "[x, y], g: {env: {A: [a, b]}}}\nenvironment: {A: c}", None),
                ("[x, y]", "[[x, y], z]", None)):
            with self.subTest(new):
                self.assertIn(old, good)
                (self.root / "x.yaml").write_text(good.replace(old, new, 1))
                if expected is None:
                    self.run_program("x.yaml", "--dry-run", code=0)
                    continue
                said = self.run_program("x.yaml", "--dry-run", code=2)
                self.assertTrue(re.search(expected, said.stderr), said.stderr)
        for old, new in (("{f: [x, y]}", "{f: [[], [x]]}\nenvironment: {command: \"{f}\"}"),
                         ("{f: [x, y]}", "{f: [[], [x]]}\nenvironment: {f: \"{f}\"}")):
            (self.root / "x.yaml").write_text(good.replace(old, new))
            self.assertIn("it must be a word of its own", self.run_program("x.yaml", code=2).stderr)
        (self.root / "x.yaml").write_text(good.replace("\"{f}\"", "\"a{f}\"").replace("[x, y]", "[[], z]"))
        self.assertIn("it must be a word of its own", self.run_program("x.yaml", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
