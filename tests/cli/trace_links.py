#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts links into traces with h5py: none may lead a reader away from what the trace holds.

    trace_links.py BINARY [--whole]

Links to another file, and soft links, take the place of runs, columns, results and names in a trace
that `run` wrote. Its seals are taken off (and it is called version 1, which had none) or made anew by
the Python of docs/FOREIGN.md, so that it is the link that is refused and not the seal. The other file
is a trace with other numbers, a file that is not there, or a named pipe, on which a reader that
followed the link would wait for ever. A soft link where nobody reads is covered by the seal, its
target to the last byte. Without --whole each place has one of the three other files in turn, and
every place a soft link."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "FOREIGN.md")
PLACES = ("runs/test", "runs/test/steps", "runs/test/steps/loss", "runs/test/steps/check", "runs/test/steps/tensors",
          "runs/test/steps/tensors/tensor", "runs/test/steps/ledger", "runs/test/steps/ledger/seed",
          "pairs/baseline-test", "pairs/baseline-test/steps/distance", "attribution", "attribution/value",
          "verdict", "verdict/json", "complete", "runs", "snapshots", "snapshots/test", "snapshots/test/state")


def block(name):
    """The Python of the page that is kept in a file of this name."""
    with open(PAGE, encoding="utf-8") as page:
        return re.search(rf"<!-- file: {name} -->\n```python\n(.*?)```", page.read(), re.S).group(1)


class Bench:
    def __init__(self, binary, folder):
        self.binary, self.folder, self.tried = binary, folder, 0
        self.page = {"__name__": "seal"}
        exec(compile(block("seal.py"), "seal.py", "exec"), self.page)

    def say(self, *words):
        return subprocess.run([self.binary, *words], cwd=self.folder, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL, env={**os.environ, "OMP_WAIT_POLICY": "passive"})

    def change(self, source, change, sealed):
        """A copy x.h5 of a trace, changed through h5py, sealed anew or of version 1."""
        path = os.path.join(self.folder, "x.h5")
        shutil.copy(os.path.join(self.folder, source), path)
        with h5py.File(path, "r+", libver=("v110", "v110")) as file:
            change(file)
            if "seal" in file:
                del file["seal"]
            if sealed:
                self.page["write_seal"](file)
            elif file.attrs["twinstep_trace"] != 2:
                file.attrs.modify("twinstep_trace", 1)

    def refused(self, what, needle, *verbs):
        for verb in verbs:
            done = self.say(*verb)
            self.tried += 1
            if done.returncode != 2 or needle not in done.stderr.decode(errors="replace"):
                sys.exit(f"{what}: {' '.join(verb)}: expected status 2 and {needle!r}, got {done.returncode}: "
                         f"{done.stderr.decode(errors='replace')}")


# A trace has the same objects whatever the model's size.
SMALL = tuple(f"--set=common.model.{key}" for key in ("layers=1", "hidden=16", "mlp=32"))


def put(place, link):
    def change(file):
        if place in file:
            del file[place]
        file[place] = link
    return change


def try_ours(bench, whole):
    others = ("other.h5", "absent.h5", "pipe")
    verbs = (("attribute", "x.h5"), ("export", "x.h5", "--to", "csv", "-o", "-"), ("recover", "x.h5", "-o", "y.h5"))
    for number, place in enumerate(PLACES):
        stored = place.startswith("snapshots")
        asked = (("recover", "x.h5", "-o", "y.h5"), ("replay", "x.h5", "--from", "1", "--run", "test")) if stored else verbs
        for other in others if whole else (others[number % 3],):
            bench.change("a.h5", put(place, h5py.ExternalLink(other, "/" + place)), sealed=False)
            bench.refused(f"{place} in {other}", "got an external link", *(asked if other == "other.h5" else asked[:1]))
        bench.change("a.h5", put(place, h5py.SoftLink("/runs/baseline")), sealed=place != "complete")
        bench.refused(f"{place} elsewhere in the file", "got a soft link", asked[0])
    for place in ("extra", "runs/test/steps/extra", "env/extra"):
        bench.change("a.h5", put(place, h5py.ExternalLink("pipe", "/")), sealed=False)
        done = bench.say("attribute", "x.h5")
        if place != "runs/test/steps/extra" and done.returncode != 2:
            sys.exit(f"{place}: expected status 2, got {done.returncode}")


def try_sealed(bench):
    """A link in a sealed file whose seals were left as they are, so that they do not know it."""
    path = os.path.join(bench.folder, "x.h5")
    shutil.copy(os.path.join(bench.folder, "a.h5"), path)
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        file["runs/test/steps/extra"] = h5py.ExternalLink("pipe", "/")
    bench.refused("a link that nobody reads", "got an external link", ("attribute", "x.h5"))
    target = "/" + 600 * "a"
    bench.change("a.h5", put("arms/extra", h5py.SoftLink(target)), sealed=True)
    if bench.say("attribute", "x.h5").returncode not in (0, 1):
        sys.exit("a soft link where nobody reads was refused, although it is sealed")
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        del file["arms/extra"]
        file["arms/extra"] = h5py.SoftLink(target[:-1] + "b")
    bench.refused("another target", "are not those that were sealed", ("attribute", "x.h5"))


def try_foreign(bench):
    record = {"__name__": "record"}
    exec(compile(block("record.py"), "record.py", "exec"), record)
    record["write"](os.path.join(bench.folder, "f.h5"), list(record["train"](3, False)))
    for place in ("runs/main", "runs/main/steps", "runs/main/steps/loss", "complete"):
        bench.change("f.h5", put(place, h5py.ExternalLink("pipe", "/" + place)), sealed=False)
        bench.refused(f"a foreign trace, {place}", "", ("certify", "x.h5"))
    for link, sealed in ((h5py.ExternalLink("pipe", "/"), False), (h5py.SoftLink("/runs"), True)):
        bench.change("f.h5", put("extra", link), sealed)
        if bench.say("import", "--check", "x.h5").returncode != 0:
            sys.exit("a foreign trace with a link where nobody reads was refused")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twinstep-links-") as folder:
        bench = Bench(options.binary, folder)
        os.mkfifo(os.path.join(folder, "pipe"))
        for name, seed in (("a.h5", 1), ("other.h5", 2)):
            done = bench.say("run", "lr-set-before-step", "--quiet", "--set", "steps=2", "--checkpoint-every=1",
                             *SMALL, "--set", f"common.seed={seed}", "-o", name)
            if done.returncode not in (0, 1):
                sys.exit(f"run: {done.stderr.decode()}")
        try_ours(bench, options.whole)
        try_sealed(bench)
        try_foreign(bench)
    print(f"{bench.tried} links, all refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
