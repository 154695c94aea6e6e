# SPDX-License-Identifier: Apache-2.0
"""labels: unit

The GitHub Action of docs/PYTHON.md, step by step as a runner does it: each `run:` of the page is a
file for `bash -e`, with the files that a runner names in the environment, beside the test that stands
above it on the page. The wheel is built here, `pip` has no index (Debian's pytest is there already),
and `actions/checkout` is a folder that was filled by hand. Then the same with logs whose names are
markup and commands of a runner."""
import gzip
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import venv_with_pip

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINSTEP_PROGRAM"]
HOSTILE = ("<script>alert(1)<script>.csv", "a`b`|c|d.csv", "::error file=x::y.csv",
           "##[error]z.csv", "<pre>&lt;b>.csv")

if not importlib.util.find_spec("pytest"):
    print("no pytest (Debian: python3-pytest): skipped")
    sys.exit(77)


def block(language, word):
    """The page's one block of `language` that holds `word`."""
    page = (ROOT / "docs/PYTHON.md").read_text(encoding="utf-8")
    found, = (b for b in re.findall(rf"^```{language}\n(.*?)^```", page, re.S | re.M) if word in b)
    return found


def steps():
    """The steps of the page's workflow, (key, value) each. They are one line each there."""
    found = re.findall(r"^      - (\w+): (.+)$", block("yaml", "jobs:"), re.M)
    if block("yaml", "jobs:").count("      - ") != len(found):
        raise AssertionError("a step of the page is no line `- key: value`")
    return found


