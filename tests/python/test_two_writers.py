# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Two trainings at one output: the second one is refused by name while the first one writes, also with
--overwrite, and takes nothing from it. A run whose live trace was removed ends with its own error,
and leaves no kept state beside a trace that is another's, or nobody's."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["TWINSTEP_PROGRAM"]
SCENARIO = """twinstep: 1
steps: {steps}
common: {{seed: 3, model: {{layers: 1, hidden: 16, heads: 2, mlp: 32}}, batch: {{size: 2}}}}
arms: {{baseline: {{}}, test: {{optimizer: {{lr: 2e-6}}}}}}
"""
PATIENCE = 120


class TwoWriters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "long.yaml").write_text(SCENARIO.format(steps=100000), encoding="utf-8")
        (self.folder / "short.yaml").write_text(SCENARIO.format(steps=2), encoding="utf-8")

    def names(self):
        return sorted(path.name for path in self.folder.glob("x.h5*"))

    def run_program(self, *words):
        return subprocess.run([PROGRAM, "run", *words, "-o", "x.h5", "--quiet"], cwd=self.folder,
                              capture_output=True, text=True, check=False)

    def start(self):
        """A long run that has kept a state."""
        run = subprocess.Popen([PROGRAM, "run", "long.yaml", "-o", "x.h5", "--quiet", "--keep-every=0"],
                               cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        self.wait_for(lambda: "x.h5.part.kept-1" in self.names() and "x.h5.part.kept-2" in self.names())
        return run

    def wait_for(self, what):
        end = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), end, self.names())
            time.sleep(0.02)

    def test_verify_that_a_second_writer_is_refused(self):
        run = self.start()
        before = (self.folder / "x.h5.part").stat().st_ino
        for more in ((), ("--overwrite",), ("--overwrite", "--keep-every=never")):
            done = self.run_program("short.yaml", *more)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(f"x.h5.part: process {run.pid} writes it now: choose another name, or end that "
                          "run\n", done.stderr)
        self.assertEqual((self.folder / "x.h5.part").stat().st_ino, before)
        noise = subprocess.run([PROGRAM, "noise", "short.yaml", "-o", "x.h5", "--overwrite", "--quiet"],
                               cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((noise.returncode, noise.stdout), (2, ""))
        self.assertIn("writes it now", noise.stderr)
        run.send_signal(signal.SIGINT)      # the first one ends as if nobody had asked
        _, told = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 130)
        self.assertIn("--resume x.h5.part", told)
        self.assertLessEqual({"x.h5.part", "x.h5.part.kept-1", "x.h5.part.kept-2"}, set(self.names()))

    def test_verify_that_what_a_kill_left_is_taken_over_whole(self):
        run = self.start()
        run.kill()
        run.wait()
        (self.folder / "x.h5.part.kept-1.part").write_bytes(b"of a kill in the middle of keeping")
        done = self.run_program("short.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("with its .kept-1 and .kept-2", done.stderr)
        self.assertEqual(self.run_program("short.yaml", "--overwrite", "--keep-every=never").returncode, 1)
        self.assertEqual(self.names(), ["x.h5"])

    def test_verify_that_a_run_without_its_trace_leaves_nothing(self):
        run = self.start()
        (self.folder / "x.h5.part").unlink()
        _, told = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 2)
        self.assertIn("x.h5.part: was removed or replaced by another process during the run\n", told)
        self.assertEqual(self.names(), [])

    def test_verify_that_a_run_spares_the_files_of_another(self):
        first = self.start()
        self.stop_between_files(first)
        (self.folder / "x.h5.part").unlink()
        second = self.start_again()
        second.send_signal(signal.SIGSTOP)
        held = {name: (self.folder / name).read_bytes() for name in self.names()}
        first.send_signal(signal.SIGCONT)
        _, told = first.communicate(timeout=PATIENCE)
        self.assertEqual(first.returncode, 2)
        self.assertIn("was removed or replaced by another process", told)
        self.assertNotIn("--resume", told)
        now = {name: (self.folder / name).read_bytes() for name in self.names()}
        kept = [name for name in held if name.endswith(("kept-1", "kept-2"))]
        self.assertEqual({name: now.get(name) for name in kept}, {name: held[name] for name in kept})

    def stop_between_files(self, run):
        """Stops a run that is not writing a kept state, which it would name after it goes on."""
        def stopped():
            run.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            if not any(name.endswith(("kept-1.part", "kept-2.part")) for name in self.names()):
                return True
            run.send_signal(signal.SIGCONT)
            return False
        self.wait_for(stopped)

    def start_again(self):
        """A second run at the name that is free again; its first act removes the kept states."""
        old = {name: (self.folder / name).stat().st_ino for name in self.names()}
        run = subprocess.Popen([PROGRAM, "run", "long.yaml", "-o", "x.h5", "--quiet", "--keep-every=0"],
                               cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)

        def anew():
            names = ("x.h5.part.kept-1", "x.h5.part.kept-2")
            here = [self.folder / name for name in names]
            return all(path.exists() and path.stat().st_ino != old.get(path.name) for path in here)
        self.wait_for(anew)
        return run


if __name__ == "__main__":
    unittest.main()
