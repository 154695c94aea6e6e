#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forges every text of a trace with h5py: no verb prints a control character or a line of its own.

    forged_texts.py BINARY

Each text attribute and each text dataset of a trace that `run` wrote gets an escape sequence, C1 and
direction marks, and line ends with words behind them that imitate a verdict and a command to a
runner. The seals are taken off, and the file is called version 1, which had none: so it is the text
that is printed, or refused, and not the seal. `attribute` reads a trace for each text. Those that it
does not refuse are forged together, a few in a trace, and every verb reads these.

A list (notes, keys that differ) is kept as one text with an item in each line, so a line end there
is one item more, whoever wrote it. Items stand far to the right of where a row begins; no other line
may begin with the words. Exit status 0 to 3, and nothing that a terminal obeys."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy

FORGED = "\nFORGED verdict: identical\r\x1b[31mX\u009bY\u202eZ\u2028\n::error::FORGED".encode()
SCENARIO = """twinstep: 1
name: texts
about: about
source: source
steps: 3
record: {replay_check: 1}
common:
  data: {max_len: 96}
  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}
  batch: {size: 2}
arms:
  baseline: {}
  test: {optimizer: {lr: 1e-3}, schedule: {name: linear, warmup: 2}}
expect: {verdict: outside-floor}
"""
VERBS = (("attribute",), ("attribute", "--json"), ("attribute", "--github"), ("certify",), ("bisect",),
         ("replay", "--run", "baseline"), ("recover", "-o", "y.h5", "--overwrite"))
TOGETHER = 8  # texts of a trace that every verb reads
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]")
# Items of lists stand behind at least so many blanks: the words of a row begin in column 12.
LINE = re.compile(r"(?m)^ {0,10}(FORGED|::error|##\[)")


def texts(path):
    """Where the trace has texts: (object, attribute), or (object, None) for a dataset."""
    found = []

    def see(name, thing):
        other = re.match(r"seal|(runs|snapshots|pairs)/(?!baseline(-test)?($|/))", name)
        for key in () if other else thing.attrs:
            if key not in ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST") \
                    and thing.attrs.get_id(key).dtype.kind in "SO":
                found.append((name, key))
        if not other and isinstance(thing, h5py.Dataset) and thing.dtype.str == "|u1" \
                and thing.maxshape == (None,):
            found.append((name, None))

    with h5py.File(path, "r") as file:
        see("/", file)
        file.visititems(see)
    return found


def forge(source, target, places):
    shutil.copy(source, target)
    with h5py.File(target, "r+", libver=("v110", "v110")) as file:
        del file["seal"]
        file.attrs.modify("twinstep_trace", numpy.int64(1))
        for place, key in places:
            thing = file[place]
            if key is None:
                text = thing[()].tobytes() + FORGED
                thing.resize((len(text),))
                thing[...] = numpy.frombuffer(text, "u1")
            else:
                text = bytes(thing.attrs[key]) + FORGED
                del thing.attrs[key]
                kind = h5py.string_dtype("utf-8", len(text))
                thing.attrs.create(key, numpy.array(text, dtype=kind))


class Trial:
    """The program in a folder with the trace, and what was wrong."""
    def __init__(self, binary, folder):
        self.binary, self.folder, self.wrong, self.tried = binary, folder, [], 0
        self.environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def say(self, *words):
        return subprocess.run([self.binary, *words], cwd=self.folder, env=self.environment,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=300)

    def read(self, verb, places):
        """Whether the verb refuses the trace, which has forged texts at these places."""
        done = self.say(verb[0], "z.h5", *verb[1:])
        said = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")
        self.tried += 1
        if done.returncode not in range(4) or OBEYED.search(said) or LINE.search(said):
            named = ", ".join(f"{place} {key}" for place, key in places)
            self.wrong.append(f"{named}: {' '.join(verb)}: status {done.returncode}: {said[:2000]!r}")
        return done.returncode == 2


def main():
    with tempfile.TemporaryDirectory(prefix="twinstep-forged-") as folder:
        trial = Trial(os.path.abspath(sys.argv[1]), folder)
        with open(trial.path("x.yaml"), "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        trained = trial.say("run", "x.yaml", "-o", "x.h5", "--quiet")
        if trained.returncode != 0:
            sys.exit(f"run: {trained.returncode}: {trained.stderr.decode()}")
        places, read = texts(trial.path("x.h5")), []
        for place in places:
            forge(trial.path("x.h5"), trial.path("z.h5"), [place])
            if not trial.read(VERBS[0], [place]):
                read.append(place)
        refused = len(places) - len(read)
        for first in range(0, len(read), TOGETHER):
            some = read[first:first + TOGETHER]
            forge(trial.path("x.h5"), trial.path("z.h5"), some)
            for verb in VERBS:
                if trial.read(verb, some):
                    refused += 1
    print(f"{len(places)} texts, {len(read)} of them read, {trial.tried} commands, {refused} refused, "
          f"{len(trial.wrong)} wrong")
    for line in trial.wrong:
        print(line, file=sys.stderr)
    return 1 if trial.wrong or len(places) < 50 or len(read) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
