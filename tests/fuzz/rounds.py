#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a fuzz target that reads HDF5 for a time, in rounds: what HDF5 dies of is counted, not ours.

    rounds.py SECONDS TARGET FOUND CORPUS [OPTION]...

HDF5 1.10 has memory errors, so a target that reads traces ends after seconds or minutes; the program
reads them in a child for that reason (docs/decisions/foreign-files.md). A crash whose first frame
outside the sanitizer and the C library lies in libhdf5 is such a one: its input is removed and the
next round begins. So is an input with which HDF5 did not end in the time of one input (the child has a
limit of processor time, base/confined_filter.c). libFuzzer looks at the clock, and on a busy machine an
input may wait for longer than it works: one that was too late runs again alone, and is a finding only
if it takes too much time of the processor. Any other crash, leak or timeout is a finding, and ends the
test with status 1."""

import os
import re
import resource
import signal
import subprocess
import sys
import time

BROKE = re.compile(r"ERROR: (AddressSanitizer|libFuzzer: timeout)")
# Also what the sanitizer puts in the C library's place, whose frames have its plain names.
LIBRARY = re.compile(r"lib(c|asan|pthread)\.so|sanitizer|__interceptor|__asan|signal/|nptl/|stdlib/|string/"
                     r"|sysdeps|crtstuff| in (mem|str)[a-z]+ \(")


def in_hdf5(text):
    begin = BROKE.search(text)
    for line in text[begin.start():].splitlines() if begin else ():
        if re.match(r" +#\d+ ", line) and not LIBRARY.search(line):
            return "libhdf5" in line
    return False


def is_slow(target, artifact, seconds):
    """Whether the input takes more than so many seconds of the processor. One that waits for ever, as
    in a deadlock, takes none, so there is a limit by the clock, too, which no load explains."""
    try:
        done = subprocess.run([target, artifact], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False, timeout=20 * seconds, preexec_fn=lambda: resource.setrlimit(
                                  resource.RLIMIT_CPU, (seconds, seconds + 1)))
    except subprocess.TimeoutExpired:
        return True
    return done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


def main():
    seconds, target, found, corpus, *options = sys.argv[1:]
    end, rounds, runs, died, slow, waited, cover = time.monotonic() + float(seconds), 0, 0, 0, 0, 0, 0
    limit = next((int(word[9:]) for word in options if word.startswith("-timeout=")), 1200)
    prefix = os.path.join(os.path.dirname(found), os.path.basename(found) + "-")
    while (left := end - time.monotonic()) > 2:
        done = subprocess.run([target, found, corpus, f"-max_total_time={int(left)}", "-print_final_stats=1",
                               f"-artifact_prefix={prefix}", *options],
                              capture_output=True, text=True, errors="replace", check=False)
        rounds += 1
        runs += int((re.findall(r"number_of_executed_units: (\d+)", done.stderr) or ["0"])[-1])
        cover = max([cover, *map(int, re.findall(r" cov: (\d+) ", done.stderr))])
        if done.returncode == 0:
            continue
        late = "ERROR: libFuzzer: timeout" in done.stderr
        artifacts = re.findall(r"Test unit written to (\S+)", done.stderr)
        if late and artifacts and not any(is_slow(target, artifact, limit) for artifact in artifacts):
            waited += 1
        elif not in_hdf5(done.stderr):
            print(done.stderr[-6000:])
            sys.exit(f"a finding, in round {rounds}")
        else:
            died, slow = died + (not late), slow + late
        for artifact in artifacts:
            os.remove(artifact)
    print(f"{runs} inputs, {cover} edges, {died} deaths in HDF5, {slow} endless walks, {waited} that waited")


if __name__ == "__main__":
    main()
