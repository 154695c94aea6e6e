# SPDX-License-Identifier: Apache-2.0
"""labels: unit nightly

twinstep ablate with many trainings: sampled orders, noise alone, several workers."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).with_name("ablate")))
from case import PROGRAM, Case, Slow, alive  # noqa: E402


class Long(Case):
    def test_many_factors_are_sampled(self):
        # six factors on three weights; the game is linear, so any sample is exact
        self.write(command=["--t", "{a}", "{b}", "{c}", "--inert", "{d}{e}{f}"], factors={
            "a": [0, 1], "b": [0, 2], "c": [0, 4], "d": ["", "x"], "e": ["", "y"], "f": ["", "z"]})
        got = self.verdict(code=1)
        self.assertGreater(got["orders"], 0)
        shares = self.figures(got, "share")
        for name, share in {"a": 1 / 21, "b": 4 / 21, "c": 16 / 21, "d": 0.0, "e": 0.0, "f": 0.0}.items():
            self.assertAlmostEqual(shares[name], share, delta=1e-12)

    def test_single_hybrids_have_no_shares(self):
        self.write(command=["--t", "{a}", "{b}", "{c}", "--inert", "{d}"], hybrids="single",
                   factors={"a": [0, 1], "b": [0, 2], "c": [0, 4], "d": ["", "x"]})
        got = self.verdict(code=1)
        self.assertIn("single", got["no_shares"])
        self.assertEqual(self.figures(got, "share")["a"], None)
        self.assertAlmostEqual(self.figures(got, "alone")["c"], 4 / 21 ** 0.5, delta=1e-15)
        self.assertEqual(len(self.began()), 4 + 4 + 4 + 1 + 3)

    def test_noise_alone_is_inside(self):
        self.write(command=["--noise", "0.25", "--inert", "{no}"], factors={"no": ["a", "b"]},
                   floor={"noisy": 10, "alpha": 1e-4})
        got = self.verdict(code=0)
        self.assertEqual((got["verdict"], got["floor"]["kind"]), ("inside-floor", "noisy"))
        self.assertEqual(len(self.began()), 20)


class Ours(Case):
    def test_shares_are_those_of_a_pair_of_ours(self):
        """Two engines on one question: twinstep run forks hybrids in one process and measures them
        in memory; here each is a process, and weights come from files."""
        settings = {"lr": ("optimizer.lr", "1e-3", "5e-4"), "decay": ("optimizer.weight_decay", "0", "0.1"),
                    "beta": ("dpo.beta", "0.1", "0.3")}
        (self.root / "same.yaml").write_text("twinstep: 1\nname: s\nsteps: 3\ncommon: {}\n"
                                             "arms: {baseline: {}, test: {}}\n")
        arms = ["optimizer: {{lr: {}, weight_decay: {}}}, dpo: {{beta: {}}}".format(
            *(levels[arm] for _, *levels in settings.values())) for arm in (0, 1)]
        (self.root / "pair.yaml").write_text("twinstep: 1\nname: p\nsteps: 3\ncommon: {}\narms:\n"
                                             f"  baseline: {{{arms[0]}}}\n  test: {{{arms[1]}}}\n")
        sets = [word for name, (key, *_) in settings.items()
                for word in ("--set", f"common.{key}={{{name}}}")]
        (self.root / "x.yaml").write_text(json.dumps({
            "ablate": 1, "command": [PROGRAM, "run", "same.yaml", "--quiet", "-o", "{dir}/t.h5",
                                     "--save-model=test={dir}/w", *sets],
            "factors": {name: levels for name, (_, *levels) in settings.items()},
            "read": {"weights": "{dir}/w"}, "run": {"slots": 2}}))
        ours = json.loads(subprocess.run([PROGRAM, "run", "pair.yaml", "--quiet", "--json"], cwd=self.root,
                                         capture_output=True, text=True, check=False).stdout)
        got = self.verdict(code=1)
        causes = {"schedule": "lr", "optimizer": "decay", "objective": "beta"}
        self.assertEqual([causes[cause["cause"]] for cause in ours["causes"]],
                         [factor["name"] for factor in got["factors"]])
        for cause, factor in zip(ours["causes"], got["factors"]):
            for figure in ("share", "left", "alone"):
                self.assertAlmostEqual(cause[figure], factor[figure]["value"], delta=1e-12)


class Workers(Slow):
    def test_what_a_killed_planner_left_has_ended_before_its_run_is_begun_again(self):
        # trainings that do not obey TERM, and write when they are done
        log = self.root / "log"
        self.write(factors={"a": ["x", "y"]}, read={"bytes": "{dir}/x"}, run={"slots": 1})
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", f"trap '' TERM; echo begin >> {log}; sleep 0.7; echo {{a}} > {{dir}}/x; "
                                       f"echo end >> {log}"]
        (self.root / "x.yaml").write_text(json.dumps(plan))
        first = self.start()
        while not log.exists():
            time.sleep(0.02)
        first.kill()
        first.wait()  # its guard lives on, and has its stderr
        first.stdout.close()
        first.stderr.close()
        self.assertEqual(self.verdict(code=1)["verdict"], "outside-floor")
        self.assertEqual(log.read_text().split(), ["begin", "end"] * 9)

    def guards(self, planner):
        """The processes that guard runs of this planner."""
        return [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/stat")
                if path.exists() and path.read_text().rsplit(")", 1)[1].split()[1] == str(planner)]

    def wait_for_log(self):
        while not self.log.exists():
            time.sleep(0.02)

    def close(self, worker):
        worker.wait()
        worker.stdout.close()
        worker.stderr.close()

    def test_planner_and_guard_killed_at_once_leave_no_run_that_meets_the_next_attempt(self):
        # the command itself ends with its guard; what it started does not obey, and goes on for a while
        self.script("echo {run} begin >> LOG; (setsid sh -c 'sleep 1.5; echo {run} end >> LOG' &); "
                    "sleep 0.7; echo {a} > {dir}/x; echo {run} whole >> LOG; sleep 1.3")
        first = self.start()
        self.wait_for_log()
        guards = self.guards(first.pid)
        self.assertEqual(len(guards), 1)
        first.send_signal(signal.SIGSTOP)  # neither sees the end of the other
        os.kill(guards[0], signal.SIGKILL)
        first.kill()
        self.close(first)
        self.assertEqual(self.verdict(code=1)["verdict"], "outside-floor")
        said = {}
        for line in self.log.read_text().splitlines():
            run, word = line.split()
            said.setdefault(run, []).append(word)
        self.assertEqual(said.pop(next(iter(said))), ["begin", "end", "begin", "whole", "end"])
        self.assertEqual(list(said.values()), [["begin", "whole", "end"]] * 7)

    def test_what_a_killed_guard_left_is_ended_by_the_planner(self):
        self.script("echo begin >> LOG; (setsid sh -c 'echo $$ > {dir}/left; exec sleep 600' &); "
                    "sleep 600; echo {a}")
        first = self.start()
        runs = self.root / "x.ablate/runs"    # which arm comes first is drawn by the folder's name
        while not any(path.read_text() for path in runs.glob("*/out/left")):
            time.sleep(0.02)
        left = next(runs.glob("*/out/left"))
        for process in self.guards(first.pid):
            os.kill(process, signal.SIGKILL)
        out, _ = first.communicate(timeout=60)
        self.assertEqual(self.reason(json.loads(out)),
                         "the process that guarded it is lost, so it was ended")
        self.assertFalse(alive(int(left.read_text())))

    def test_a_run_that_does_not_obey_is_killed_after_ten_seconds(self):
        self.script("trap '' TERM; echo begin >> LOG; while :; do sleep 1; done; : {a} {dir}")
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["run"]["timeout"] = 1
        (self.root / "x.yaml").write_text(json.dumps(plan))
        start = time.monotonic()
        got = self.verdict(code=3)
        spent = time.monotonic() - start
        self.assertGreater(spent, 11)
        self.assertLess(spent, 16)
        self.assertEqual(self.reason(got), "not done after 1 s (run.timeout), so ended")

    def test_several_workers_share_the_runs(self):
        self.slow()
        workers = [self.start() for _ in range(4)]
        said = [worker.communicate(timeout=60)[0] for worker in workers]
        self.assertEqual([worker.returncode for worker in workers], [1] * 4)
        self.assertEqual(len(set(said)), 1)
        self.assertEqual(len(self.began()), 7 + 3, self.began())
        self.assertEqual(len(set(self.began())), 7 + 3)
        self.assertEqual(list((self.root / "x.ablate/claims").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
