# SPDX-License-Identifier: Apache-2.0
"""labels: unit

The wheel as CI makes it: built without a network, installed into a new environment beside
Debian's h5py and numpy, and used there."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import venv_with_pip

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINSTEP_PROGRAM"]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True,
                          **options).stdout


def bare_environment():
    dropped = ("PYTHONPATH", "TWINSTEP_PROGRAM", "PYTHONHOME", "VIRTUAL_ENV")
    return {k: v for k, v in os.environ.items() if k not in dropped}


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        build = [sys.executable, ROOT / "python/twinstep_build.py"]
        stripped = cls.folder / "stripped"
        run("strip", "-o", stripped, PROGRAM)
        cls.plain = pathlib.Path(run(*build, cls.folder / "plain").strip())
        cls.whole = pathlib.Path(run(*build, cls.folder / "whole", "--program", stripped).strip())

    def test_equal_input_makes_equal_bytes(self):
        again = run(sys.executable, ROOT / "python/twinstep_build.py", self.folder / "again").strip()
        self.assertEqual(pathlib.Path(again).read_bytes(), self.plain.read_bytes())

    def test_a_compiler_that_fails_leaves_the_digests_to_numpy(self):
        done = subprocess.run(
            [sys.executable, ROOT / "python/twinstep_build.py", self.folder / "numpy"], check=True,
            capture_output=True, text=True, env={**os.environ, "CC": "cc -no-such-option"})
        wheel = pathlib.Path(done.stdout.strip())
        self.assertRegex(wheel.name, r"-py3-none-any\.whl$")
        self.assertRegex(done.stderr, "cc does not compile python/digest, so numpy .*\n.*no-such-option")
        with zipfile.ZipFile(wheel) as file:
            self.assertEqual([n for n in file.namelist() if n.endswith(".so")], [])

    def test_tag_names_what_machine_code_asks_for(self):
        self.assertRegex(self.whole.name, r"^twinstep-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl$")
        needed = int(self.whole.name.split("manylinux_2_")[1].split("_")[0])
        symbols = run("objdump", "-T", PROGRAM)
        newest = max(int(word.split("GLIBC_2.")[1].split(")")[0].split(".")[0])
                     for word in symbols.split() if "GLIBC_2." in word)
        self.assertEqual(needed, max(newest, 17))

    def test_licence_follows_the_program(self):
        for wheel, licence, names in ((self.plain, "License: Apache-2.0\n", {"LICENSE", "NOTICE"}), (
                self.whole, "License: Apache-2.0 AND GPL-3.0-or-later\n",
                {"LICENSE", "NOTICE", "GPL-3"})):
            with zipfile.ZipFile(wheel) as file:
                info = [name for name in file.namelist() if ".dist-info/" in name]
                text = next(file.read(name) for name in info if name.endswith("/METADATA"))
                self.assertIn(licence, text.decode())
                self.assertEqual({n.split("/")[-1] for n in info if "/licenses/" in n}, names)

    def test_it_installs_without_a_network_and_works(self):
        place, environment = self.folder / "venv", bare_environment()
        python = place / "bin/python"
        venv_with_pip.make(place, environment)
        install = [python, "-m", "pip", "install", "--no-index", "--no-deps", "--force-reinstall"]
        tell = ("import importlib.metadata as m, h5py, numpy, twinstep; "
                "print(twinstep.__file__, m.version('twinstep'))")
        for what in (ROOT / "python", self.whole):  # built by pip from the checkout; our wheel
            run(*install, what, env=environment)
            file, version = run(place / "bin/python", "-c", tell, env=environment, cwd=self.folder).split()
            self.assertTrue(file.startswith(str(place)), file)
            self.assertEqual(version, self.whole.name.split("-")[1])
        where = run(place / "bin/python", "-c", "import twinstep; print(twinstep.program())",
                    env=environment, cwd=self.folder).strip()
        self.assertTrue(where.startswith(str(place)), where)
        self.assertEqual(run(place / "bin/twinstep", "--version", env=environment),
                         f"twinstep {version}\n")
        carried = run(place / "bin/python", "-c", "import twinstep.tokens as t; print(t.script())",
                      env=environment, cwd=self.folder).strip()
        self.assertEqual(pathlib.Path(carried).parent.parent.name, "site-packages")
        self.assertEqual(pathlib.Path(carried).read_bytes(), (ROOT / "docs/pretokenise.py").read_bytes())


if __name__ == "__main__":
    unittest.main()
