#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what `lr fit` takes of columns that no schedule explains.

    failing_fits.py --binary TWINSTEP [--rows 10000] [--verb fit|doctor] [--keep FOLDER]

A fit that fails has tried everything, so it is the dearest one. Each kind of column is drawn by a
formula with an own seed and printed with 3, 6 and 16 significant digits; each log is asked
without and with its number of updates (--steps). Printed are the user and system time of the
process (getrusage) and the answer's first line, then how many columns take more than a second, and
how many were answered with status 0, whose search ended sooner."""
import argparse
import math
import os
import pathlib
import random
import resource
import subprocess
import tempfile

PEAK = 3e-4


def warmed(k, warmup, rate):
    return k / warmup if k < warmup else rate


def line_off(k, n, draw):
    return warmed(k, 500, (n - k) / (n - 500)) * (1 + draw.uniform(-5e-4, 5e-4))


def cosine_off(k, n, draw):
    part = (k - 500) / (n - 500)
    return warmed(k, 500, 0.5 * (1 + math.cos(math.pi * part))) * (1 + draw.uniform(-5e-4, 5e-4))


def power(k, n, draw):
    return warmed(k, 500, (1 - (k - 500) / (n - 500)) ** 1.37 if k < n else 0)


def levels(k, n, draw):
    return 0.77 ** (k // 613) * (1 + 0.02 * math.sin(k // 613))


def saw(k, n, draw):
    return 0.3 + 0.7 * ((k * 7) % 1009) / 1009


def held(k, n, draw):
    k = min(k, n // 3) if k < 2 * n // 3 else k - n // 3
    return warmed(k, 500, (n - k) / (n - 500)) ** 1.01


def ripples(k, n, draw):
    return 0.55 + 0.45 * math.cos(math.pi * k / n) * (1 + 0.03 * math.sin(k / 97))


def noise(k, n, draw):
    return draw.uniform(0.1, 1)


def bent(k, n, draw):
    """A plateau, and behind it a decay that is no schedule's."""
    cut = 6 * n // 10
    return warmed(k, 500, 1.0) if k < cut else 1 / (1 + ((k - cut) / (n / 7)) ** 1.7)


def dip(k, n, draw):
    """A plateau whose decay comes back."""
    cut = 7 * n // 10
    return warmed(k, 500, 1.0) if k < cut else 1 - 0.6 * math.sin((k - cut) / (n - cut) * 2.2)


def stands(k, n, draw):
    """A line that ends in mid-run, at a floor that nobody would type."""
    return warmed(k, 500, 0.137 + 0.863 * max(0, (6 * n // 10 + 77 - k) / (6 * n // 10 - 423)))


def stops(k, n, draw):
    """A line with an odd total whose scheduler is no longer stepped in mid-run."""
    k = min(k, n // 2 + 77)
    return warmed(k, 500, 0.0213 + 0.9787 * (n + 1173 - k) / (n + 673))


KINDS = {"line off": line_off, "cosine off": cosine_off, "power": power, "levels": levels,
         "saw": saw, "held": held, "ripples": ripples, "noise": noise, "bent": bent, "dip": dip,
         "stands": stands, "stops": stops}


def write(path, kind, digits, rows):
    draw = random.Random(f"{kind} {digits}")
    with open(path, "w", encoding="ascii") as out:
        out.write("step,lr\n")
        for k in range(1, rows + 1):
            out.write(f"{k},{PEAK * KINDS[kind](k, rows, draw):.{digits}g}\n")


def timed(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, done.returncode,
            (done.stdout.splitlines() or [""])[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--verb", choices=("fit", "doctor"), default="fit")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the logs in this folder")
    given = parser.parse_args()
    verb = ["lr", "fit"] if given.verb == "fit" else ["doctor"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or pathlib.Path(scratch)
        os.makedirs(folder, exist_ok=True)
        slow, answered, all_of_them, most = 0, 0, 0, 0.0
        for kind in KINDS:
            for digits in (3, 6, 16):
                log = folder / f"{kind.replace(' ', '_')}.{digits}.csv"
                write(log, kind, digits, given.rows)
                for steps in ([], ["--steps", str(given.rows)]) if given.verb == "fit" else ([],):
                    user, system, status, line = timed([given.binary, *verb, *steps, str(log)])
                    print(f"{kind:10} {digits:2} digits {'--steps' if steps else '       '} "
                          f"{user:5.2f} s user {system:5.2f} s system  status {status}  {line[:70]}",
                          flush=True)
                    all_of_them += 1
                    slow += user + system > 1
                    most = max(most, user + system)
                    answered += given.verb == "fit" and status == 0
        print(f"{all_of_them} columns of {given.rows} rows, {slow} above 1 s, at most {most:.2f} s; "
              f"{answered} answered with status 0")


if __name__ == "__main__":
    main()
