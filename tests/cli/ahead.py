#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats and hybrids that children train ahead of their turn: the trace and the words of those that
one process trains in turn.

    ahead.py BINARY [traces | processes]

Traces of `run --jobs 3 --reproducible` must be those of `--jobs 1`, byte for byte: of exact and of
noisy floors, with held-out rows, hybrids that go on from others, sampled orders, and arms that never
part. A child that is killed costs time and nothing else. An interruption ends with 130, leaves no
child, and what it leaves can be gone on with; a parent that is killed leaves none either. Where
states are stored, threads race or a module runs, there are no children."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

import circumstances

UPDATES = 72
MODEL = [word for key in ("layers=1", "hidden=32", "heads=2", "mlp=64") for word in ("--set", f"common.model.{key}")]
SMALL = [*MODEL, "--set", "common.batch.size=2", "--set", "common.batch.micro=2"]
LONG = ["lr-set-before-step", *SMALL, "--set", f"steps={UPDATES}",
        "--set", f"common.schedule.total={UPDATES}", "--set", "arms.test.optimizer.weight_decay=0.2",
        "--set", "arms.test.optimizer.beta2=0.99", "--set", "record.tensors=false"]
SEVERAL = ["confounded", *SMALL, "--set", "steps=3", "--set", "floor.replicates=3",
           "--set", "attribution.replicates=2"]
CASES = {
    "three causes, noisy, and held-out rows": [*SEVERAL, "--set", "common.data.samples=12", "--set", "eval.from=rest",
                                               "--set", "eval.rows=8"],
    "two causes": ["h17-order-and-kernel"],
    "six causes, in sampled orders": ["six-differences", "--set", "steps=2"],
    "a hybrid that goes on": ["scheduler-not-restored"],
    "causes that cancel": ["causes-cancel"],
    "several that begin late": ["scheduler-not-restored", "--set", "arms.test.optimizer.beta2=0.9",
                                "--set", "arms.test.rng.data=advance 1 at 6"],
    "one cause": ["data-order"],
    "equal arms": ["null-pair"],
    "one arm in f64": ["null-pair", "--set", "arms.test.numerics.param=f64"],
}
# one difference that moves nothing: no decay at an LR of 0
INERT = ["--set", "common.optimizer.lr=0", "--set", "arms.test.optimizer.weight_decay=0.1"]
# each hybrid's chain must hold, from whichever run it goes on
REPLAYED = ("a hybrid that goes on", "several that begin late")


class Bench(circumstances.Bench):
    def check(self, true, said):
        self.expect(said, true)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *words, **how):
        return subprocess.Popen([self.options.binary, "run", *words, "--quiet", "--overwrite"],
                                cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)

    def run_to_end(self, *words):
        process = self.start(*words)
        out, err = process.communicate()
        return process.returncode, out.replace(words[-1], "TRACE"), err

    def bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def of(self, pid, task="children"):
        try:
            with open(f"/proc/{pid}/task/{pid}/{task}", encoding="ascii") as file:
                return file.read().split()
        except OSError:
            return []

    def copies(self, process):
        found = []
        for child in self.of(process.pid):
            try:
                with open(f"/proc/{child}/cmdline", "rb") as file:
                    if b"\0run\0" in file.read():
                        found.append(int(child))
            except OSError:
                pass
        return found

    def training(self, process):
        """Children that are copies of the process. The second process of a floor is one for a moment
        only: then it is started anew, with a command line of its own."""
        found = self.copies(process)
        if found:
            time.sleep(0.02)
        return [child for child in found if child in self.copies(process)]

    def wait_for_second(self, process):
        """The process started anew that trains what an exact floor repeats; None: there is none."""
        while process.poll() is None:
            for child in self.of(process.pid):
                try:
                    with open(f"/proc/{child}/cmdline", "rb") as file:
                        if b"rerun-config" in file.read():
                            return int(child)
                except OSError:
                    pass
            time.sleep(0.002)
        return None

    def wait_for_children(self, process, count):
        """None where the process ended before."""
        while process.poll() is None:
            found = self.training(process)
            if len(found) >= count:
                return found
            time.sleep(0.002)
        return None


