# SPDX-License-Identifier: Apache-2.0
"""labels: torch

The types of the package, by mypy, beside those of torch and numpy: it is shipped with py.typed, so
a type checker of whoever imports it believes them."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "python/src"
USES = """import twinstep
found = twinstep.fit("log.csv")
found.nothing
twinstep.noise(3)
"""


def mypy(*words, **options):
    done = subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir",
                           "/dev/null", *words], capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout


class Types(unittest.TestCase):
    def test_verify_the_package_agrees_with_its_types(self):
        count = len(list((SOURCE / "twinstep").rglob("*.py")))
        self.assertEqual(mypy(SOURCE / "twinstep"),
                         (0, f"Success: no issues found in {count} source files\n"))

    def test_verify_a_user_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "uses.py"
            path.write_text(USES)
            status, said = mypy(path, env={"MYPYPATH": str(SOURCE)})
        self.assertEqual(status, 1, said)
        self.assertIn('uses.py:3: error: "LogFit" has no attribute', said)
        self.assertIn('uses.py:4: error: Argument 1 to "noise" has incompatible type "int"', said)


if __name__ == "__main__":
    unittest.main()