class Action(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        stripped = cls.folder / "stripped"
        subprocess.run(["strip", "-o", stripped, PROGRAM], check=True)
        made = subprocess.run([sys.executable, ROOT / "python/twinstep_build.py", cls.folder,
                               "--program", stripped], check=True, capture_output=True, text=True)
        cls.wheel = pathlib.Path(made.stdout.strip())
        cls.venv = cls.folder / "venv"
        venv_with_pip.make(cls.venv, cls.environment())
        # Debian's pytest runs Debian's Python.
        venv_with_pip.command(cls.venv, "pytest", "import pytest\nraise SystemExit(pytest.main())\n")
        cls.is_installed = False
        # Debian's h5py has no metadata under its name, without which pip would fetch another one.
        import h5py
        info = next(cls.venv.glob("lib/python3*/site-packages")) / f"h5py-{h5py.__version__}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: h5py\nVersion: {h5py.__version__}\n", encoding="utf-8")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name, "work")
        (self.place / "golden").mkdir(parents=True)
        (self.place / "tests/training").mkdir(parents=True)
        (self.place / "run").mkdir()
        (self.place / self.wheel.name).symlink_to(self.wheel)
        self.files = {name: pathlib.Path(folder.name, name) for name in (
            "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")}
        for file in self.files.values():
            file.touch()
        for name, to in (("racing_a", "golden/log.jsonl"), ("racing_b", "same.jsonl"),
                         ("racing_rate", "other.jsonl"), ("racing.floor", "golden/floor.h5")):
            packed = (ROOT / f"tests/golden/record/{name}.h5.gz").read_bytes()
            recorded = self.place / f"{name}.h5"
            recorded.write_bytes(gzip.decompress(packed))
            if to.endswith(".h5"):
                recorded.rename(self.place / to)
            else:
                (self.place / to).write_bytes(subprocess.run(
                    [PROGRAM, "export", recorded, "--to", "jsonl"], check=True,
                    capture_output=True).stdout)

    def write_test(self, log):
        """The page's test, with a training that leaves `log`."""
        (self.place / "tests/training/test_loop.py").write_text(
            block("python", "def test_loop_is_the_golden_one") +
            "\ndef train_ten_updates(to):\n"
            "    import shutil\n"
            f"    shutil.copy({log!r}, to)\n", encoding="utf-8")

    @staticmethod
    def environment():
        dropped = ("PYTHONPATH", "TWINSTEP_PROGRAM", "PYTHONHOME", "VIRTUAL_ENV")
        return {k: v for k, v in os.environ.items() if k not in dropped}

    def job(self):
        """Runs the steps until one fails, as a runner does: (status, what was printed). The first job
        installs the wheel, and the others find it installed."""
        told = ""
        environment = self.environment()
        environment |= {name: str(file) for name, file in self.files.items()}
        environment |= {"CI": "true", "GITHUB_ACTIONS": "true", "PIP_NO_INDEX": "1",
                        "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1",
                        "PATH": f"{self.venv}/bin:{environment['PATH']}"}
        commands = 0
        for key, value in steps():
            if key == "uses":
                self.assertRegex(value, r"^actions/checkout@v\d+$")
                continue
            self.assertEqual(key, "run")
            commands += 1
            named = re.sub(r"twinstep-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl",
                           self.wheel.name, value)
            script = self.place.parent / f"step{commands}.sh"
            script.write_text(named + "\n", encoding="utf-8")
            done = subprocess.run(["bash", "-e", script], cwd=self.place, env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            told += done.stdout
            if done.returncode:
                return done.returncode, told
            if commands == 1:
                self.assertEqual("Successfully installed twinstep" in told, not self.is_installed, told)
                type(self).is_installed = True
        self.assertEqual(commands, 2)
        return 0, told

    def test_it_passes_within_the_floor(self):
        self.write_test("same.jsonl")
        status, told = self.job()
        self.assertEqual(status, 0, told)
        self.assertIn("1 passed", told)
        self.assertIn("floor: inside-floor: p = ", told)
        summary = self.files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        self.assertEqual((summary.count("<pre>"), summary.count("</pre>")), (1, 1))
        self.assertIn("floor: inside-floor: p = ", summary)
        for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH"):
            self.assertEqual(self.files[name].read_bytes(), b"")

    def test_it_fails_outside_the_floor(self):
        self.write_test("other.jsonl")
        status, told = self.job()
        self.assertEqual(status, 1, told)
        self.assertIn("1 failed", told)
        self.assertIn("floor: outside-floor: p = 0.01",
                      self.files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8"))

    def test_names_that_are_markup_and_commands_stay_text(self):
        self.write_test("same.jsonl")
        for i, name in enumerate(HOSTILE):
            (self.place / name).write_text(f"step,loss\n1,0.5\n2,{i}\n", encoding="utf-8")
        (self.place / "plain.csv").write_text("step,loss\n1,0.5\n2,9\n", encoding="utf-8")
        (self.place / "tests/training/test_names.py").write_text(
            "import pytest\nfrom twinstep import assert_same_training\n"
            f"@pytest.mark.parametrize('name', {HOSTILE!r}, ids=str.isalpha)\n"
            "def test_name(name):\n    assert_same_training('plain.csv', './' + name)\n"
            f"@pytest.mark.parametrize('name', {HOSTILE[2:4]!r}, ids=str.isalpha)\n"
            "def test_bare_name(name):\n    assert_same_training(name, 'plain.csv')\n",
            encoding="utf-8")
        status, told = self.job()
        self.assertEqual(status, 1, told)
        self.assertIn("7 failed, 1 passed", told)
        summary = self.files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        self.assertEqual((summary.count("<pre>"), summary.count("</pre>")), (8, 8))
        inside = summary.replace("<pre>", "").replace("</pre>", "")
        self.assertNotIn("<", inside)
        self.assertIn("&lt;script&gt;alert(1)&lt;script&gt;.csv", inside)
        ours = told[told.index("= twinstep ="):].splitlines()[1:]
        for line in ours + summary.splitlines():
            self.assertFalse(line.startswith("::"), line)
            self.assertNotIn("##[", line)
        self.assertEqual(self.files["GITHUB_OUTPUT"].read_bytes(), b"")


if __name__ == "__main__":
    unittest.main()
