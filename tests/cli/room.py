#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a training needs of disk and memory, and what happens where that is not there.

    room.py BINARY LIBRARY [--whole] [--only sizes|peaks|noise|memory|full_disk]

LIBRARY is tests/cli/machine.c, which makes the program see another machine. The estimate of a trace
is held against real files, within 10 % and 0.2 MiB: of rows, of stored states, of noisy arms, of
few updates. What is written beside it (kept states after every update, saved models) and memory are
held against the most that there was at once: the disk told is 1 to 1.3 times that, the memory 0.95
to 1.4 times. What a floor file of 5,000 pairs takes is measured with --whole.
Disk and memory that are too small are refused before anything is written, with the numbers; limits
of control groups are read in versions 1 and 2. Then a small file system (tmpfs, in a name space of
users; skipped where there are none) runs full in the middle of a training: what was recorded can be
read, and gone on with to the very bytes of a training that was never disturbed."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

from long_runs import ROWS, SCENARIO

WITHIN, SLACK = 0.10, 0.2 * (1 << 20)
MODEL = "  model: {layers: 1, hidden: 32, heads: 2, mlp: 64, vocab: 16}\n"
# name: (lines that the scenario's model becomes, lines in front, options)
SIZES = {
    "rows": (None, "", ("--set", "steps=300")),
    "few": (None, "", ("--set", "steps=3")),
    "states": (MODEL, "", ("--set", "steps=30", "--checkpoint-every", "1")),
    "bare": (None, "", ("--set", "steps=300", "--set", "record.tensors=false", "--set",
                        "record.phases=false")),
    "noisy": (MODEL + "  numerics: {threads: 1, mode: shuffled, order_seed: free}\n",
              "floor: {replicates: 3}\n", ("--set", "steps=40")),
}
# Of models in which what is kept is larger than rows, (lines that the model becomes, what the
# scenario has in front, the test arm, options)
WIDE = "  model: {layers: 2, hidden: 96, heads: 4, mlp: 256, vocab: 16}\n"
WIDER = WIDE.replace("hidden: 96", "hidden: 256").replace("mlp: 256", "mlp: 688")
TINY = "  model: {layers: 1, hidden: 8, heads: 1, mlp: 8, vocab: 16}\n"
NOISY = "  numerics: {threads: 1, mode: shuffled, order_seed: free}\n"
PEAKS = {
    # the arms, then the repeat and the perturbed run in lockstep, hybrids that branch off each other
    "hybrids": (WIDE + "  clip: {max_norm: 0.5}\n", "attribution: {twin: true}\n",
                "{optimizer: {lr: 4e-7, beta2: 0.95}, schedule: {warmup: 3}}", ("--save-model", "saved")),
    # one run is both arms, and its repeat follows in this process
    "equal": (WIDER, "attribution: {twin: false}\n", "{}", ("--jobs", "1", "--save-model", "saved")),
    "held-out": (WIDE, "eval: {from: rows.jsonl}\nattribution: {twin: true}\n",
                 "{optimizer: {lr: 4e-7}}", ("--keep-every", "never", "--save-model", "saved")),
    "repeats": (WIDE + NOISY, "floor: {replicates: 3}\nattribution: {twin: false}\n",
                "{optimizer: {lr: 4e-7}}", ()),
    "intervals": (WIDE + NOISY, "floor: {replicates: 3}\nattribution: {replicates: 3}\n",
                  "{optimizer: {lr: 4e-7, beta2: 0.95}}", ()),
}
DISK_WITHIN, MEMORY_WITHIN = (1.0, 1.3), (0.95, 1.4)
SIZE = re.compile(r"needs about ([0-9.]+) (MiB|GiB)(?:, its kept states up to ([0-9.]+) (MiB|GiB))?"
                  r"(?:, saved models ([0-9.]+) (MiB|GiB))?, and its folder has ([0-9.]+) (MiB|GiB) free")
