#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A suite in parts that are killed and go on: the table of one run.

    suite_parts.py BINARY LIBRARY [--whole]

LIBRARY is tests/cli/machine.c. Scenarios that meet, miss, expect nothing and fail are dealt out to
four parts, which are killed with all their children at random moments and go on until each ends;
the joined table, JSON and JUnit XML are those of one run, but for seconds. A result is not taken
over where the scenario, a --set, the data or the held-out rows are others; errors are tried again;
nothing that is no result is replaced. --whole: 500 scenarios."""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time

import jobs
from jobs import masked, without_seconds
from long_runs import ROWS

PARTS = 4
ROW = '{"input_ids": [1, 2, 3, 4], "labels": [1, 2, 3, 4]}\n'


class Bench(jobs.Bench):
    def results(self, folder="kept"):
        """Bytes of each result."""
        return {name: self.bytes(f"{folder}/{name}") for name in sorted(os.listdir(self.path(folder)))
                if name.endswith(".json")}

    def words(self, *command):
        """What a suite prints in its three forms, without seconds."""
        code, out, err = self.run("suite", *command, "--junit", "out.xml")
        text = (code, masked(out), err, re.sub(r' time="[^"]*"', "", self.bytes("out.xml").decode()))
        code, out, err = self.run("suite", *command, "--json", *(
            ("--overwrite",) if "--results" in command and "--join" not in command else ()))
        return text + (code, without_seconds(json.loads(out)), err)


def make(bench, count):
    """A suite of `count` scenarios: every fifth misses, every seventh expects nothing."""
    for i in range(count):
        steps = 2 + i % 4
        expect = ("" if i % 7 == 3 else "verdict: identical" if i % 5 == 2
                  else "verdict: outside-floor, cause: schedule")
        bench.scenario(f"many/s{i:03d}", steps, expect)
    bench.scenario("many/t-no-rows", 3, rows="../no-such-rows.jsonl")
    bench.scenario("many/v-no-token", 3, rows="../no-token.jsonl")  # only training meets the error
    with open(bench.path("no-token.jsonl"), "w", encoding="utf-8") as file:
        file.write(ROW.replace("4", "400"))
    with open(bench.path("many/u-broken.yaml"), "w", encoding="utf-8") as file:
        file.write("twinstep: 1\nstepz: 3\n")


def kill_group(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def killed_parts(bench, drawn):
    """Each part is killed after a drawn number of results more, until one call ends it."""
    one = bench.words("many")
    bench.expect("one run: met, missed, errors and none", one[0] == 2 and all(
        one[5][key] > 0 for key in ("met", "missed", "none", "errors")), one)
    kills = 0
    for part in range(1, PARTS + 1):
        for _ in range(3):
            before = len(bench.results()) if os.path.isdir(bench.path("kept")) else 0
            process = bench.start("suite", "many", "--results", "kept", "--resume", "--quiet", "--part",
                                  f"{part}/{PARTS}", "--jobs", "2", start_new_session=True)
            wanted = before + drawn.randrange(3)
            bench.wait_until(process, lambda: os.path.isdir(bench.path("kept"))
                             and len(bench.results()) >= wanted)
            time.sleep(drawn.random() * 0.05)
            if process.poll() is None:
                kills += 1
                kill_group(process)
            else:
                process.communicate()
        code, out, err = bench.run("suite", "many", "--results", "kept", "--resume", "--quiet", "--part",
                                   f"{part}/{PARTS}")
        bench.expect(f"part {part} ends", code in (0, 1, 2) and err == "", (code, out, err))
    bench.expect("some were killed", kills >= PARTS, kills)
    joined = bench.words("many", "--results", "kept", "--join")
    bench.expect("joined: the table, JUnit XML and JSON of one run", joined == one,
                 [pair for pair in zip(joined, one) if pair[0] != pair[1]])
    held = bench.results()
    code, out, err = bench.run("suite", "many", "--results", "kept", "--resume", "--json")
    again = json.loads(out)
    fresh = [name for name, data in bench.results().items() if data != held.get(name)]
    bench.expect("all of it again trains only the errors",
                 again["taken"] == len(again["scenarios"]) - again["errors"] and err == ""
                 and fresh == ["v-no-token.json"], (fresh, again["taken"]))
    os.unlink(bench.path("kept/s008.json"))
    code, out, err = bench.run("suite", "many", "--results", "kept", "--resume")
    bench.expect("what is trained stands where its name is", masked(out).splitlines()[:-1]
                 == one[1].splitlines() and out.endswith(" of them were there already\n"), out)
    bench.expect("nothing else was left", all(name.endswith(".json") or ".json.part" in name
                                              for name in os.listdir(bench.path("kept"))))


def trained(bench, *more):
    """Names whose result a call with --resume made anew, its status and its notes."""
    held = bench.results("few-kept")
    code, _, err = bench.run("suite", "few", "--results", "few-kept", "--resume", "--quiet", *more)
    return [name[:-5] for name, data in bench.results("few-kept").items()
            if data != held.get(name)], code, err


def stale(bench):
    for name in ("a", "b", "c"):
        bench.scenario(f"few/{name}", 2, "verdict: outside-floor", rows="../few.jsonl")
    shutil.copy(bench.path("rows.jsonl"), bench.path("few.jsonl"))
    for name in ("x", "y"):
        shutil.copy(bench.path("rows.jsonl"), bench.path(f"{name}.jsonl"))
    with open(bench.path("few/b.yaml"), "a", encoding="utf-8") as file:
        file.write(f"eval: {{from: {bench.path('x.jsonl')}}}\n")
    os.mkdir(bench.path("few-kept"))
    bench.expect("the first time all are trained", trained(bench) == (["a", "b", "c"], 0, ""))
    bench.expect("then none", trained(bench) == ([], 0, ""))
    code, out, err = bench.run("suite", bench.path("few"), "--results", "few-kept", "--join")
    bench.expect("the same suite by another path", code == 0 and "3 met" in out, (code, out, err))
    with open(bench.path("x.jsonl"), "a", encoding="utf-8") as file:
        file.write(ROW)
    code, out, err = bench.run("suite", "few", "--results", "few-kept", "--join")
    bench.expect("joined: a result of other held-out rows is an error", code == 2
                 and "2 met, 0 missed, 1 errors" in out and "of other data" in out, (code, out, err))
    names, code, err = trained(bench)
    bench.expect("other held-out rows: that one is trained again, and said", names == ["b"]
                 and code == 0 and "1 results are of other scenarios" in err, (names, code, err))
    with open(bench.path("few/c.yaml"), "a", encoding="utf-8") as file:
        file.write("# a comment\n")
    bench.expect("another text", trained(bench)[0] == ["c"])
    bench.expect("another --set", trained(bench, "--set", "steps=3")[0] == ["a", "b", "c"])
    bench.expect("and back", trained(bench)[0] == ["a", "b", "c"])
    with open(bench.path("few.jsonl"), "a", encoding="utf-8") as file:
        file.write(ROW)
    bench.expect("other rows", trained(bench)[0] == ["a", "b", "c"])
    os.unlink(bench.path("few-kept/a.json"))
    with open(bench.path("few-kept/gone.json"), "w", encoding="utf-8") as file:
        file.write("{}\n")
    code, out, err = bench.run("suite", "few", "--results", "few-kept", "--join")
    bench.expect("joined: what is missing is an error, what is too much is said", code == 2
                 and "no result is there yet" in out and "1 results in few-kept are of no" in err,
                 (code, out, err))


def refusals(bench):
    good = bench.bytes("few-kept/b.json")
    value = json.loads(good)
    cases = {
        "no JSON": b"{", "an array": b"[]\n", "empty": b"", "another file": b'{"lr": 1e-3}\n',
        "too long": b"[" + b" " * (1 << 20) + b"]",
        "a verdict of none": json.dumps({**value, "verdict": "fine"}).encode(),
        "no verdict": json.dumps({k: v for k, v in value.items() if k != "verdict"}).encode(),
        "another verdict": json.dumps({**value, "verdict": "inside-floor"}).encode(),
        "another expectation": json.dumps({**value, "expectation": "none", "missed": ""}).encode(),
        "no seal": json.dumps({k: v for k, v in value.items() if k != "seal"}).encode(),
        "a step that is text": json.dumps({**value, "first": {"step": "1", "phase": "x"}}).encode(),
    }
    for what, data in cases.items():
        with open(bench.path("few-kept/b.json"), "wb") as file:
            file.write(data)
        for more in (("--resume",), ("--join",), ("--overwrite",)):
            code, out, err = bench.run("suite", "few", "--results", "few-kept", *more)
            bench.expect(f"{what}, {more[0]}: refused, and left as it is", code == 2 and out == "" and
                         "few-kept/b.json: expected the result of a scenario" in err
                         and bench.bytes("few-kept/b.json") == data, (code, out, err))
    with open(bench.path("few-kept/b.json"), "wb") as file:
        file.write(good)
    code, out, err = bench.run("suite", "few", "--results", "few-kept")
    bench.expect("results are not replaced unasked", code == 2 and "--overwrite replaces" in err
                 and out == "", (code, out, err))
    for words, said in (
            (("--resume",), "--resume: expected --results too"), (("--join",), "--join: expected --res"),
            (("--results", "r", "--join", "--resume"), "expected no --resume"),
            (("--results", "r", "--join", "--part", "1/2"), "expected no --part"),
            (("--results", "r", "--join", "--keep", "k"), "expected no --keep"),
            (("--results", "no-such", "--join"), "no-such: error: cannot read the folder"),
            (("--results", "few/a.yaml"), "few/a.yaml: "),
            *((("--part", text), "--part: expected I/N") for text in
              ("0/2", "3/2", "1", "/2", "1/", "1/0", "a/b", "-1/2", "1/2/3", "1/1000001", "", "1.0/2",
               "9" * 40 + "/2"))):
        code, out, err = bench.run("suite", "few", *words)
        bench.expect(f"{words} is refused", code == 2 and out == "" and said in err, (code, out, err))
        bench.expect(f"{words} makes nothing", not os.path.exists(bench.path("r")))
    code, out, err = bench.run("suite", "few", "--part", "7/9")
    bench.expect("a part without scenarios", code == 0 and "0 scenarios" in out, (code, out, err))


def kept_traces(bench):
    """A part that goes on replaces the traces that it left; another's result is not lost."""
    for name in ("a", "b"):
        bench.scenario(f"traced/{name}", 2, "verdict: outside-floor")
    words = ("suite", "traced", "--results", "traced-kept", "--keep", "traces", "--quiet")
    bench.run(*words)
    os.unlink(bench.path("traced-kept/b.json"))  # as a kill behind the trace leaves it
    bench.scenario("traced/a", 3, "verdict: outside-floor")
    shutil.copy(bench.path("traces/b.h5"), bench.path("traces/b.h5.part"))
    code, out, err = bench.run(*words, "--resume")
    bench.expect("--keep and --resume: what is trained again replaces its trace", code == 0
                 and "2 met" in out and "traces in traces" in out, (code, out, err))
    code, out, err = bench.run(*words[:4], "--keep", "none", "--resume", "--quiet")
    bench.expect("no traces are told where nothing was trained", code == 0 and "traces in" not in out
                 and os.listdir(bench.path("none")) == [], (code, out, err))
    good = bench.bytes("traced-kept/b.json")
    for where in ("traced-kept", "traces"):
        code, out, err = bench.run(*words, "--resume", "--junit", f"{where}/b.json")
        bench.expect(f"--junit in {where} is refused", code == 2 and out == ""
                     and "--junit: expected a file outside of the folder" in err
                     and bench.bytes("traced-kept/b.json") == good, (code, out, err))
    for at in ("new-kept", "new-traces"):
        before = sorted(os.listdir(bench.folder))
        code, out, err = bench.run("suite", "traced", "--results", "new-kept", "--keep", "new-traces", "--quiet",
                                   "--junit", f"{at}/x.xml")
        bench.expect(f"a suite that is refused leaves no folder ({at})", code == 2
                     and sorted(os.listdir(bench.folder)) == before, (code, out, err))
    os.unlink(bench.path("traced-kept/b.json"))
    os.symlink(bench.path("elsewhere.json"), bench.path("traced-kept/b.json"))
    code, out, err = bench.run(*words, "--overwrite")
    bench.expect("a link is no result, and nothing is written through it", code == 2
                 and "got no regular file" in err
                 and not os.path.exists(bench.path("elsewhere.json")), (code, out, err))
    os.unlink(bench.path("traced-kept/b.json"))


