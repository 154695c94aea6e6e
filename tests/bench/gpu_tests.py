# SPDX-License-Identifier: Apache-2.0
"""Prints the tests labelled gpu as tests/bench/gpu.sh --prebuilt runs them, where there is no ctest:

    gpu_tests.py --ctest CTEST --build FOLDER

A line for each: NAME|PROGRAM|ARGUMENTS|ENVIRONMENT, the program from the folder of the build, words
of the other two with blanks between. They run in a folder that has the tree's tests/golden. The
list is made of what ctest says of its tests; a property that a line cannot hold is an error, so
that a test is never run in another way than ctest would. With --check it is compared with what
`ctest -N -V` prints, and each line is run by the shell's words on a program that writes down how it
was started."""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parents[1]
# What ctest starts as a script that compiles a program: the program, which gpu_pack.sh compiles, and
# its arguments.
COMPILED = {"gpu_curand": ("bin/curand", ("device",))}
# Properties that change nothing of how a test is started, or (77) that gpu_part_build.sh knows.
HARMLESS = {"LABELS", "TIMEOUT", "COST", "SKIP_RETURN_CODE"}


def refuse(test, why):
    sys.exit(f"gpu_tests: error: {test}: {why}")


def line_of(test, build):
    """Returns (name, program, arguments, environment) of a test as ctest's JSON has it."""
    name, command = test["name"], test.get("command", ())
    if not command:
        refuse(name, "expected its program to be built (target label_gpu)")
    properties = {each["name"]: each["value"] for each in test["properties"]}
    unknown = properties.keys() - HARMLESS - {"ENVIRONMENT", "WORKING_DIRECTORY"}
    if unknown:
        refuse(name, f"expected no property that --prebuilt does not know, got {sorted(unknown)}")
    if properties.get("SKIP_RETURN_CODE", 77) != 77:
        refuse(name, "expected 77 as the exit status of a test that is skipped")
    program = pathlib.Path(command[0])
    if name in COMPILED:
        program, arguments = COMPILED[name]
    elif not program.is_relative_to(build):
        refuse(name, f"expected a program of {build}, got {program}")
    elif pathlib.Path(properties.get("WORKING_DIRECTORY", "")) != ROOT:
        refuse(name, "expected to run in the root of the tree, where --prebuilt has tests/golden")
    else:
        program, arguments = str(program.relative_to(build)), tuple(command[1:])
    environment = tuple(properties.get("ENVIRONMENT", ()))
    for word in (name, program, *arguments, *environment):
        if not re.fullmatch(r"[\w./=:,+-]+", word):
            refuse(name, f"expected words without blanks and signs of the shell, got {word!r}")
    return name, program, arguments, environment


def listed(ctest, build):
    done = subprocess.run([ctest, "-L", "^gpu$", "--show-only=json-v1"], cwd=build, check=True,
                          capture_output=True, text=True)
    return [line_of(test, build) for test in json.loads(done.stdout)["tests"]]


def text_of(lines):
    return "".join(f"{name}|{program}|{' '.join(arguments)}|{' '.join(environment)}\n"
                   for name, program, arguments, environment in lines)


def told(ctest, build):
    """Returns the same of what `ctest -N -V` prints, in which another part of ctest has a say."""
    done = subprocess.run([ctest, "-N", "-V", "-L", "^gpu$"], cwd=build, check=True,
                          capture_output=True, text=True)
    tests, words, environment = [], [], []
    for line in done.stdout.splitlines():
        if "Test command: " in line:
            words, environment = shlex.split(line.split("Test command: ")[1]), []
        elif re.match(r"\d+:  \w+=", line):
            environment.append(line.split(":  ", 1)[1])
        elif re.match(r" +Test +#\d+: ", line):
            name = line.split(": ")[1].split()[0]
            program, arguments = COMPILED.get(name, (words[0].removeprefix(f"{build}/"), words[1:]))
            tests.append((name, program, tuple(arguments), tuple(environment)))
    return tests


# Writes down how it was started, and where.
STAND_IN = '#!/bin/sh\nprintf "%s|" "$0" "$PWD" "$*" "$OMP_WAIT_POLICY" "$TWINSTEP_BACKEND"\necho\n'


def check(ctest, build):
    lines = listed(ctest, build)
    expected = told(ctest, build)
    if not lines or lines != expected:
        sys.exit(f"gpu_tests: the list and ctest part:\n{text_of(lines)}\n{text_of(expected)}")
    with tempfile.TemporaryDirectory() as folder:
        place, out = pathlib.Path(folder) / "pack", pathlib.Path(folder) / "out"
        (place / "bin").mkdir(parents=True)
        for _, program, _, _ in lines:
            (place / program).write_text(STAND_IN)
            (place / program).chmod(0o755)
        (place / "tests.txt").write_text(text_of(lines))
        (place / "built").write_text("machine any\n")
        done = subprocess.run(["sh", BENCH / "gpu.sh", "--prebuilt", place, "--out", out, "tests"],
                              capture_output=True, text=True)
        started = [line for log in sorted(out.glob("tests-*.log"))
                   for line in log.read_text().splitlines() if line.endswith("|")]
        wanted = []
        for _, program, arguments, environment in expected:
            values = dict(word.split("=", 1) for word in environment)
            wanted.append(f"{place}/{program}|{place}|{' '.join(arguments)}|"
                          f"{values.get('OMP_WAIT_POLICY', '')}|{values.get('TWINSTEP_BACKEND', '')}|")
        if done.returncode != 0 or sorted(started) != sorted(wanted):
            sys.exit(f"gpu_tests: gpu.sh starts them otherwise: {done.returncode}\n{done.stdout}\n"
                     f"{done.stderr}\n" + "\n".join(started) + "\n\n" + "\n".join(wanted))
    print(f"gpu_tests: {len(lines)} tests, as ctest has them")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ctest", default="ctest")
    parser.add_argument("--build", required=True, type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.ctest, arguments.build)
    else:
        sys.stdout.write(text_of(listed(arguments.ctest, arguments.build)))


if __name__ == "__main__":
    main()