MEMORY = re.compile(r"up to ([0-9.]+) MiB of memory at once")
UNIT = {"MiB": 1 << 20, "GiB": 1 << 30}
GIB = 1 << 30


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.wrong = options, folder, []
        self.environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}

    def environment_of(self, machine):
        environment = dict(self.environment)
        if machine:
            environment["LD_PRELOAD"] = self.options.library
            environment.update({f"TWINSTEP_MACHINE_{key.upper()}": str(value)
                                for key, value in machine.items()})
        return environment

    def run(self, *command, prefix=(), **machine):
        return subprocess.run([*prefix, self.options.binary, *command], cwd=self.folder,
                              env=self.environment_of(machine), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=1800)

    def expect(self, what, true, done=None):
        if not true:
            self.wrong.append(what)
            said = "" if done is None else f": exit status {done.returncode}: {done.stderr}"
            print(f"room.py: {what}{said}", file=sys.stderr)

    def scenario(self, name, model=None, front="", test=None):
        text = SCENARIO
        if test is not None:
            text = text.replace("{optimizer: {lr: 4e-7}}", test, 1)
            text, front = text.replace("attribution: {twin: false}\n", front, 1), ""
        if model is not None:
            text = re.sub(r"  model: .*\n", lambda _: model, text)
        if model is not None and "numerics" in model:
            text = text.replace("  numerics: {threads: 1}\n", "", 1)
        with open(os.path.join(self.folder, f"{name}.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace("attribution:", front + "attribution:", 1))

    def nothing_written(self, name):
        return not [found for found in os.listdir(self.folder) if found.startswith(f"{name}.h5")]


def told(found):
    """Of a refusal, the bytes of all that it names."""
    return sum(float(found.group(i)) * UNIT[found.group(i + 1)] for i in (1, 3, 5) if found.group(i))


def sizes(bench):
    for name, (model, front, options) in SIZES.items():
        bench.scenario(name, model, front)
        command = ("run", f"{name}.yaml", "-o", f"{name}.h5", "--quiet", "--reproducible", *options)
        refused = bench.run(*command, free=1000)
        found = SIZE.search(refused.stderr)
        bench.expect(f"{name}: a full disk is refused with numbers",
                     refused.returncode == 2 and found and bench.nothing_written(name), refused)
        if not found:
            continue
        said = float(found.group(1)) * UNIT[found.group(2)]
        if name == "few":
            done = bench.run(*command, "--no-room-check", "--overwrite", free=1000)
            bench.expect(f"{name}: --no-room-check trains", done.returncode in (0, 1, 3), done)
            done = bench.run(*command, "--overwrite", free=0, blocks=0)
            bench.expect(f"{name}: a file system that does not tell its size is tried",
                         done.returncode in (0, 1, 3), done)
        done = bench.run(*command, "--overwrite", free=int(told(found) * 1.02))
        bench.expect(f"{name}: enough disk is enough", done.returncode in (0, 1, 3), done)
        real = os.path.getsize(os.path.join(bench.folder, f"{name}.h5"))
        print(f"{name}: {said / 2**20:.2f} MiB said, {real / 2**20:.2f} real: {said / real - 1:+.1%}")
        bench.expect(f"{name}: the estimate is within {WITHIN:.0%}",
                     abs(said - real) <= WITHIN * real + SLACK)


def elsewhere(bench):
    """Models that are saved on another file system than the trace need their own room there."""
    shared = "/dev/shm"
    if not os.access(shared, os.W_OK) or os.stat(shared).st_dev == os.stat(bench.folder).st_dev:
        print("saved elsewhere: skipped, there is one file system")
        return
    bench.scenario("away", WIDE.replace("hidden: 96", "hidden: 256"))
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        command = ("run", "away.yaml", "-o", "away.h5", "--quiet", "--set", "steps=1", "--keep-every",
                   "never", "--save-model", os.path.join(folder, "models"))
        refused = bench.run(*command, free=1000)
        trace = SIZE.search(refused.stderr)
        bench.expect("saved elsewhere: the trace alone is told", refused.returncode == 2 and trace
                     and not trace.group(5), refused)
        refused = bench.run(*command, free=int(told(trace) * 1.02))
        found = re.search(r"saved models need about ([0-9.]+) MiB, and their folder has", refused.stderr)
        bench.expect("saved elsewhere: the models are told", refused.returncode == 2 and found
                     and bench.nothing_written("away"), refused)
        done = bench.run(*command, free=1 << 30)
        bench.expect("saved elsewhere: trains", done.returncode == 1, done)
        real = sum(os.path.getsize(os.path.join(path, file)) for path, _, files in os.walk(folder)
                   for file in files)
        stands(bench, "saved elsewhere: disk", float(found.group(1)) * 2**20, real, DISK_WITHIN)


def peak_memory(bench, *command, **machine):
    """The most memory that a run has at once, in bytes; what a second process has is not in it."""
    process = subprocess.Popen([bench.options.binary, *command], cwd=bench.folder,
                               env=bench.environment_of(machine), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    bench.expect(f"{command[1]}: trains", process.returncode in (0, 1, 3))
    return usage.ru_maxrss * 1024


def peaks(bench):
    elsewhere(bench)
    for name, (model, front, test, options) in PEAKS.items():
        if not bench.options.whole and name not in ("hybrids", "equal"):
            continue
        bench.scenario(name, model, front, test)
        bench.scenario(f"{name}-small", model.replace(WIDER, TINY).replace(WIDE, TINY), front, test)
        outputs, peak = os.path.join(bench.folder, f"{name}-out"), os.path.join(bench.folder, "peak")
        os.mkdir(outputs)
        words = ["--overwrite", "--quiet", "--set", "steps=4", "--keep-every", "0",
                 *(f"{name}-out/{word}" if word == "saved" else word for word in options)]
        command = ["run", f"{name}.yaml", "-o", f"{name}-out/t.h5", *words]
        refused = bench.run(*command, free=1000)
        found = SIZE.search(refused.stderr)
        kept, saved = "never" not in options, "saved" in options
        bench.expect(f"{name}: what is beside the trace is told", refused.returncode == 2 and found
                     and bool(found.group(3)) == kept and bool(found.group(5)) == saved, refused)
        # One training for both: it is what this test costs.
        real = peak_memory(bench, *command, folder=outputs, peak=peak)
        with open(peak, encoding="utf-8") as file:
            stands(bench, f"{name}: disk", told(found), float(file.read()), DISK_WITHIN)
        os.unlink(peak)
        lacking = bench.run(*command, root=machine(bench, 100000, {}))
        found = MEMORY.search(lacking.stderr)
        bench.expect(f"{name}: memory is told", lacking.returncode == 2 and found, lacking)
        real -= peak_memory(bench, "run", f"{name}-small.yaml", "-o", f"{name}-out/t.h5", *words,
                            folder=outputs, peak=peak)
        os.unlink(peak)
        stands(bench, f"{name}: memory", float(found.group(1)) * 2**20, real, MEMORY_WITHIN)


def noise(bench):
    """Paths of all cases, and the floor file."""
    bench.scenario("noise", WIDE)
    bench.scenario("noise-small", TINY)
    words = ("--steps", "4", "--repeat", "1", "--modes", "shuffled,invariant", "--dtypes", "f32,bf16",
             "--quiet", "--overwrite", "-o", "noise.h5", "--pairs")
    lacking = bench.run("noise", "noise.yaml", *words, "2", root=machine(bench, 100000, {}))
    found = MEMORY.search(lacking.stderr)
    bench.expect("noise: memory is told", lacking.returncode == 2 and found
                 and bench.nothing_written("noise"), lacking)
    real = peak_memory(bench, "noise", "noise.yaml", *words, "2")
    real -= peak_memory(bench, "noise", "noise-small.yaml", *words, "2")
    stands(bench, "noise: memory", float(found.group(1)) * 2**20, real, MEMORY_WITHIN)
    refused = bench.run("noise", "noise-small.yaml", *words, "5000", free=1000)
    found = SIZE.search(refused.stderr)
    bench.expect("noise: the floor file is told", refused.returncode == 2 and found
                 and "the floor file needs" in refused.stderr, refused)
    many = "5000" if bench.options.whole else "2"  # a file that is more than its frame: 10 s
    done = bench.run("noise", "noise-small.yaml", *words, many, "--no-room-check", free=1000)
    bench.expect("noise: --no-room-check measures", done.returncode in (0, 1), done)
    if bench.options.whole:
        stands(bench, "noise: disk", told(found),
               os.path.getsize(os.path.join(bench.folder, "noise.h5")), DISK_WITHIN)


def stands(bench, what, said, real, within):
    print(f"{what}: {said / 2**20:.2f} MiB said, {real / 2**20:.2f} at most at once: {said / real:.2f} times")
    bench.expect(f"{what}: what is said is {within[0]} to {within[1]} times the most that there was",
                 within[0] * real <= said <= within[1] * real)


def machine(bench, available, files):
    """A folder with /proc and /sys of another machine."""
    root = tempfile.mkdtemp(dir=bench.folder)
    files = {"proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable: {available // 1024} kB\n",
             "proc/self/statm": "1 1 1 1 0 1 0\n", **files}
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)
    return root


def memory(bench):
    def v2(path, most, used, cache=0):
        return {f"sys/fs/cgroup{path}/memory.max": f"{most}\n",
                f"sys/fs/cgroup{path}/memory.current": f"{used}\n",
                f"sys/fs/cgroup{path}/memory.stat": f"anon 5\ninactive_file {cache}\n"}

    def v1(path, most, used, cache=0):
        return {f"sys/fs/cgroup/memory{path}/memory.limit_in_bytes": f"{most}\n",
                f"sys/fs/cgroup/memory{path}/memory.usage_in_bytes": f"{used}\n",
                f"sys/fs/cgroup/memory{path}/memory.stat": f"cache 7\ntotal_inactive_file {cache}\n"}

    group2, group1 = {"proc/self/cgroup": "0::/a/b\n"}, {"proc/self/cgroup": "4:memory:/a\n0::/\n"}
    small, this, control = 100000, "this machine has", "the control group of this process has"
    # name: (MemAvailable, files, what is said; None: it trains)
    cases = {
        "nothing is known": (GIB, {}, None),
        "MemAvailable": (small, {}, this),
        "version 2": (GIB, {**group2, **v2("/a/b", 10 * GIB, 10 * GIB - small)}, control),
        "version 2, the group around it": (GIB, {**group2, **v2("/a/b", "max", 0),
                                                 **v2("/a", GIB, GIB - small)}, control),
        "version 2, cache": (GIB, {**group2, **v2("/a/b", 10 * GIB, 10 * GIB - small, GIB)}, None),
        "version 2, no limit": (GIB, {**group2, **v2("/a/b", "max", 5)}, None),
        "version 2, seen from a container": (GIB, {**group2, **v2("", GIB, GIB - small)}, control),
        "version 1": (GIB, {**group1, **v1("/a", GIB, GIB - small)}, control),
        "version 1, cache": (GIB, {**group1, **v1("/a", GIB, GIB - small, GIB // 2)}, None),
        "version 1, no limit": (GIB, {**group1, **v1("/a", 2 ** 63 - 4096, 5)}, None),
    }
    bench.scenario("memory")
    command = ("run", "memory.yaml", "-o", "memory.h5", "--quiet", "--set", "steps=1")
    for name, (available, files, said) in cases.items():
        done = bench.run(*command, root=machine(bench, available, files))
        if said is None:
            bench.expect(f"{name}: trains", done.returncode == 1, done)
            if done.returncode == 1:
                os.unlink(os.path.join(bench.folder, "memory.h5"))
            continue
        bench.expect(f"{name}: is refused with numbers", done.returncode == 2 and said in done.stderr
                     and "MiB of memory at once" in done.stderr and bench.nothing_written("memory"),
                     done)
        all_the_same = bench.run(*command, "--no-room-check", root=machine(bench, available, files))
        bench.expect(f"{name}: --no-room-check trains", all_the_same.returncode == 1, all_the_same)
        if all_the_same.returncode == 1:
            os.unlink(os.path.join(bench.folder, "memory.h5"))


def full_disk(bench):
    """Trains on a tmpfs that is too small for the trace; the results are copied out of it."""
    bench.scenario("full", MODEL)
    options = ("run", "full.yaml", "--set", "steps=80", "--checkpoint-every", "10", "--quiet",
               "--reproducible")
    prefix = ("unshare", "--user", "--map-root-user", "--mount")
    if shutil.which("unshare") is None or subprocess.run(
            [*prefix, "true"], capture_output=True, check=False).returncode != 0:
        print("full disk: skipped, no name spaces of users here")
        return
    whole = bench.run(*options, "-o", "whole.h5")
    bench.expect("the undisturbed training ends", whole.returncode == 1, whole)
    size = os.path.getsize(os.path.join(bench.folder, "whole.h5"))
    disk, kept = os.path.join(bench.folder, "disk"), os.path.join(bench.folder, "kept")
    os.mkdir(disk)
    for part in (2, 4, 7, 9) if bench.options.whole else (4,):
        shutil.rmtree(kept, ignore_errors=True)
        script = (f"mount -t tmpfs -o size={size * part // 10} none {disk} && \"$@\" -o {disk}/full.h5"
                  f"; code=$?; cp -r {disk} {kept}; exit $code")
        done = bench.run(*options, "--no-room-check", prefix=(*prefix, "sh", "-c", script, "sh"))
        left = sorted(os.listdir(kept)) if os.path.isdir(kept) else []
        bench.expect(f"{part}/10 of the disk: ends with the system's reason and the way on",
                     done.returncode == 2 and left == ["full.h5.part"]
                     and "o space left on device" in done.stderr
                     and f"--resume {disk}/full.h5.part" in done.stderr, done)
        for verb in (("attribute", "kept/full.h5.part"),
                     ("export", "kept/full.h5.part", "--to", "csv", "-o", "rows.csv", "--overwrite")):
            read = bench.run(*verb)
            bench.expect(f"{part}/10 of the disk: {verb[0]} reads it", read.returncode in (0, 1, 3), read)
        with open(os.path.join(bench.folder, "rows.csv"), encoding="utf-8") as file:
            rows = len(file.readlines()) - 1
        on = bench.run(*options, "--resume", "kept/full.h5.part", "-o", "on.h5", "--overwrite")
        with open(os.path.join(bench.folder, "whole.h5"), "rb") as file:
            wanted = file.read()
        got = b""
        if os.path.exists(os.path.join(bench.folder, "on.h5")):
            with open(os.path.join(bench.folder, "on.h5"), "rb") as file:
                got = file.read()
        print(f"full disk: {part}/10 of {size} bytes: {rows} updates of the baseline kept")
        bench.expect(f"{part}/10 of the disk: gone on with to the same bytes",
                     on.returncode == 1 and rows > 0 and got == wanted, on)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", choices=("sizes", "peaks", "noise", "memory", "full_disk"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twinstep-room-") as folder:
        bench = Bench(options, folder)
        with open(os.path.join(folder, "rows.jsonl"), "w", encoding="utf-8") as file:
            file.writelines('{"input_ids": %s, "labels": %s}\n' % (ids, ids) for ids in ROWS)
        for name, part in (("sizes", sizes), ("peaks", peaks), ("noise", noise),
                           ("memory", memory), ("full_disk", full_disk)):
            if options.only in (None, name):
                part(bench)
        print(f"{len(bench.wrong)} wrong")
        return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
