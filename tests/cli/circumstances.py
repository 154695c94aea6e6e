#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same training under other circumstances: the same bytes and the same words, or a refusal.

    circumstances.py BINARY LIBRARY [--whole]

LIBRARY is tests/cli/machine.c. Without HOME and TMPDIR, without any variable, with ones that lead
nowhere, in a Turkish and in a German locale (made here; skipped without localedef and its sources),
with a clock that runs backwards, without locks of files, started by the dynamic linker, from a tree
that is read-only and without /proc (both skipped
without name spaces of users), two suites at once that keep their traces in one folder, a suite of
many scenarios, a trace on a file system of another machine that is read while it is written, and
one that another process replaces. --whole: 200 scenarios, and 2 GiB of output."""

import argparse
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from long_runs import ROWS, SCENARIO

NFS, LUSTRE = 0x6969, 0x0BD00BD0
SPACE = ("unshare", "--user", "--map-root-user", "--mount")


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.wrong = options, folder, 0
        self.environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}

    def start(self, *command, environment=None, prefix=(), cwd=None, **machine):
        environment = dict(self.environment if environment is None else environment)
        if machine:
            environment["LD_PRELOAD"] = self.options.library
            environment.update({f"TWINSTEP_MACHINE_{key.upper()}": str(value)
                                for key, value in machine.items()})
        return subprocess.Popen([*prefix, self.options.binary, *command], cwd=cwd or self.folder,
                                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, *command, **more):
        process = self.start(*command, **more)
        out, err = process.communicate(timeout=3600)
        return process.returncode, out, err

    def expect(self, what, true, said=""):
        self.wrong += not true
        if not true:
            print(f"{os.path.basename(sys.argv[0])}: {what}: {said}", file=sys.stderr)

    def digest(self, name):
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        except OSError:
            return "no file"

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def train(bench, **more):
    """Status, words and digest of a training; the trace is removed."""
    code, out, err = bench.run("run", "tree/one.yaml", "--set", "steps=2", "--reproducible", "--quiet",
                               "-o", "x.h5", **more)
    digest = bench.digest("x.h5")
    if os.path.exists(os.path.join(bench.folder, "x.h5")):
        os.unlink(os.path.join(bench.folder, "x.h5"))
    return code, out, err, digest


def locales(bench):
    """Locales that localedef makes in a folder of its own."""
    made = os.path.join(bench.folder, "locales")
    os.mkdir(made)
    for name in ("tr_TR", "de_DE"):
        if shutil.which("localedef") is None or not os.path.exists(f"/usr/share/i18n/locales/{name}"):
            print(f"locale {name}: skipped, no localedef or no sources here")
            continue
        subprocess.run(["localedef", "-f", "UTF-8", "-i", name, os.path.join(made, f"{name}.UTF-8")],
                       capture_output=True, check=False)  # it warns by its exit status
        environment = {**bench.environment, "LOCPATH": made, "LC_ALL": f"{name}.UTF-8"}
        point = subprocess.run(["locale", "decimal_point"], env=environment, capture_output=True,
                               text=True, check=False).stdout.strip()
        bench.expect(f"locale {name} is in force", point == ",", f"the decimal point is {point!r}")
        yield f"locale {name}", {"environment": environment}


def circumstances(bench):
    without = {key: value for key, value in bench.environment.items()
               if key not in ("HOME", "TMPDIR", "TEMP", "TMP")}
    yield "no HOME, no TMPDIR", {"environment": without}
    yield "no variable at all", {"environment": {}}
    yield "HOME and TMPDIR lead nowhere", {"environment": {**without, "HOME": "/nowhere/at/all",
                                                           "TMPDIR": "/nowhere/at/all"}}
    yield from locales(bench)
    yield "a clock that runs backwards", {"back": 3600}
    yield "NFS without a lock service", {"locks": errno.ENOLCK}
    yield "a file system without locks", {"locks": errno.EOPNOTSUPP}
    loader = "/lib64/ld-linux-x86-64.so.2"
    if os.path.exists(loader):
        yield "started by the dynamic linker", {"prefix": (loader,)}
    if shutil.which("unshare") is None or subprocess.run([*SPACE, "true"], capture_output=True,
                                                         check=False).returncode != 0:
        print("read-only tree: skipped, no name spaces of users here")
        return
    script = 'mount --bind tree tree && mount -o remount,bind,ro tree && ! touch tree/x 2> /dev/null && exec "$@"'
    yield "a read-only tree", {"prefix": (*SPACE, "sh", "-c", script, "sh")}
    script = 'mount -t tmpfs none /proc && ! test -e /proc/self && exec "$@"'
    yield "no /proc", {"prefix": (*SPACE, "sh", "-c", script, "sh")}


def suites(bench):
    """Two at once, each of which keeps its traces in the folder that the other one uses."""
    folder = os.path.join(bench.folder, "suite")
    os.mkdir(folder)
    count = 200 if bench.options.whole else 12
    for i in range(count):
        text = SCENARIO.replace("name: long\n", f"name: s{i:03}\nsteps: 1\n").replace("rows.jsonl",
                                                                                    "../tree/rows.jsonl")
        bench.write(f"suite/s{i:03}.yaml", text.replace("4e-7", f"{2 * i + 3}e-8")
                    + "expect: {verdict: outside-floor}\n")
    code, out, err = bench.run("suite", "suite", "--json", "--quiet")
    found = json.loads(out) if code == 0 else {}
    listed = len(next((value for value in found.values() if isinstance(value, list)), []))
    bench.expect(f"{count} scenarios in a suite", code == 0 and listed == count,
                 f"exit status {code}, {listed} results: {err}")
    alone = bench.run("suite", "suite", "--reproducible", "--quiet", "--keep", "alone")
    wanted = {name: bench.digest(f"alone/{name}") for name in os.listdir(
        os.path.join(bench.folder, "alone"))}
    bench.expect("a suite keeps its traces", alone[0] == 0 and len(wanted) == count, alone[2])
    command = ("suite", "suite", "--reproducible", "--quiet", "--keep", "both")
    both = [bench.start(*command), bench.start(*command)]
    said = ["".join(process.communicate(timeout=3600)) for process in both]
    codes = [process.returncode for process in both]
    got = {name: bench.digest(f"both/{name}") for name in os.listdir(
        os.path.join(bench.folder, "both"))}
    bench.expect("two suites at once: every trace is whole, whoever wrote it", got == wanted,
                 f"{sorted(set(got) ^ set(wanted))} {said}")
    bench.expect("two suites at once: who came second says so", set(codes) <= {0, 2} and all(
        code == 0 or "exists" in text or "writes it now" in text for code, text in zip(codes, said)),
                 f"{codes} {said}")


def networks(bench):
    """A trace that is read while it is written, on file systems of other machines."""
    command = ("run", "tree/one.yaml", "--set", "steps=4000", "-o", "live.h5")
    writer = bench.start(*command, type=NFS)
    part = os.path.join(bench.folder, "live.h5.part")
    here = (0, "", "")
    for _ in range(600):
        if os.path.exists(part):
            here = bench.run("export", "live.h5.part", "--to", "csv")
            if here[0] == 0 and here[1].count("\n") > 2:
                break
        time.sleep(0.1)
    bench.expect("a live trace on a local disk is read", here[0] == 0, here[2])
    code, _, err = bench.run("export", "live.h5.part", "--to", "csv", type=NFS)
    bench.expect("a live trace on NFS is refused", code == 2 and "lies on NFS" in err
                 and "wait for its run" in err, f"exit status {code}: {err}")
    code, _, err = bench.run("export", "live.h5.part", "--to", "csv", type=LUSTRE)
    bench.expect("a live trace on Lustre is read", code == 0, f"exit status {code}: {err}")
    writer.kill()
    told = writer.communicate(timeout=600)[1]
    bench.expect("run says that NFS cannot be read from meanwhile",
                 "lies on NFS, where a trace cannot be read while it is written" in told, told)
    code, _, err = bench.run("export", "live.h5.part", "--to", "csv", type=NFS)
    bench.expect("a killed trace on NFS is read", code == 0, f"exit status {code}: {err}")
    code, _, err = bench.run("run", "tree/one.yaml", "--set", "steps=1", "-o", "y.h5", type=LUSTRE)
    bench.expect("run says what Lustre must be mounted with", code == 1 and "lies on Lustre" in err, err)
    code, _, err = bench.run("run", "tree/one.yaml", "--set", "steps=1", "-o", "z.h5")
    bench.expect("run says nothing on a local disk", code == 1 and err == "", err)


def replaced(bench):
    """Another process puts its file in the place of a live one, after the run has looked whether it is
    still its own and before it gets its name: nothing of that name is called finished."""
    for more in ((), ("--overwrite",)):
        bench.write("other", "the trace of another run")
        code, out, err = bench.run("run", "tree/one.yaml", "--set", "steps=1", "-o", "taken.h5", *more,
                                   swap=os.path.join(bench.folder, "other"))
        left = os.path.exists(os.path.join(bench.folder, "taken.h5"))
        bench.expect("a live trace that is replaced at the end", code == 2 and out == ""
                     and "was replaced by another process when the run had ended" in err
                     and left == bool(more), f"exit status {code}, left {left}: {err}")
        for name in ("taken.h5", "taken.h5.part"):
            if os.path.exists(os.path.join(bench.folder, name)):
                os.unlink(os.path.join(bench.folder, name))


def large(bench):
    """More than 2 GiB of stored states, of which every one can be read."""
    model = "  model: {layers: 2, hidden: 256, heads: 4, mlp: 512, vocab: 16}\n"
    bench.write("tree/large.yaml", SCENARIO.replace(SCENARIO[SCENARIO.index("  model:"):SCENARIO.index(
        "  batch:")], model))
    code, _, err = bench.run("run", "tree/large.yaml", "--set", "steps=40", "--checkpoint-every", "1",
                             "-o", "large.h5", "--quiet")
    size = os.path.getsize(os.path.join(bench.folder, "large.h5")) if code == 1 else 0
    bench.expect("2 GiB of output", code == 1 and size > 2 << 30, f"exit status {code}, {size}: {err}")
    code, _, err = bench.run("replay", "large.h5", "--from", "39")
    bench.expect("its last state is read", code == 0, err)
    code, _, err = bench.run("attribute", "large.h5")
    bench.expect("its verdict is read", code == 1, err)
    os.unlink(os.path.join(bench.folder, "large.h5"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--networks", action="store_true", help="these alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twinstep-circumstances-") as folder:
        bench = Bench(options, folder)
        os.mkdir(os.path.join(folder, "tree"))
        bench.write("tree/one.yaml", SCENARIO)
        bench.write("tree/rows.jsonl", "".join(
            json.dumps({"input_ids": ids, "labels": ids}) + "\n" for ids in ROWS))
        if options.networks:
            networks(bench)
            replaced(bench)
            print(f"{bench.wrong} wrong")
            return 1 if bench.wrong else 0
        reference = train(bench)
        bench.expect("the reference", reference[0] == 1, reference)
        for name, more in circumstances(bench):
            got = train(bench, **more)
            bench.expect(name, got == reference, got)
            print(f"{name}: {'equal' if got == reference else 'another result'}")
        suites(bench)
        networks(bench)
        replaced(bench)
        if options.whole:
            large(bench)
        print(f"{bench.wrong} wrong")
        return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
