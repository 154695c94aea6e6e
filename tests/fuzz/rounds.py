#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a fuzz target for a time of the processor, in rounds: what HDF5 dies of is counted, not ours.

    rounds.py SECONDS TARGET FOUND CORPUS [OPTION]...

SECONDS are those that the target had, however many others share the machine.

HDF5 1.10 has memory errors, so a target that reads traces ends after seconds or minutes; the program
reads them in a child for that reason (docs/decisions/foreign-files.md). A crash whose first frame
outside the sanitizer and the C library lies in libhdf5 is such a one: its input is removed and the
next round begins. So is an input for which HDF5 asks at once for more memory than -rss_limit_mb, and
so is an input with which HDF5 did not end in the time of one input (the child has a
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
import tempfile
import time

BROKE = re.compile(r"ERROR: (AddressSanitizer|libFuzzer: (timeout|out-of-memory))")
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


def had_so_far(process):
    """Seconds of the processor that a process has had; 0 once it has ended."""
    try:
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


stopped = []  # a SIGTERM came: what there is is counted, and the test fails


def had_by_children():
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def one_round(command, left):
    """Runs the target until it ends by itself or has had its time, and is interrupted then. Returns
    its exit status (0 after an interruption), what it printed, and the time that it had."""
    before, is_over = had_by_children(), False
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        with subprocess.Popen(command, stdout=said, stderr=said) as process:
            while process.poll() is None:
                is_over = is_over or bool(stopped) or had_so_far(process) >= left
                if is_over:  # more than once: a target that begins does not hear it yet
                    process.send_signal(signal.SIGINT)
                time.sleep(0.5)
        said.seek(0)
        text = said.read()
    status = 0 if (is_over or stopped) and "run interrupted" in text else process.returncode
    return status, text, had_by_children() - before


def main(folder):
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    os.environ["TMPDIR"] = folder  # inputs are files, and one that ends the target leaves its own
    seconds, target, found, corpus, *options = sys.argv[1:]
    left, rounds, runs, died, slow, waited, cover = float(seconds), 0, 0, 0, 0, 0, 0
    limit = next((int(word[9:]) for word in options if word.startswith("-timeout=")), 1200)
    prefix = os.path.join(os.path.dirname(found), os.path.basename(found) + "-")
    while left > 2 and not stopped:
        status, said, had = one_round([target, found, corpus, "-print_final_stats=1",
                                       f"-artifact_prefix={prefix}", *options], left)
        rounds, left = rounds + 1, left - had
        runs += int((re.findall(r"number_of_executed_units: (\d+)", said) or ["0"])[-1])
        cover = max([cover, *map(int, re.findall(r" cov: (\d+) ", said))])
        if status == 0:
            break
        late = "ERROR: libFuzzer: timeout" in said
        artifacts = re.findall(r"Test unit written to (\S+)", said)
        if late and artifacts and not any(is_slow(target, artifact, limit) for artifact in artifacts):
            waited += 1
        elif not in_hdf5(said):
            print(said[-6000:])
            sys.exit(f"a finding, in round {rounds}, after {float(seconds) - left:.0f} s of the processor")
        else:
            died, slow = died + (not late), slow + late
        for artifact in artifacts:
            os.remove(artifact)
    print(f"{float(seconds) - left:.0f} s of the processor, {runs} inputs, {cover} edges, {died} deaths in HDF5, "
          f"{slow} endless walks, {waited} that waited")
    if stopped:
        sys.exit("stopped before the end")


if __name__ == "__main__":
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="twinstep-fuzz-", dir=memory) as there:
        main(there)
