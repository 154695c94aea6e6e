# SPDX-License-Identifier: Apache-2.0
"""labels: unit

twinstep bisect-command on a training that changes at a planted version: what it finds, what it runs,
and versions that fail or are noisy."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).with_name("ablate")))
from case import PROGRAM, TRAIN, Case  # noqa: E402


class Bisect(Case):
    VERB = "bisect-command"

    def plan(self, script, versions=12, noise=0.0, **rest):
        """A training whose first target is what the shell computes of {version}."""
        line = f"exec {' '.join(TRAIN[:-1])} {{dir}} --noise {noise} {script}"
        (self.root / "x.yaml").write_text(json.dumps({
            "bisect": 1, "command": ["sh", "-c", line],
            "versions": [str(v + 1) for v in range(versions)] if isinstance(versions, int) else versions,
            "read": {"weights": "{dir}/model.safetensors"}, "run": {"slots": 2}, **rest}))

    def test_the_first_version_outside_is_found_and_others_are_not_run(self):
        self.plan("--t0 $(( {version} >= 8 ? 4 : 1 ))")
        got = self.verdict(code=1)
        self.assertEqual((got["first_outside"], got["last_inside"], got["open"]), ("8", "7", 0))
        # 12 differs; then 6, 9, 7, 8, each twice, and the first version twice
        self.assertEqual([probe["number"] for probe in got["probes"]], [12, 6, 9, 7, 8])
        self.assertEqual([probe["distance"] for probe in got["probes"]], [3.0, 0.0, 3.0, 0.0, 3.0])
        self.assertEqual({(probe["floor"]["kind"], probe["floor"]["runs"]) for probe in got["probes"]}, {("exact", 2)})
        self.assertTrue(got["folder"].endswith("/x.bisect"))
        self.assertEqual(len(self.began()), 12)
        self.count.unlink()
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("x: FIRST OUTSIDE THE FLOOR: 8, number 8 of 12; 7 before it is inside.", text)
        self.assertEqual(self.began(), [])

    def test_a_dry_run_says_that_the_command_does_not_name_its_folder(self):
        self.plan("--t0 {version}")
        self.assertNotIn("note", self.run_program("x.yaml", "--dry-run", code=0).stdout)
        self.assertIsNone(self.verdict("--dry-run", code=0)["note"])
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["true", "{version}"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        told = "{dir} stands nowhere in the command of version-0001-1 ("
        self.assertIn(f"  note     {told}", self.run_program("x.yaml", "--dry-run", code=0).stdout)
        self.assertTrue(self.verdict("--dry-run", code=0)["note"].startswith(told))
        self.assertIn(f"x.yaml: error: {told}", self.run_program("x.yaml", code=2).stderr)
        self.assertEqual(self.began(), [])

    def test_a_last_version_that_is_equal_ends_the_search(self):
        self.plan("--t0 1 --inert {version}")
        got = self.verdict(code=0)
        self.assertEqual((got["verdict"], got["first_outside"]), ("inside", None))
        self.assertEqual(len(self.began()), 4)
        self.assertIn("x: INSIDE THE FLOOR: 12, the last of 12 versions, left what was left by 1.\n",
                      self.run_program("x.yaml", "--quiet", code=0).stdout)

    def test_versions_that_crash_are_passed_by_and_named(self):
        self.plan("--do $( [ {version} -ge 6 ] && [ {version} -le 8 ] && echo crash || echo train ) "
                  "--t0 $(( {version} >= 7 ? 4 : 1 ))")
        got = self.verdict(code=1)
        self.assertEqual((got["first_outside"], got["last_inside"], got["open"]), ("9", "5", 3))
        reasons = {probe["number"]: probe["reason"] for probe in got["probes"]}
        self.assertEqual(reasons[7], "version-0007-1 failed")
        text = self.run_program("x.yaml", "--quiet", code=1).stdout
        self.assertIn("from 9 on or from one of the 3 before it, which cannot be judged; 5 is inside", text)
        self.assertRegex(text, r"\n  failed   version-0007-1: .*exit")

    def test_a_first_version_that_crashes_is_untestable(self):
        self.plan("--do crash --inert {version}")
        self.assertIn("version-0001-1 failed", self.verdict(code=3)["reason"])

    def test_noise_is_told_from_a_change(self):
        (self.root / "versions").write_text("# oldest first\nv1\nv2\n\nv3\nv4")
        self.plan("--t0 $( [ {version} = v4 ] && echo 4 || echo 1 )", noise=0.25, versions="versions")
        got = self.verdict(code=1)
        self.assertEqual(got["probes"][0]["number"], 4)
        self.assertEqual(got["probes"][0]["p"], 2 / 252)

    def test_so_few_equal_runs_are_made_again_until_they_are_no_chance(self):
        # 1 and 2 are neighbours: (1/2)^3 of two and two, of four and four 1/128
        self.plan("--t0 {version}", versions=2)
        self.assertEqual(self.verdict(code=1)["chance"], 1 / 128)
        self.assertEqual(len(self.began()), 8)
        self.assertIn("\n  floor    exact: all repeats agreed; the chance that this is luck, of a command with two "
                      "outcomes, is at most 0.78 % (alpha 1 %)\n",
                      self.run_program("x.yaml", "--quiet", code=1).stdout)

    def test_a_version_that_brings_noise_is_told_from_one_that_moves(self):
        # from 3 on a target is drawn by the run's name: no run is another one's
        self.plan("--t0 $( [ {version} -ge 3 ] && echo {run} | cksum | cut -c1-4 || echo 0 )", versions=4)
        got = self.verdict(code=1)
        self.assertEqual((got["last_inside"], got["first_outside"], got["chance"]), ("2", "3", None))
        self.assertEqual(got["probes"][0]["floor"]["unsteady"], ["test"])
        self.assertRegex(self.run_program("x.yaml", "--quiet", code=1).stdout,
                         r"\n +4 +outside +4: p = 0\.007937, repeats up to \d+ apart; all runs of the first version are "
                         r"bit-equal, only this one does not repeat itself, and no shift beyond that is shown: \|a-b")

    def test_blanks_around_a_version_are_no_part_of_it(self):
        (self.root / "versions").write_text("1\n  2 \n   \n # later\n\t4 \r\n")
        self.plan("--t0 1 --inert {version}", versions="versions")
        self.assertIn("x: INSIDE THE FLOOR: 4, the last of 3 versions, left what was left by 1.\n",
                      self.run_program("x.yaml", "--quiet", code=0).stdout)

    def test_versions_of_a_file_that_others_can_write_are_refused(self):
        (self.root / "versions").write_bytes(b"1\r\n2\r\n")  # as an editor of Windows leaves it
        self.plan("--t0 {version}", versions="versions")
        (self.root / "versions").chmod(0o646)
        self.assertIn("versions: error: everybody can write to it (mode 646), so others could run commands",
                      self.run_program("x.yaml", code=2).stderr)
        self.assertEqual(self.began(), [])
        (self.root / "versions").chmod(0o644)
        self.assertEqual(self.verdict(code=1)["first_outside"], "2")
        (self.root / "versions").write_bytes(b"1\n\xff\n")
        self.assertIn("versions:2:1: error:", self.run_program("x.yaml", code=2).stderr)

    def test_a_plan_of_many_versions_needs_memory_for_its_text_alone(self):
        self.plan("--t0 1 --inert {version}", versions=[f"v{v:080}" for v in range(9999)])
        child = subprocess.Popen([PROGRAM, self.VERB, "x.yaml", "--dry-run"], cwd=self.root, env=self.env,
                                 stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        # the text has 0.9 MB; with each line made from all before it this was 4.5 GB
        self.assertLess(usage.ru_maxrss, 400 << 10)

    def test_slots_executor_and_take_over_are_those_of_ablate(self):
        (self.root / "ssh").write_text("#!/bin/sh\necho node >> hops\nshift\nexec sh -c \"$*\"\n")
        (self.root / "ssh").chmod(0o755)
        self.plan("--t0 {version}", versions=2, run={"slots": 1})
        words = ("--executor", f"{self.root}/ssh node {{command}}", "--slots", "2")
        self.assertEqual(self.verdict(*words, code=1)["first_outside"], "2")
        self.assertEqual(len((self.root / "hops").read_text().split()), 8)  # two of each could be chance
        runs = self.root / "x.bisect/runs"
        for done in runs.glob("*/done"):
            done.unlink()
        (self.root / "x.bisect/claims/version-0001-1").write_text(
            "gone 11111111-2222-3333-4444-555555555555 pid:[4026531836] 7 99")
        self.assertEqual(self.verdict("--take-over", "gone", code=1)["first_outside"], "2")
        self.assertIn("--slots: expected a whole number from 1 to 64",
                      self.run_program("x.yaml", "--slots", "0", code=2).stderr)

    def test_nothing_is_run_without_consent(self):
        self.plan("--t0 {version}", versions=4)
        self.assertIn("4 versions", self.run_program("x.yaml", "--dry-run", code=0).stdout)
        (self.root / "x.yaml").chmod(0o646)
        self.assertIn("so others could run commands as you", self.run_program("x.yaml", code=2).stderr)
        (self.root / "x.yaml").chmod(0o644)
        (self.root / "x.bisect").mkdir()
        (self.root / "x.bisect").chmod(0o777)
        self.assertIn("others can write to it (mode 777)", self.run_program("x.yaml", code=2).stderr)
        (self.root / "x.bisect").chmod(0o755)
        self.run_program("x.yaml", "--quiet", code=1)
        # a command in the folder is what was run, and is never run
        (self.root / "x.bisect/runs/version-0001-1/command").write_text("touch bad\n")
        (self.root / "x.bisect/runs/version-0001-1/done").unlink()
        before = len(self.began())
        self.run_program("x.yaml", "--quiet", code=1)
        self.assertEqual(len(self.began()), before + 1)
        self.assertFalse((self.root / "bad").exists())

    @unittest.skipUnless(shutil.which("git"), "needs git")
    def test_revisions_of_a_repository_by_the_page_s_own_files(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/ABLATE.md").read_text("utf-8")
        of_page = page[page.index("## bisect-command"):]
        file = of_page.split("```yaml\n")[1].split("```")[0].replace("timeout: 3600", "timeout: 60")
        self.env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1",
                        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER")
                           for what in ("NAME", "EMAIL")})
        (self.root / "bin").mkdir()         # the page says python
        (self.root / "bin/python").symlink_to(sys.executable)
        self.env["PATH"] = f"{self.root / 'bin'}:{self.env['PATH']}"

        def git(*words):
            return subprocess.run(["git", *words], cwd=self.root, env=self.env, check=True, text=True,
                                  capture_output=True).stdout
        git("init", "--quiet")
        source = self.root / "train.py"
        for k in range(7):      # the fifth one trains otherwise, the others only say so
            rate = 4 if k >= 4 else 1
            words = [*TRAIN[:3], "--t0", str(rate)]
            source.write_text(f"import os, sys\n# change {k}\nos.execv({sys.executable!r}, "
                              f"{words!r} + sys.argv[1:])\n")
            git("add", "train.py")
            git("commit", "--quiet", "-m", f"change {k}")
            if k in (1, 6):
                git("tag", "v1.0" if k == 1 else "v1.1")
        revisions = git("rev-list", "--reverse", "v1.0^..v1.1").split()
        self.assertEqual(len(revisions), 6)
        (self.root / "bisect.yaml").write_text(file)
        script = of_page.split("```sh\n")[1].split("```")[0]
        done = subprocess.run(["sh", "-ec", script.replace("twinstep", shlex.quote(PROGRAM))],
                              cwd=self.root, env=self.env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"bisect: FIRST OUTSIDE THE FLOOR: {revisions[3]}, number 4 of 6; "
                      f"{revisions[2]} before it is inside.", done.stdout)

    def test_errors(self):
        self.plan("--t0 {version}", versions=1)
        self.assertIn("versions: expected two at least, the good one first, got 1",
                      self.run_program("x.yaml", code=2).stderr)
        self.plan("--t0 1 --inert {version}")
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = TRAIN
        (self.root / "x.yaml").write_text(json.dumps(plan))
        self.assertIn("command: expected {version} in it", self.run_program("x.yaml", code=2).stderr)
        self.plan("--t0 {version}", versions="no-such-file")
        self.assertIn("no-such-file", self.run_program("x.yaml", code=2).stderr)
        self.plan("--t0 {version}", factors={"a": [1, 2]})
        self.assertIn("unknown key factors", self.run_program("x.yaml", code=2).stderr)
        self.plan("--t0 {version}", versions=100)
        self.assertIn("100 versions; at most 8 of them are run besides the first",
                      self.run_program("x.yaml", "--dry-run", code=0).stdout)
        plan = self.verdict("--dry-run", code=0)
        self.assertEqual((len(plan["versions"]), plan["versions_run_at_most"], plan["runs_of_each"],
                          plan["runs_of_each_if_noisy"], plan["folder"]), (100, 9, 2, 5, "x.bisect"))
        self.assertFalse((self.root / "x.bisect").exists())
        self.assertEqual(self.began(), [])


if __name__ == "__main__":
    unittest.main()
