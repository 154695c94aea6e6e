# SPDX-License-Identifier: Apache-2.0
"""What the tests of twinstep ablate share: a folder, an ablation of trainer.py in it, the program."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["TWINSTEP_PROGRAM"]
TRAINER = pathlib.Path(__file__).with_name("trainer.py")
TRAIN = [sys.executable, "-SE", str(TRAINER), "--out", "{dir}"]


def alive(process: int) -> bool:
    """Whether a process of that number lives; a zombie does not."""
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


class Case(unittest.TestCase):
    VERB = "ablate"

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.root = pathlib.Path(kept.name)
        self.count = self.root / "count"
        self.env = dict(os.environ, ABLATE_COUNT=str(self.count), ABLATE_SALT="0")

    def write(self, name="x.yaml", command=(), factors=None, **rest):
        """Writes an ablation of the trainer; JSON is YAML."""
        plan = {"ablate": 1, "command": [*TRAIN, *command], "factors": factors,
                "read": {"weights": "{dir}/model.safetensors"}, "run": {"slots": 2}, **rest}
        (self.root / name).write_text(json.dumps({k: v for k, v in plan.items() if v is not None}))

    def run_program(self, *words, code, **more):
        said = subprocess.run([PROGRAM, self.VERB, *words], cwd=self.root, env=self.env, text=True,
                              capture_output=True, timeout=120, **more)
        self.assertEqual(said.returncode, code, said.stdout + said.stderr)
        return said

    def verdict(self, *words, code):
        return json.loads(self.run_program("x.yaml", "--json", "--quiet", *words, code=code).stdout)

    def script(self, text, slots=1, **rest):
        """An ablation of a shell script, which may write to LOG."""
        self.log = self.root / "log"
        self.write(factors={"a": ["x", "y"]}, read={"bytes": "{dir}/x"}, run={"slots": slots}, **rest)
        plan = json.loads((self.root / "x.yaml").read_text())
        plan["command"] = ["sh", "-c", text.replace("LOG", str(self.log))]
        (self.root / "x.yaml").write_text(json.dumps(plan))

    def logged(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def began(self):
        return self.count.read_text().split() if self.count.exists() else []

    def reason(self, verdict):
        """Why the first run that failed did: which arm's that is, is drawn by the folder's name."""
        return next(run["reason"] for run in verdict["runs"] if run["reason"])

    def figures(self, verdict, name):
        return {factor["name"]: factor[name]["value"] for factor in verdict["factors"]}


class Slow(Case):
    """Trainings that take long enough to be interrupted."""

    def slow(self):
        self.write(command=["--t0", "{t0}", "--t1", "{t1}", "--seconds", "0.2"],
                   factors={"t0": [0, 3], "t1": [0, 4]}, run={"slots": 1})

    def start(self):
        return subprocess.Popen([PROGRAM, "ablate", "x.yaml", "--json"], cwd=self.root, env=self.env,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_for(self, runs):
        while len(self.began()) < runs:
            time.sleep(0.02)

    def trainings(self):
        """Processes that train in this test's folder."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes()
            except OSError:
                continue
            if str(self.root).encode() in words and b"trainer.py" in words:
                found.append(path.parent.name)
        return found
