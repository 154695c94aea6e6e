# SPDX-License-Identifier: Apache-2.0
"""labels: torch

docs/TRL.md, typed as it stands: every command of its console blocks runs here, in their order, and
what they print is what stands under them (`...` stands for any lines). That took 325 s of processor
time (2026-11-26, two processors with a load of 25), two thirds of it for the 15 runs of `ablate`.
What a training in bf16 comes to depends on the processor's instructions, so of the trainings with
`--bf16` the words are compared and the figures only roughly: percentages to 1, others to 0.001. That is three times or more of what
two processors were apart by, one with instructions for bf16 and one without (0.35 and 0.0002)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/TRL.md"


def commands(page):
    """Returns (command, lines that stand under it) of every console block."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


FIGURE = re.compile(r" *[-+]?\d+\.\d+(?:e[-+]\d+)?(?: %)?")


def pattern_of(line, is_rough):
    """A regular expression of a line of the page, with a group for each figure if `is_rough`."""
    if line == "...":
        return "(?:.*\n)*"
    if not is_rough:
        return re.escape(line) + "\n"
    return f"({FIGURE.pattern})".join(map(re.escape, FIGURE.split(line))) + "\n"


class Page(unittest.TestCase):
    def assert_near(self, figures, said):
        """Each figure that was printed is near the one of the page, and of the same kind. bf16 is computed
        by other kernels where the processor has AVX512_BF16: a share was 1.3 points away there."""
        for told, here in zip(figures, said, strict=True):
            self.assertEqual(told.endswith("%"), here.endswith("%"), (told, here))
            self.assertAlmostEqual(float(told.rstrip(" %")), float(here.rstrip(" %")),
                                   delta=2 if told.endswith("%") else 0.001)

    def test_every_command_prints_what_stands_there(self):
        told = commands(PAGE.read_text())
        self.assertEqual(len(told), 13)
        with tempfile.TemporaryDirectory() as folder:
            for file in (ROOT / "docs/tutorial/train.py", *(ROOT / "docs/tutorial/own").iterdir()):
                shutil.copy(file, folder)
            tools = pathlib.Path(folder, "bin")
            tools.mkdir()
            (tools / "twinstep").symlink_to(os.environ["TWINSTEP_PROGRAM"])
            path = os.pathsep.join([str(tools), os.environ["PATH"]])
            for command, lines in told:
                with self.subTest(command=command):
                    command = re.sub(r"^python |\bpython (?=train)", f"{sys.executable} ", command)
                    done = subprocess.run(command, shell=True, cwd=folder, text=True,
                                          capture_output=True, env={**os.environ, "PATH": path})
                    trains = command.startswith(sys.executable)     # 1 is an error there
                    self.assertIn(done.returncode, (0,) if trains else (0, 1), done.stderr)
                    if lines:
                        is_rough = "--bf16" in command
                        pattern = "".join(pattern_of(line, is_rough) for line in lines)
                        self.assertRegex(done.stdout, r"\A" + pattern + r"\Z")
                        if is_rough:
                            self.assert_near([f for line in lines for f in FIGURE.findall(line)],
                                             re.match(pattern, done.stdout).groups())


if __name__ == "__main__":
    unittest.main()