def another_part(bench):
    """Two processes train the same scenario: an error of one leaves the result of the other."""
    bench.scenario("twice/a", 600, "verdict: outside-floor")
    words = ("suite", "twice", "--results", "twice-kept", "--quiet")
    late = bench.start(*words, "--keep", "late")
    there = bench.wait_until(late, lambda: bench.updates("late/a.h5.part") > 3)
    children = bench.children(late)
    for child in children:
        os.kill(child, signal.SIGSTOP)
    code, out, err = bench.run(*words)
    good = bench.results("twice-kept")
    bench.expect("the other one ends", code == 0 and list(good) == ["a.json"], (code, out, err))
    for child in children:
        os.kill(child, signal.SIGKILL)
    out, err = late.communicate()
    bench.expect("the one whose child is killed is an error, and leaves the result", there
                 and late.returncode == 2 and "its process was ended by signal 9" in out
                 and bench.results("twice-kept") == good, (late.returncode, out, err))


def strange_name(bench):
    """JSON holds UTF-8 alone; the name is refused before anything is trained."""
    bench.scenario("strange/a", 2, "verdict: outside-floor")
    folder = os.fsencode(bench.path("strange"))
    os.rename(os.path.join(folder, b"a.yaml"), os.path.join(folder, b"l\xe9.yaml"))
    code, out, err = bench.run("suite", "strange", "--results", "strange-kept", "--quiet")
    bench.expect("a name that is not UTF-8", code == 2 and "name of a file in UTF-8" in out
                 and bench.results("strange-kept") == {}, (code, out, err))
    code, out, err = bench.run("suite", "strange", "--json")
    bench.expect("JSON that cannot hold a name is an error", code == 2 and out == ""
                 and "not UTF-8" in err, (code, out, err))


