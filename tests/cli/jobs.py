#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several trainings at once: the bytes of those that come in turn.

    jobs.py BINARY LIBRARY [--whole]

LIBRARY is tests/cli/machine.c. Table, JSON, JUnit XML and traces of --jobs 3 are those of --jobs 1,
with scenarios that end in another order than they begin, that miss, and that cannot be loaded or
trained. So are text and trace of a run whose repeats train beside the arms. A child that is killed,
or that somebody else asks to end, is an error of its scenario alone. An interruption, of the suite or
of all its processes as a terminal sends it, ends with 130, leaves no process and readable files.
What may depend on timing has no neighbours, and what has no memory beside others waits. The number of
cores obeys affinity, cpu.max and its forerunner, and `noise` means these by all. Threads look for a
moment before they sleep where the machine has processors to spare, and do what the user says.
--whole: more numbers of jobs, threads and cores; without, one of each kind."""

import argparse
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

import circumstances
from long_runs import ROWS, SCENARIO
from room import MEMORY, machine

LONG = 100000  # updates; such a training ends because it is told to
SECONDS = re.compile(r" +[0-9.]+$", re.M)
SUM = re.compile(r" in [0-9.]+ s:")


class Bench(circumstances.Bench):
    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command, root=None, cores=None, **more):
        environment = dict(self.environment)
        for key, value in (("ROOT", root), ("CORES", cores)):
            if value is not None:
                environment.update({"LD_PRELOAD": self.options.library,
                                    f"TWINSTEP_MACHINE_{key}": str(value)})
        return subprocess.Popen([self.options.binary, *command], cwd=self.folder, env=environment,
                                stdin=subprocess.DEVNULL, text=True,
                                **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})

    def scenario(self, name, steps, expect="", numerics="threads: 1", rows="../rows.jsonl"):
        text = SCENARIO.replace("name: long\n", f"name: {os.path.basename(name)}\nsteps: {steps}\n")
        text = text.replace("rows.jsonl", rows).replace("threads: 1", numerics)
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        if "/" not in name:
            text = text.replace("../rows.jsonl", "rows.jsonl")
        with open(self.path(f"{name}.yaml"), "w", encoding="utf-8") as file:
            file.write(text + (f"expect: {{{expect}}}\n" if expect else ""))

    def bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def children(self, process):
        """Process ids of those that train: what a child starts for its own is not among them."""
        try:
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                return [int(word) for word in file.read().split()]
        except FileNotFoundError:
            return []

    def started_anew(self, process):
        """Those children that are no copies of the process: the second process of a floor."""
        found = []
        for child in self.children(process):
            try:
                with open(f"/proc/{child}/cmdline", "rb") as file:
                    found += [child] if b"rerun-config" in file.read() else []
            except OSError:
                pass
        return found

    def wait_until(self, process, true):
        """Gives up when the process has ended, never by the clock."""
        while not true():
            if process.poll() is not None:
                return bool(true())
            time.sleep(0.002)
        return True

    def updates(self, name):
        """Updates of the baseline in a live file. Asking takes processor time, which those who are waited
        for need, too."""
        time.sleep(0.03)
        code, out, _ = self.run("export", name, "--to", "csv") if os.path.exists(
            self.path(name)) else (2, "", "")
        return out.count("\n") - 1 if code == 0 else 0


def masked(text):
    """Without the seconds, which are the one thing that may differ."""
    return SUM.sub(" in S s:", SECONDS.sub(" S", text))


def without_seconds(value):
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def same_bytes(bench):
    """The first takes longest, so that the others end before it where they can."""
    bench.scenario("mixed/a-long", 14, "verdict: outside-floor, cause: schedule")
    bench.scenario("mixed/b-none", 3)
    bench.scenario("mixed/c-missed", 3, "verdict: identical")
    bench.scenario("mixed/d-no-rows", 3, rows="../no-such-rows.jsonl")
    bench.scenario("mixed/f-racing", 3, numerics="threads: 1, mode: atomic")
    bench.scenario("mixed/g-met", 6, "verdict: outside-floor")
    with open(bench.path("mixed/e-broken.yaml"), "w", encoding="utf-8") as file:
        file.write("twinstep: 1\nstepz: 3\n")
    said, traces = [], []
    for jobs in ("1", "3", "2") if bench.options.whole else ("1", "3"):
        keep, xml = f"kept{jobs}", f"{jobs}.xml"
        code, out, err = bench.run("suite", "mixed", "--jobs", jobs, "--keep", keep, "--reproducible",
                                   "--junit", xml)
        names = sorted(os.listdir(bench.path(keep)))
        said.append((code, masked(out).replace(keep, "kept"), err,
                     re.sub(r'time="[^"]*"', "", bench.bytes(xml).decode())))
        traces.append({name: bench.bytes(f"{keep}/{name}") for name in names})
    code, out, err, _ = said[0]
    bench.expect("one at a time: errors, a miss and the rest", code == 2 and err == ""
                 and "7 scenarios in S s: 2 met, 1 missed, 2 errors, 2 without an expect block" in out
                 and "no-such-rows.jsonl" in out and "e-broken.yaml:2:1: error: unknown key" in out,
                 said[0])
    bench.expect("one at a time: traces of what was trained", [name[0] for name in traces[0]]
                 == ["a", "b", "c", "f", "g"], list(traces[0]))
    for i, jobs in list(enumerate((1, 3, 2)))[1:len(said)]:
        bench.expect(f"--jobs {jobs}: the same words", said[i] == said[0], (said[i], said[0]))
        bench.expect(f"--jobs {jobs}: the same traces", traces[i] == traces[0],
                     [name for name in traces[0] if traces[i].get(name) != traces[0][name]])
    found = [without_seconds(json.loads(bench.run("suite", "mixed", "--json", "--jobs", jobs)[1]))
             for jobs in ("1", "3")]
    bench.expect("--jobs 3: the same JSON", found[0] == found[1] and len(found[0]["scenarios"]) == 7,
                 found)


def killed_child(bench):
    bench.scenario("killed/a", LONG)
    bench.scenario("killed/b", 3, "verdict: outside-floor")
    process = bench.start("suite", "killed", "--quiet", "--jobs", "2", "--keep", "dead")
    there = bench.wait_until(process, lambda: os.path.exists(bench.path("dead/b.h5"))
                             and os.path.exists(bench.path("dead/a.h5.part"))
                             and len(bench.children(process)) == 1)
    for child in bench.children(process):
        os.kill(child, signal.SIGKILL)
    out, err = process.communicate()
    bench.expect("a child that is killed is an error of its scenario", there
                 and process.returncode == 2 and err == ""
                 and "a: error: its process was ended by signal 9" in out
                 and re.search(r"^b +outside-floor .* met ", out, re.M)
                 and "1 met, 0 missed, 1 errors" in out, (process.returncode, out, err))


def stray_signals(bench):
    """The signal by which the suite asks its children to end may come from somebody else."""
    bench.scenario("stray/a", LONG)
    bench.scenario("stray/b", 3, "verdict: outside-floor")
    process = bench.start("suite", "stray", "--quiet", "--jobs", "2", "--keep", "strayed")
    there = bench.wait_until(process, lambda: os.path.exists(bench.path("strayed/b.h5"))
                             and bench.updates("strayed/a.h5.part") > 3
                             and len(bench.children(process)) == 1)
    for child in bench.children(process):
        os.kill(child, signal.SIGUSR1)
    out, err = process.communicate()
    bench.expect("a child that somebody else asks to end is an error of its scenario", there
                 and process.returncode == 2 and err == "" and "  interrupted after" in out
                 and "1 met, 0 missed, 1 errors" in out, (process.returncode, out, err))
    process = bench.start("suite", "stray", "--quiet", "--jobs", "1", "--keep", "strayed-too")
    there = bench.wait_until(process, lambda: bench.updates("strayed-too/a.h5.part") > 3)
    os.kill(process.pid, signal.SIGUSR1)
    out, err = process.communicate()
    bench.expect("the suite that somebody else asks has no verdict", there
                 and process.returncode == -signal.SIGUSR1, (process.returncode, out, err))


def interruptions(bench):
    for name in ("a", "b", "c"):
        bench.scenario(f"long/{name}", LONG)
    parts = ("a.h5.part", "b.h5.part")
    for what, to_children, number in (("of the suite", False, signal.SIGINT),
                                      ("of all its processes", True, signal.SIGINT),
                                      ("of all, to end", True, signal.SIGTERM)):
        keep = f"cut{number}{to_children:d}"
        process = bench.start("suite", "long", "--quiet", "--jobs", "2", "--keep", keep)
        bench.expect(f"interruption {what}: both train at once", bench.wait_until(
            process, lambda: all(bench.updates(f"{keep}/{part}") > 3 for part in parts)))
        children = bench.children(process)
        for pid in (*(children if to_children else ()), process.pid):
            os.kill(pid, number)
        out, err = process.communicate()
        bench.expect(f"interruption {what}: 130 and the text", process.returncode == 130
                     and err == "twinstep: error: interrupted after 0 of 3 scenarios\n"
                     and out.count("\n") == 1, (process.returncode, out, err))
        bench.expect(f"interruption {what}: no process is left", len(children) == 2 and not any(
            os.path.exists(f"/proc/{pid}") for pid in children), children)
        bench.expect(f"interruption {what}: only the two that ran left something",
                     sorted(os.listdir(bench.path(keep))) == list(parts), os.listdir(bench.path(keep)))
        for part in parts:  # closed in order: recover has nothing to cut off
            code, out, err = bench.run("recover", f"{keep}/{part}")
            bench.expect(f"interruption {what}: {part} is whole", code == 0, (code, out, err))


def stop(process):
    process.send_signal(signal.SIGINT)
    process.communicate()


def second_process(bench):
    """It begins with the arms where a core and memory are free, and only there."""
    bench.scenario("pair", 30)
    said = []
    for jobs in ("1", "2"):
        found = bench.run("run", "pair.yaml", "--jobs", jobs, "-o", "pair.h5", "--reproducible",
                          "--overwrite")
        said.append((*found, bench.bytes("pair.h5")))
    bench.expect("run --jobs 2: the words and the trace of --jobs 1", said[0] == said[1]
                 and said[0][0] == 1 and "one of them started anew, bit-equal" in said[0][1], said[0][:3])
    bench.scenario("fast", LONG, numerics="threads: 1, mode: fast")
    bench.scenario("wide", LONG, numerics="threads: 2")
    bench.scenario("forever", LONG)
    needs = memory_of(bench, "forever.yaml")
    cases = (("forever", 1, 3.0, 0), ("forever", 2, 3.0, 1), ("forever", 2, 1.2, 0), ("fast", 2, 3.0, 0),
             ("wide", 2, 3.0, 0), ("wide", 4, 3.0, 1))
    for name, jobs, share, count in cases if bench.options.whole else cases[1:-1]:
        what = f"{name}, {jobs} cores, {share} of the memory"
        part = f"{name}.h5.part"
        if os.path.exists(bench.path(part)):
            os.unlink(bench.path(part))
        process = bench.start("run", f"{name}.yaml", "--jobs", str(jobs), "--quiet",
                              root=machine(bench, int(share * needs), {}))
        there = bench.wait_until(process, lambda: bench.updates(part) > 3)
        children = bench.children(process)
        stop(process)
        bench.expect(f"{what}: {count} beside the arms", there and len(children) == count, children)
        bench.expect(f"{what}: 130, and no process is left", process.returncode == 130 and not any(
            os.path.exists(f"/proc/{pid}") for pid in children), process.returncode)
    bench.scenario("killed-pair", 100)
    process = bench.start("run", "killed-pair.yaml", "--jobs", "3", "--quiet")
    bench.wait_until(process, lambda: bench.started_anew(process))
    for child in bench.started_anew(process):
        os.kill(child, signal.SIGKILL)
    out, err = process.communicate()
    bench.expect("a second process that is killed is told", process.returncode == 2 and out == ""
                 and "second process: ended by signal 9" in err, (process.returncode, out, err))


def no_neighbours(bench):
    """B would be there long before 20 updates of A if it began with it."""
    bench.scenario("apart/b", LONG)
    for mode in ("atomic", "fast") if bench.options.whole else ("fast",):
        bench.scenario("apart/c", LONG, numerics=f"threads: 1, mode: {mode}")
        process = bench.start("suite", "apart", "--jobs", "3", "--keep", f"apart-{mode}")
        there = bench.wait_until(process, lambda: bench.updates(f"apart-{mode}/c.h5.part") > 20)
        names = os.listdir(bench.path(f"apart-{mode}"))
        stop(process)
        bench.expect(f"mode {mode} runs first, and alone", there and names == ["c.h5.part"], names)
    cases = (((1, 2), 2, "b"), ((2, 2, 1), 3, "ac"), ((2, 1), 2, "a"), ((1, 2), 3, "ab"))
    for threads, jobs, begin in cases if bench.options.whole else cases[:2]:
        folder, files = f"wide{len(threads)}{threads[0]}{jobs}", [f"{name}.h5.part" for name in begin]
        for name, count in zip("abc", threads):
            bench.scenario(f"{folder}/{name}", LONG, numerics=f"threads: {count}")
        process = bench.start("suite", folder, "--jobs", str(jobs), "--keep", f"kept-{folder}")
        there = bench.wait_until(process, lambda: all(bench.updates(f"kept-{folder}/{name}") > 20
                                                      for name in files))
        names = sorted(os.listdir(bench.path(f"kept-{folder}")))
        stop(process)
        bench.expect(f"{threads} threads on {jobs} cores: what has most begins, and what fits beside it",
                     there and names == files, names)


def memory_of(bench, scenario):
    """Bytes that a scenario needs, asked of the program itself on a machine that has nothing."""
    code, _, err = bench.run("run", scenario, "-o", "never.h5", root=machine(bench, 4096, {}))
    found = MEMORY.search(err)
    bench.expect(f"{scenario}: the needs are told", code == 2 and found is not None, err)
    return float(found.group(1)) * (1 << 20) if found else 0


def memory(bench):
    for name in ("a", "b"):
        bench.scenario(f"memory/{name}", LONG)
    needs = memory_of(bench, "memory/a.yaml")
    for what, share, count in (("beside each other", 3.0, 2), ("one after the other", 1.5, 1)):
        keep = f"memory{share}"
        process = bench.start("suite", "memory", "--quiet", "--jobs", "2", "--keep", keep,
                              root=machine(bench, int(share * needs), {}))
        there = bench.wait_until(process, lambda: count == sum(
            bench.updates(f"{keep}/{name}.h5.part") > 20 for name in ("a", "b")))
        names = os.listdir(bench.path(keep))  # whoever asks first is the first
        stop(process)
        bench.expect(f"memory for {share} of them: {what}", there and len(names) == count, names)
    for name in ("a", "b"):
        bench.scenario(f"memory/{name}", 2, "verdict: outside-floor")
    needs = memory_of(bench, "memory/a.yaml")  # of fewer updates, so less
    for what, share, said in (("they wait for each other", 1.5, "2 met, 0 missed, 0 errors"),
                              ("none fits", 0.5, "0 met, 0 missed, 2 errors")):
        code, out, err = bench.run("suite", "memory", "--jobs", "2",
                                   root=machine(bench, int(share * needs), {}))
        bench.expect(f"memory: {what}", said in out and err == "", (code, out, err))


def cores(bench):
    def usable(files, **more):
        out = bench.run("env", "--json", root=machine(bench, 1 << 40, files), **more)[1]
        return json.loads(out)["usable_cores"]

    here = len(os.sched_getaffinity(0))
    first = min(os.sched_getaffinity(0))
    group2, group1 = {"proc/self/cgroup": "0::/a/b\n"}, {"proc/self/cgroup": "3:cpu,cpuacct:/a\n0::/\n"}
    v1 = "sys/fs/cgroup/cpu/a/cpu.cfs_"
    cases = {
        "no limit": ({}, here),
        "version 2": ({**group2, "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1),
        "version 2, more than there are": (
            {**group2, "sys/fs/cgroup/a/b/cpu.max": "99900000 100000\n"}, here),
        "version 2, none": ({**group2, "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, here),
        "version 2, less than one": ({**group2, "sys/fs/cgroup/a/b/cpu.max": "5000 100000\n"}, 1),
        "version 2, the group around it": ({**group2, "sys/fs/cgroup/a/cpu.max": "100000 100000\n"}, 1),
        "version 1": ({**group1, v1 + "quota_us": "100000\n", v1 + "period_us": "100000\n"}, 1),
        "version 1, none": ({**group1, v1 + "quota_us": "-1\n", v1 + "period_us": "100000\n"}, here),
    }
    for name, (files, wanted) in cases.items():
        found = usable(files)
        bench.expect(f"cores, {name}: {wanted}", found == str(wanted), found)
    found = usable({}, preexec_fn=lambda: os.sched_setaffinity(0, {first}))
    bench.expect("cores, one by affinity", found == "1", found)
    bench.scenario("noisy", 1)
    out = bench.run("noise", "noisy.yaml", "--steps", "1", "--repeat", "1", "--json", cores=3)[1]
    found = re.findall('"variant": "([0-9]+) instead of 1"', out)
    bench.expect("noise, 3 of 64 processors: 1 and all of them", found == ["2", "3"], found)
    for text in ("0", "1025", "-1", "two", "", "1.5"):
        code, out, err = bench.run("suite", "mixed", "--jobs", text)
        bench.expect(f"--jobs {text!r} is refused", code == 2 and out == "" and
                     '--jobs: expected a number from 1 to 1024, got "' + text + '"\n' in err, (code, err))


def waiting(bench):
    """What the program sets for the threads of a training, told by the process itself. The machine
    has 64 processors here, so 16 that others use are a quarter; one of those that run is this one."""
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")

    def variables(loadavg, **theirs):
        root = machine(bench, 1 << 40, {} if loadavg is None else {
            "proc/loadavg": loadavg, "proc/loadavg.busy": "0.00 0.00 0.00 65/80 7\n"})
        environment = {key: value for key, value in bench.environment.items() if key not in names}
        environment.update({"LD_PRELOAD": bench.options.library, "TWINSTEP_MACHINE_ROOT": root,
                            "TWINSTEP_MACHINE_CORES": "2", **theirs})
        found = {}

        def look():
            process = subprocess.Popen([bench.options.binary, "run", "waits.yaml", "--quiet"],
                                       cwd=bench.folder, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            def has_started_anew():
                try:
                    with open(f"/proc/{process.pid}/environ", encoding="utf-8") as file:
                        found.update(line.split("=", 1) for line in file.read().split("\0")
                                     if "=" in line)
                except ProcessLookupError:  # it has just ended
                    return False
                return "OMP_WAIT_POLICY" in found
            try:
                return bench.wait_until(process, has_started_anew)
            finally:
                process.kill()
                process.wait()
        # a child of the one before, which dies a moment after it, may still hold its file
        any(look() for _ in range(20))
        return tuple(found.get(name) for name in names)

    bench.scenario("waits", LONG)
    spare, busy = ("passive", "1000"), ("passive", None)
    cases = {
        "nobody else runs": ("0.00 0.00 0.00 1/80 7\n", {}, spare),
        "just less than a quarter": ("9.00 9.00 9.00 16/80 7\n", {}, spare),
        "a quarter": ("0.00 0.00 0.00 17/80 7\n", {}, busy),
        "all": ("0.00 0.00 0.00 65/80 7\n", {}, busy),
        "all for seven readings": ("0.00 0.00 0.00 1/80 7\n", {"TWINSTEP_MACHINE_BUSY": "7"}, spare),
        "all for eight readings": ("0.00 0.00 0.00 1/80 7\n", {"TWINSTEP_MACHINE_BUSY": "8"}, busy),
        "the system does not say": (None, {}, busy),
        "not what the system says": ("0.00 0.00 0.00 none\n", {}, busy),
        "not even this one": ("0.00 0.00 0.00 0/80 7\n", {}, busy),
        "the user's policy": ("0.00 0.00 0.00 1/80 7\n", {"OMP_WAIT_POLICY": "active"}, ("active", None)),
        "the user's count": ("0.00 0.00 0.00 1/80 7\n", {"GOMP_SPINCOUNT": "5"}, ("passive", "5")),
        "the user's, both": ("0.00 0.00 0.00 1/80 7\n", {"OMP_WAIT_POLICY": "passive",
                                                        "GOMP_SPINCOUNT": "0"}, ("passive", "0")),
    }
    for name, (loadavg, theirs, wanted) in cases.items():
        found = variables(loadavg, **theirs)
        bench.expect(f"waiting, {name}", found == wanted, found)


def terminal(bench):
    """The line says which scenarios run, and is gone at the end."""
    ours, theirs = pty.openpty()
    process = bench.start("suite", "long", "--jobs", "2", stderr=theirs)
    os.close(theirs)
    shown = ""
    while not re.search(r"0 of 3 scenarios done, now: [ab] \d+ %, [ab] \d+ %", shown):
        try:
            shown += os.read(ours, 65536).decode()
        except OSError:  # it has ended
            break
    process.send_signal(signal.SIGINT)
    try:
        while True:
            shown += os.read(ours, 65536).decode()
    except OSError:
        pass
    process.communicate()
    bench.expect("progress of all that run", "suite: 0 of 3 scenarios done, now: " in shown
                 and shown.endswith("\r\x1b[Ktwinstep: error: interrupted after 0 of 3 scenarios\r\n"),
                 repr(shown[-300:]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("--only")
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twinstep-jobs-") as folder:
        bench = Bench(options, folder)
        with open(bench.path("rows.jsonl"), "w", encoding="utf-8") as file:
            file.writelines('{"input_ids": %s, "labels": %s}\n' % (ids, ids) for ids in ROWS)
        for part in (same_bytes, killed_child, stray_signals, interruptions, second_process, no_neighbours, memory,
                     cores, waiting, terminal):
            if options.only in (None, part.__name__):
                start = time.monotonic()
                part(bench)
                print(f"{part.__name__}: {time.monotonic() - start:.1f} s")
        print(f"{bench.wrong} wrong")
        return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
