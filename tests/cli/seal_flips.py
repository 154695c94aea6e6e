#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flips bits of sealed traces, one at a time: each must be refused or change nothing that is said.

    seal_flips.py BINARY [--whole] [--part K/N]

The traces are one that `run` wrote, one that `recover` made of it (--whole), a floor file, and one that the
Python of docs/FOREIGN.md wrote and sealed. Of each class of bytes (a dataset of runs, whichever run
it belongs to, is a class; so is a dataset anywhere else) some bits are flipped, all 14 lowest bits
of `attribution/closure`, and bits anywhere in the file. What is compared is what the program says
of the file: exit status 2 with a text, or status and output as before. A flip anywhere may hit
HDF5's own structures, and HDF5 1.10 has died of one, in a process of its own (base/confined.h): that
is told like any other refusal, and counted for itself. A flip in a seal itself, of which
one in each is always taken, must be refused. The seals that the C code wrote must be those that the
page's Python computes, rows of more than a MiB too. --part K/N takes every Nth of the other flips from the Kth on (from 0) of each
file."""

import argparse
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
from faults import part_of

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "FOREIGN.md")
SEED = 22


def block(name):
    """The Python of the page that is kept in a file of this name."""
    with open(PAGE, encoding="utf-8") as page:
        return re.search(rf"<!-- file: {name} -->\n```python\n(.*?)```", page.read(), re.S).group(1)


def say(options, *words):
    done = subprocess.run([options.binary, *words], capture_output=True, timeout=300,
                          stdin=subprocess.DEVNULL, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    return done.returncode, done.stdout, done.stderr


def places(path, options):
    """Class of bytes: list of (offset, length) in the file."""
    found = {"anywhere": [(0, os.path.getsize(path))]}

    def visit(name, item):
        if not isinstance(item, h5py.Dataset) or item.id.get_storage_size() == 0:
            return
        parts = name.split("/")
        if parts[0] in ("runs", "pairs", "snapshots"):
            parts[1] = "*"
        ends = found.setdefault("/".join(parts), [])
        if item.chunks is not None and "steps" in parts and not options.whole:
            return                              # rows: tests/determinism/test_trace_damage.c
        if item.chunks is None:
            ends.append((item.id.get_offset(), item.id.get_storage_size()))
        else:
            row = item.dtype.itemsize * item.size // item.shape[0]
            first = item.id.get_chunk_info(0)
            ends.append((first.byte_offset, min(first.size, row * min(item.chunks[0], item.shape[0]))))

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def flips_of(path, options, rng):
    flips = []
    classes = {name: ends for name, ends in places(path, options).items() if ends}
    for name, ends in sorted(classes.items()):
        many = (500 if options.whole else 8) if name == "anywhere" else 12 if options.whole else 1
        for _ in range(many):
            begin, length = rng.choice(ends)
            flips.append((name, begin + rng.randrange(length), rng.randrange(8)))
        if name == "attribution/closure":
            flips += [(name, ends[0][0] + byte, bit) for byte in (0, 7, 8, 15, 16, 22, 23)
                      for bit in (0, 4)]
    return flips


def flips_of_seals(path):
    """A bit of the opening seal, and one of the other."""
    with h5py.File(path, "r") as file:
        begin, length = file["seal"].id.get_offset(), file["seal"].id.get_storage_size()
    return [("seal", begin + at, 3) for at in (5, length // 2 + 5)]


def verbs_of(options, kind, path):
    if kind == "foreign":
        more = (("certify", path, "--json"), ("export", path, "--to", "csv")) if options.whole else ()
        return (("import", "--check", path, "--json"), *more)
    if kind == "floor":
        return (("attribute", os.path.join(options.folder, "run", "x.h5"), "--floor", path, "--json"),)
    more = (("certify", path, "--run", "test", "--json"),) if options.whole else ()
    return (("attribute", path, "--json"), *more)


def try_one(options, kind, data, flip, reference):
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = os.path.join(folder, "x.h5")
        bytes_ = bytearray(data)
        bytes_[flip[1]] ^= 1 << flip[2]
        with open(path, "wb") as file:
            file.write(bytes_)
        refused, died = True, False
        for words, before in zip(verbs_of(options, kind, path), reference):
            status, output, error = say(options, *words)
            output = output.replace(folder.encode(), b"")
            if status == 2 and b"broke its reader" in error:
                died = True
            if status == 2 and error.strip():
                continue
            if status == 1 and b'"chain": "broken"' in output:
                continue
            refused = False
            if (status, output) != before:
                return f"{words[0]}: status {status}, other output"
        return "died" if died else "refused" if refused else "same"


def try_file(options, kind, path, pool, rng):
    with open(path, "rb") as file:
        data = file.read()
    folder = os.path.dirname(path)
    reference = []
    for words in verbs_of(options, kind, path):
        status, output, error = say(options, *words)
        if status not in (0, 1, 3):
            sys.exit(f"{kind}: {' '.join(words)}: {status}: {error.decode()}")
        reference.append((status, output.replace(folder.encode(), b"")))
    flips = flips_of(path, options, rng)[options.part[0]::options.part[1]]
    flips += flips_of_seals(path)
    jobs = [pool.submit(try_one, options, kind, data, flip, reference) for flip in flips]
    ends = [job.result() for job in jobs]
    wrong = [(flip, end) for flip, end in zip(flips, ends)
             if end not in (("refused",) if flip[0] == "seal" else ("refused", "same", "died"))]
    print(f"{kind:8s} {len(flips):5d} flips in {len({name for name, _, _ in flips})} classes: "
          f"{ends.count('refused')} refused, {ends.count('same')} the same output, {ends.count('died')} refused after a death in HDF5, "
          f"{len(wrong)} wrong",
          flush=True)
    for (name, at, bit), end in wrong[:20]:
        print(f"  {name}: byte {at} bit {bit}: {end}")
    return len(flips), len(wrong)


def check_python(kind, path, seal):
    with h5py.File(path, "r") as file:
        last = b"complete" if file["complete"][()] == 1 else b"unfinished"
        made = bytes(seal(file, b"opening")) + bytes(seal(file, last))
        if made != bytes(file["seal"][:]):
            sys.exit(f"{kind}: the page's Python computes other seals than the file has")


def make(options, page):
    files = {kind: os.path.join(options.folder, kind, "x.h5") for kind in ("run", "recover", "floor", "foreign")}
    for path in files.values():
        os.mkdir(os.path.dirname(path))
    small = [f"--set=common.model.{key}" for key in ("layers=1", "hidden=16", "mlp=32")]
    commands = (("run", "lr-set-before-step", *small, "--quiet", "--set", "steps=2", "--reproducible",
                 "-o", files["run"]),
                ("recover", files["run"], "-o", files["recover"]),
                ("noise", "lr-set-before-step", *small, "--steps=2", "--repeat=2", "--pairs=9", "--quiet",
                 "--reproducible", "-o", files["floor"]))
    for words in commands:
        status, _, error = say(options, *words)
        if status not in (0, 1):
            sys.exit(f"{' '.join(words)}: {error.decode()}")
    record = {"__name__": "record"}
    exec(compile(block("record.py"), "record.py", "exec"), record)
    record["write"](files["foreign"], list(record["train"](3, False)))
    with h5py.File(files["foreign"], "r+", libver=("v110", "v110")) as file:
        page["write_seal"](file)
    return files


def check_long_rows(options, page, foreign):
    """Rows of more than a piece (1 MiB) go into the seal by parts: the page's Python has them whole."""
    path = os.path.join(options.folder, "long.h5")
    shutil.copy(foreign, path)
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        for name, shape in (("two", (2, 300000)), ("three", (2, 3, 120000)), ("wide", (1, 2, 280000))):
            numbers = np.arange(np.prod(shape), dtype="<f4").reshape(shape)
            file.create_dataset(f"long/{name}", data=numbers)
        del file["seal"]
        page["write_seal"](file)
        last = {name: item.id.get_offset() + item.id.get_storage_size() - 8
                for name, item in file["long"].items()}
    status, _, error = say(options, "import", "--check", path)
    if status != 0:
        sys.exit(f"long rows: status {status}: {error.decode()}")
    for name, at in last.items():
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            for value in (byte ^ 1, byte):
                file.seek(at)
                file.write(bytes([value]))
                file.flush()
                status, _, error = say(options, "import", "--check", path)
                if (status, b"results are not" in error) != ((2, True) if value != byte else (0, False)):
                    sys.exit(f"long rows: {name}: status {status}: {error.decode()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--part", type=part_of, default=(0, 1), metavar="K/N")
    options = parser.parse_args()
    page = {"__name__": "seal"}
    exec(compile(block("seal.py"), "seal.py", "exec"), page)
    total = bad = 0
    with tempfile.TemporaryDirectory(prefix="twinstep-seal-") as options.folder:
        files = make(options, page)
        check_long_rows(options, page, files["foreign"])
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for kind, path in files.items():
                if kind == "recover" and not options.whole:
                    continue
                check_python(kind, path, page["seal"])
                tried, wrong = try_file(options, kind, path, pool, random.Random(SEED))
                total, bad = total + tried, bad + wrong
    print(f"{total} flips, {bad} of them changed what is said")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