def edited_meanwhile(bench):
    """Data that change while they are trained on: no result is kept of either."""
    bench.scenario("edited/a", 400, rows="../edited.jsonl")
    shutil.copy(bench.path("rows.jsonl"), bench.path("edited.jsonl"))
    process = bench.start("suite", "edited", "--results", "edited-kept", "--keep", "edited-traces",
                          "--quiet")
    there = bench.wait_until(process, lambda: bench.updates("edited-traces/a.h5.part") > 3)
    with open(bench.path("edited.jsonl"), "a", encoding="utf-8") as file:
        file.write(ROW)
    out, err = process.communicate()
    bench.expect("rows that are edited meanwhile", there and process.returncode == 2
                 and "a file that it reads was changed" in out
                 and not bench.results("edited-kept"), (process.returncode, out, err))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twinstep-parts-") as folder:
        bench = Bench(options, folder)
        with open(bench.path("rows.jsonl"), "w", encoding="utf-8") as file:
            file.writelines('{"input_ids": %s, "labels": %s}\n' % (ids, ids) for ids in ROWS)
        make(bench, 500 if options.whole else 14)
        killed_parts(bench, random.Random(8))
        stale(bench)
        refusals(bench)
        kept_traces(bench)
        another_part(bench)
        strange_name(bench)
        edited_meanwhile(bench)
        print(f"{bench.wrong} wrong")
        return int(bench.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