def is_gone(pid):
    """A process that has ended and that nobody has asked about is gone, too."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def same(bench, name, words):
    alone = bench.run_to_end(*words, "--jobs", "1", "--reproducible", "-o", "1.h5")
    ahead = bench.run_to_end(*words, "--jobs", "3", "--reproducible", "-o", "3.h5")
    bench.check(alone[0] in (0, 1, 3), f"{name}: exit status {alone[0]}: {alone[2]}")
    lines = [[code, *out.splitlines(), err] for code, out, err in (alone, ahead)]
    bench.check(alone == ahead, f"{name}: --jobs 1 and 3 say "
                f"{next((pair for pair in zip(*lines) if pair[0] != pair[1]), lines)}")
    if alone[0] in (0, 1, 3):
        bench.check(bench.bytes("1.h5") == bench.bytes("3.h5"), f"{name}: other bytes")
    if name in REPLAYED:
        again = subprocess.run([bench.options.binary, "replay", "1.h5"], cwd=bench.folder, capture_output=True,
                               text=True, check=False)
        bench.check(again.returncode == 0, f"{name}: replay: {again.returncode}, {again.stderr}")


def killed_child(bench):
    words = [*LONG, "--reproducible"]
    alone = bench.run_to_end(*words, "--jobs", "1", "-o", "1.h5")
    process = bench.start(*words, "--jobs", "3", "-o", "3.h5")
    children = bench.wait_for_children(process, 2)
    bench.check(children is not None, "no two children trained hybrids")
    if children is not None:
        os.kill(children[0], signal.SIGKILL)
    out, err = process.communicate()
    bench.check(process.returncode == alone[0] and err == alone[2],
                f"a killed child: {process.returncode}, {err}")
    bench.check(out.replace("3.h5", "TRACE") == alone[1], f"a killed child: {out}")
    bench.check(bench.bytes("1.h5") == bench.bytes("3.h5"), "a killed child: other bytes")
    waiting(bench, alone)


def waiting(bench, alone):
    """Beside a child that trains two runs there is no core for a third and a fourth process where
    there are two: these begin when it has ended, however that comes. A child that is stopped has
    not ended, so they wait for it for ever."""
    for jobs, waits, signals in (("2", True, [signal.SIGCONT]), ("2", True, [signal.SIGKILL]),
                                 ("3", False, [signal.SIGCONT])):
        process = bench.start(*LONG, "--reproducible", "--jobs", jobs, "-o", "2.h5")
        floor = (bench.wait_for_children(process, 1) or [None])[0]
        if floor is None:
            process.communicate()
            bench.check(False, f"--jobs {jobs}: no child trained beside the arms")
            continue
        os.kill(floor, signal.SIGSTOP)
        second = bench.wait_for_second(process)
        for _ in range(200 if waits else 6000):
            if second is None or is_gone(second):
                break
            time.sleep(0.01)
        bench.check(second is not None and is_gone(second) != waits,
                    f"--jobs {jobs}: the second process {second} {'did not wait' if waits else 'waited'}")
        for each in signals:
            os.kill(floor, each)
        out, err = process.communicate()
        bench.check((process.returncode, out.replace("2.h5", "TRACE"), err) == alone,
                    f"--jobs {jobs}, {signals}: {process.returncode}, {err}")
        bench.check(bench.bytes("1.h5") == bench.bytes("2.h5"), f"--jobs {jobs}, {signals}: other bytes")


def set_aside(bench):
    """Where there are two processors, the first is the arms' alone while these train, and everybody's
    as soon as their process waits for a child. One that is stopped has not ended, so it waits. The
    second process, which shares a core with it, gives way to it."""
    two = sorted(os.sched_getaffinity(0))[:2]
    if len(two) < 2:
        return
    many = 5 * UPDATES
    process = bench.start(*LONG, "--set", f"steps={many}", "--set", f"common.schedule.total={many}",
                          "--jobs", "2", "-o", "aside.h5",
                          preexec_fn=lambda: os.sched_setaffinity(0, two))
    floor = (bench.wait_for_children(process, 1) or [None])[0]
    bench.check(floor is not None, "no child trained beside the arms")
    if floor is not None:
        os.kill(floor, signal.SIGSTOP)
        second = bench.wait_for_second(process)
        own = os.getpriority(os.PRIO_PROCESS, process.pid)
        for _ in range(1000):
            if second is None or os.getpriority(os.PRIO_PROCESS, second) == min(own + 1, 19):
                break
            time.sleep(0.01)
        bench.check(second is not None and os.getpriority(os.PRIO_PROCESS, second) == min(own + 1, 19),
                    f"the second process {second} does not give way")
        for wanted, when in (({two[1]}, "while the arms train"), (set(two), "when they have ended")):
            for _ in range(12000):
                if process.poll() is not None or os.sched_getaffinity(floor) == wanted:
                    break
                time.sleep(0.01)
            bench.check(process.poll() is None and os.sched_getaffinity(floor) == wanted,
                        f"a child has not the processors {wanted} {when}")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    bench.check(process.returncode == 130, f"set aside, and interrupted: {process.returncode}, {err}")
    bench.check(floor is None or is_gone(floor), f"set aside, and interrupted: {floor} is still there")


def interrupted(bench):
    process = bench.start(*LONG, "--jobs", "3", "--reproducible", "-o", "stopped.h5")
    children = bench.wait_for_children(process, 2) or []
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    bench.check(process.returncode == 130 and "interrupted after" in err,
                f"interrupted: {process.returncode}, {err}")
    bench.check(len(children) >= 2 and all(is_gone(child) for child in children),
                f"interrupted: {children} still run")
    code, _, err = bench.run_to_end(*LONG, "--jobs", "3", "--reproducible", "--resume",
                                    "stopped.h5.part", "-o", "on.h5")
    whole = bench.run_to_end(*LONG, "--jobs", "1", "--reproducible", "-o", "1.h5")
    bench.check(code == whole[0], f"gone on with: {code}, {err}")
    bench.check(bench.bytes("on.h5") == bench.bytes("1.h5"), "gone on with: other bytes")


def killed_parent(bench):
    """With so many updates that a child which is not killed would train on for longer."""
    process = bench.start(*LONG, "--set", f"steps={100 * UPDATES}",
                          "--set", f"common.schedule.total={100 * UPDATES}", "--jobs", "3", "-o", "gone.h5")
    children = bench.wait_for_children(process, 2) or []
    process.kill()
    process.wait()  # its output ends with the last child
    for _ in range(500):
        if all(is_gone(child) for child in children):
            break
        time.sleep(0.01)
    for child in children:
        if not is_gone(child):
            os.kill(child, signal.SIGKILL)
            bench.check(False, f"the parent was killed, and {child} trained on")
    process.communicate()
    bench.check(len(children) >= 2, f"the parent was killed beside {children}")


def killed_beside_a_young_second(bench):
    """A second process asks the system to be told of its parent's death. One whose parent died before
    has nobody to tell it, and would train to its end."""
    many = 1000 * UPDATES  # more than it could train while it is waited for
    for _ in range(5):
        process = bench.start(*LONG, "--set", f"steps={many}", "--set", f"common.schedule.total={many}",
                              "--jobs", "3", "-o", "gone.h5")
        second = bench.wait_for_second(process)
        if second is not None:
            os.kill(second, signal.SIGSTOP)
        process.kill()
        process.wait()
        bench.check(second is not None, "no second process trained beside the arms")
        if second is None:
            continue
        if not is_gone(second):
            os.kill(second, signal.SIGCONT)
        for _ in range(500):
            if is_gone(second):
                break
            time.sleep(0.01)
        else:
            os.kill(second, signal.SIGKILL)
            bench.check(False, f"the parent was killed, and the second process {second} trained on")
        process.communicate()


def interrupted_behind_the_floor(bench, *more):
    """Of equal arms nobody asks for the end of the rerun that a child trained, so it is neither opened
    nor kept, and who goes on does without it, too."""
    words = ["null-pair", *SMALL, "--set", f"steps={UPDATES}", "--set",
             f"common.schedule.total={UPDATES}", *more, "--reproducible"]
    whole = bench.run_to_end(*words, "--jobs", "1", "-o", "1.h5")
    process = bench.start(*words, "--jobs", "3", "-o", "stopped.h5")
    second = bench.wait_for_second(process)
    bench.check(second is not None, "no second process trained beside equal arms")
    if second is not None:
        os.kill(second, signal.SIGSTOP)
        while process.poll() is None and bench.copies(process):
            time.sleep(0.01)
        time.sleep(0.5)  # until it has taken what the child left, and waits
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    bench.check(process.returncode == 130, f"equal arms, interrupted: {process.returncode}, {err}")
    code, out, err = bench.run_to_end(*words, "--jobs", "3", "--resume", "stopped.h5.part", "-o", "on.h5")
    bench.check((code, out) == whole[:2], f"equal arms, gone on with: {code}, {out}, {err}")
    bench.check(code != whole[0] or bench.bytes("on.h5") == bench.bytes("1.h5"),
                "equal arms, gone on with: other bytes")


def none(bench, name, *more):
    """Where what is recorded depends on the process, this one trains all."""
    words = [*LONG, "--set", "steps=20", "--set", "common.schedule.total=20", *more]
    process = bench.start(*words, "-o", "none.h5")
    children = bench.wait_for_children(process, 1)
    _, err = process.communicate()
    bench.check(children is None, f"{name}: children {children}")
    bench.check(process.returncode in (0, 1, 3), f"{name}: {process.returncode}, {err}")


def traces(bench):
    for name, words in CASES.items():
        same(bench, name, [*MODEL, *words])


def processes(bench):
    killed_child(bench)
    set_aside(bench)
    interrupted(bench)
    killed_parent(bench)
    killed_beside_a_young_second(bench)
    interrupted_behind_the_floor(bench)
    interrupted_behind_the_floor(bench, *INERT)  # beside a perturbed run
    none(bench, "one job", "--jobs", "1")
    none(bench, "unknown memory", "--jobs", "3", "--no-room-check")
    none(bench, "stored states", "--jobs", "3", "--checkpoint-every", "20")


PARTS = {"traces": traces, "processes": processes}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("part", nargs="?", choices=PARTS, help="default: both")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for part in PARTS if options.part is None else (options.part,):
            PARTS[part](bench)
        return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
