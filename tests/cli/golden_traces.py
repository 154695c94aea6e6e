#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads traces that earlier programs wrote: every later one must say the same of them.

    golden_traces.py BINARY

Versions 1 and 3 are those of `run null-pair --quiet --reproducible --set steps=2 --set
record.tensors=false --set record.phases=false --set attribution.twin=false --set
common.model.layers=1`, by the program of commit 59bf7049 and by that of 2026-11-26; their
root is the same, since no bit of a training has moved in between. Version 2 is a recording of the
Python package (tests/golden/record). A version that is raised leaves its last trace here."""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
# file: updates, last root of the first run, seal, other commands that must end with status 0
TRACES = {
    "traces/version-1.h5.gz": (2, "85f7c90bea119bdb1869f8448e7ecf9d836580056c0ec4af6c0c2d774312e489", "none",
                               (("attribute", "x.h5"), ("replay", "x.h5"), ("recover", "x.h5", "-o", "y.h5"),
                                ("certify", "y.h5"), ("export", "x.h5", "--to", "csv"))),
    "traces/version-3.h5.gz": (2, "85f7c90bea119bdb1869f8448e7ecf9d836580056c0ec4af6c0c2d774312e489", "whole",
                               (("attribute", "x.h5"), ("replay", "x.h5"), ("recover", "x.h5", "-o", "y.h5"),
                                ("certify", "y.h5"), ("export", "x.h5", "--to", "csv"))),
    "record/racing_a.h5.gz": (10, "7a43b85dc815fc5c84495f16009a5c9ee4b33e4da6e8cc83924053d05b16e6a9", "none",
                              (("import", "--check", "x.h5"), ("export", "x.h5", "--to", "csv"))),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    options = parser.parse_args()
    for name, (updates, root, seal, commands) in TRACES.items():
        with tempfile.TemporaryDirectory(prefix="twinstep-golden-") as folder:
            with gzip.open(os.path.join(GOLDEN, name)) as packed, open(os.path.join(folder, "x.h5"), "wb") as file:
                file.write(packed.read())

            def say(*words):
                done = subprocess.run([options.binary, *words], cwd=folder, capture_output=True, timeout=300,
                                      stdin=subprocess.DEVNULL, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
                if done.returncode != 0:
                    sys.exit(f"{name}: {' '.join(words)}: {done.returncode}: {done.stderr.decode()}")
                return done.stdout

            told = json.loads(say("certify", "x.h5", "--json"))
            found = (told["updates"], told["root"], told["seal"], told["chain"])
            if found != (updates, root, seal, "sound"):
                sys.exit(f"{name}: expected {(updates, root, seal, 'sound')}, got {found}")
            for words in commands:
                say(*words)
    print(f"{len(TRACES)} traces, all read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
