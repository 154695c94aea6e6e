# SPDX-License-Identifier: Apache-2.0
"""labels: unit

Where the program is looked for, and what becomes of its exit status."""
import ast
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import twinstep
from twinstep import _program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write_script(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Place(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def environment(self, **words):
        kept = {k: v for k, v in os.environ.items() if k != "TWINSTEP_PROGRAM"}
        return mock.patch.dict(os.environ, {**kept, **words}, clear=True)

    def test_the_variable_comes_first(self):
        one = write_script(self.folder / "one", "#!/bin/sh\n")
        write_script(self.folder / "twinstep", "#!/bin/sh\n")
        with self.environment(TWINSTEP_PROGRAM=str(one), PATH=str(self.folder)):
            self.assertEqual(twinstep.program(), one)

    def test_a_variable_that_names_nothing_is_an_error(self):
        with self.environment(TWINSTEP_PROGRAM=str(self.folder / "none")):
            self.assertRaisesRegex(twinstep.ProgramMissing, "TWINSTEP_PROGRAM", twinstep.program)

    def test_path_is_searched_past_our_own_script(self):
        ours, theirs = self.folder / "a", self.folder / "b"
        ours.mkdir()
        theirs.mkdir()
        write_script(ours / "twinstep", "#!/usr/bin/python3\nfrom twinstep.__main__ import main\n")
        real = write_script(theirs / "twinstep", "#!/bin/sh\n")
        with self.environment(PATH=f"{ours}:{theirs}"), mock.patch.object(
                _program, "BUNDLED", self.folder / "none"):
            self.assertEqual(twinstep.program(), real)
        with self.environment(PATH=str(ours)), mock.patch.object(
                _program, "BUNDLED", self.folder / "none"):
            self.assertRaisesRegex(twinstep.ProgramMissing, "PATH", twinstep.program)

    def test_bundled_comes_before_path(self):
        bundled = write_script(self.folder / "bundled", "#!/bin/sh\n")
        write_script(self.folder / "twinstep", "#!/bin/sh\n")
        with self.environment(PATH=str(self.folder)), mock.patch.object(_program, "BUNDLED", bundled):
            self.assertEqual(twinstep.program(), bundled)

    def test_a_status_is_a_result_or_an_error(self):
        for status in (0, 1, 3):
            script = write_script(self.folder / "p", f'#!/bin/sh\necho \'{{"a": 1}}\'\nexit {status}\n')
            with self.environment(TWINSTEP_PROGRAM=str(script)):
                self.assertEqual(_program.ask(["x"]), (status, {"a": 1}))
        for status in (2, 130, 139):
            script = write_script(self.folder / "p", f"#!/bin/sh\necho why $* >&2\nexit {status}\n")
            with self.environment(TWINSTEP_PROGRAM=str(script)):
                with self.assertRaisesRegex(twinstep.ProgramError, "^why x --json$") as caught:
                    _program.ask(["x"])
                self.assertEqual(caught.exception.status, status)


class Import(unittest.TestCase):
    def test_import_needs_no_numpy_and_no_h5py(self):
        code = "import sys, twinstep; print([m for m in ('numpy', 'h5py', 'torch') if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "[]\n")

    def test_every_name_is_there(self):
        for name in twinstep.__all__:
            try:
                self.assertIsNotNone(getattr(twinstep, name), name)
            except ModuleNotFoundError as error:  # these are there where torch is
                self.assertIn((error.name, twinstep._NAMES[name]),
                              (("torch", "record"), ("torch", "repeats")))

    def test_type_checkers_read_the_same_names(self):
        tree = ast.parse(pathlib.Path(twinstep.__file__).read_text(encoding="utf-8"))
        typed = {node.module.removeprefix("twinstep."): tuple(alias.name for alias in node.names)
                 for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "twinstep." in node.module}
        self.assertEqual(typed, twinstep._MODULES)

    def test_one_version(self):
        cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        project = (ROOT / "python/pyproject.toml").read_text(encoding="utf-8")
        self.assertIn(f"project(twinstep VERSION {twinstep.__version__} ", cmake)
        self.assertIn(f'\nversion = "{twinstep.__version__}"\n', project)


class RealProgram(unittest.TestCase):
    def test_the_command_becomes_the_program(self):
        done = subprocess.run([sys.executable, "-m", "twinstep", "--version"], capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stdout, f"twinstep {twinstep.__version__}\n")

    def test_its_refusal_is_its_own_text(self):
        with self.assertRaisesRegex(twinstep.ProgramError, "no-such.yaml") as caught:
            _program.ask(["run", "no-such.yaml"])
        self.assertEqual(caught.exception.status, 2)


if __name__ == "__main__":
    unittest.main()
