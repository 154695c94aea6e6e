#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces that h5py wrote, as docs/FOREIGN.md says, through every verb that promises to read them.

    foreign.py BINARY [--whole]

The programs of the page are taken from the page and run; what is written here is written by h5py,
never by twinstep. Then files with one thing broken each: every one must be refused with a text that
names it and exit status 2, and never end a program by a signal. Returns 77 without h5py."""
import importlib.util
import json
import pathlib
import random
import re
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("left out: no h5py")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
V110 = ("v110", "v110")


class Failed(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Failed(text)


class Bench:
    """A folder, the program, and the programs of the page."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.whole = "--whole" in sys.argv
        page = (ROOT / "docs/FOREIGN.md").read_text(encoding="utf-8")
        for name, block in re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```\n", page, re.S):
            (folder / name).write_text(block, encoding="utf-8")
        self.record = self.load("record")
        self.rows = list(self.record.train(20, 0))

    def load(self, name):
        spec = importlib.util.spec_from_file_location(name, self.folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def path(self, name):
        return str(self.folder / name)

    def python(self, program, output, *words):
        """Runs a program of the page in this process, because importing h5py takes half a second."""
        old = sys.argv
        sys.argv = [program, self.path(output), *words]
        runpy.run_path(self.path(program), run_name="__main__")
        sys.argv = old

    def run(self, *words):
        result = subprocess.run([self.binary, *words], cwd=self.folder, capture_output=True,
                                text=True, check=False, timeout=60)
        require(0 <= result.returncode <= 3,
                f"{words}: ended with {result.returncode}: {result.stderr}")
        return result.returncode, result.stdout + result.stderr

    def expect(self, status, text, *words):
        got, said = self.run(*words)
        require(got == status and text in said,
                f"{' '.join(words)}: expected status {status} and {text!r}, got {got}: {said}")
        return said


def write(bench, name, change=None):
    if not (bench.folder / "base.h5").exists():
        bench.record.write(bench.path("base.h5"), bench.rows)
    shutil.copy(bench.path("base.h5"), bench.path(name))
    if change is not None:
        with h5py.File(bench.path(name), "r+", libver=V110) as f:
            change(f)


def write_into(bench, name, change):
    with h5py.File(bench.path(name), "r+", libver=V110) as f:
        change(f)


# ---- what works ----

def look_at_page(bench):
    bench.python("record.py", "a.h5")
    bench.python("record.py", "again.h5")
    bench.python("record.py", "b.h5", "ahead")
    bench.expect(0, "made on reading", "import", "--check", "a.h5")
    bench.expect(0, "made on reading, of 20 rows", "certify", "a.h5")
    bench.expect(0, "equal through update 20", "certify", "a.h5", "again.h5")
    said = bench.expect(1, "differs from update 1 on", "certify", "a.h5", "b.h5")
    require("phase    optimize\n  tensor   weight" in said, said)
    said = bench.expect(1, "lr_applied at 1, loss at 2", "compare", "a.h5", "b.h5")
    require("Roots differ from update 1 on: phase optimize, weight.\n" in said, said)
    require("Phases came in another order: update 1: A fetch, forward, backward, optimize, schedule; "
            "B fetch, forward, backward, schedule, optimize\n" in said, said)
    require("Configurations differ" not in said, said)
    write(bench, "x.h5", change=attribute(
        "runs/main", "configuration", "lr: 0.2\nschedule: linear\nseed: 3\n"))
    bench.expect(0, "Configurations differ: lr: 0.1 | 0.2 (schedule); seed: not there | 3\n",
                 "compare", "a.h5", "x.h5")
    # four keys of a group that one has alone are one, and come last; three are told, and so is a
    # group of which the other one has a key
    write(bench, "x.h5", change=attribute(
        "runs/main", "configuration", "args.a: 1\nargs.b: 2\nargs.c: 3\nlr: 0.2\nargs.d: 4\n"
        "argsx: 1\nenv.a: 1\nenv.b: 2\nenv.c: 3\n"))
    said = "lr: 0.1 | 0.2 (schedule); schedule: linear | not there (schedule); argsx: not there | 1; " \
        "env.a: not there | 1; env.b: not there | 2; env.c: not there | 3; args.*: not there | 4 keys\n"
    bench.expect(0, f"Configurations differ: {said}", "compare", "a.h5", "x.h5")
    # what is pasted into an issue says it, too; of more keys than eight the rest is counted, and the
    # table is shorter by what stands above it
    said = bench.expect(1, "\n- Roots differ from update 1 on: phase optimize, weight.\n", "compare",
                        "a.h5", "b.h5", "--markdown")
    require("\n- Phases came in another order: update 1: A fetch, " in said, said)
    require("Configurations differ" not in said and said.count("\n") <= 25, said)
    write(bench, "y.h5", change=attribute(
        "runs/main", "configuration",
        "lr: 0.2\nschedule: <linear>*\n" + "".join(f"args{i}.x: {i}\n" for i in range(7))))
    said = bench.expect(0, "\n- Roots are equal in all 20 updates that both have.\n", "compare",
                        "a.h5", "y.h5", "--markdown")
    require("\n- Configurations differ: lr: 0.1 | 0.2 (schedule); schedule: linear | \\<linear>\\* "
            "(schedule); args0.x: not there | 0; args1.x: not there | 1; args2.x: not there | 2; "
            "args3.x: not there | 3; args4.x: not there | 4; args5.x: not there | 5; and 1 more\n"
            in said and said.count("\n") <= 25, said)
    require(said.index("Configurations differ") < said.index("| column |"), said)
    write(bench, "y.h5", change=attribute("runs/main", "configuration", "args.a: 1\nlr: 0.2\n"))
    bench.expect(0, "Configurations differ: args.b: 2 | not there; args.c: 3 | not there; args.d: 4",
                 "compare", "x.h5", "y.h5")
    bench.expect(0, "phases   fetch, forward, backward, optimize, schedule (update 1)", "import",
                 "--check", "a.h5")
    bench.expect(0, "Roots are equal in all 20 updates", "compare", "a.h5", "again.h5")
    bench.expect(0, "Nothing found", "doctor", "a.h5")
    bench.expect(0, "20,0.", "export", "a.h5", "--to", "csv")


def look_at_protected(bench):
    """Roots and checks that numpy computed are those that twinstep computes."""
    root = re.search(r"root +([0-9a-f]{64})", bench.run("certify", "a.h5")[1]).group(1)
    shutil.copy(bench.path("a.h5"), bench.path("stored.h5"))
    bench.python("protect.py", "stored.h5")
    bench.expect(0, "rows     every one", "import", "--check", "stored.h5")
    bench.expect(0, "root as expected", "certify", "stored.h5", "--expect", root)
    with h5py.File(bench.path("stored.h5"), "r+", libver=V110) as f:
        f["runs/main/steps/loss"][7] += 1e-9
    bench.expect(2, "the columns of update 8 do not match its check", "doctor", "stored.h5")
    bench.expect(1, "BROKEN at update 8: ", "certify", "stored.h5")
    bench.expect(0, "every finished update", "recover", "a.h5", "-o", "recovered.h5")
    bench.expect(0, "root as expected", "certify", "recovered.h5", "--expect", root)
    with h5py.File(bench.path("recovered.h5"), "r") as f:
        require(f.attrs["writer"] == "record.py" and f.attrs["twinstep_trace"] == 2, "writer")
        steps = f["runs/main/steps"]
        require(isinstance(f["runs/main"].attrs["configuration"], str), "texts are str")
        require(isinstance(steps["loss"].attrs["units"], str), "texts are str")
        require(list(steps["tensors/group"][:]) == [0, 0], "groups")
        require(list(steps["phases/place"][3]) == [0, 1, 2, 3, 4], "places")


def differ(bench, name, change, phase, tensor):
    write(bench, name, change=change)
    said = bench.expect(1, "differs from update 4 on", "certify", "a.h5", name)
    require(f"phase    {phase}\n" in said and (not tensor or f"tensor   {tensor}\n" in said), said)


def look_at_first(bench):
    """The first difference, by what the trace has of it."""
    def flip(column, *tensor):
        def change(f):
            f["runs/main/steps"][column][(3, *tensor, 5)] ^= 1
        return change
    differ(bench, "p.h5", flip("tensors/digest_parameter", 1), "optimize", "bias")
    def both(f):
        flip("tensors/digest_gradient", 0)(f)
        flip("tensors/digest_parameter", 0)(f)
    differ(bench, "g.h5", both, "backward", "weight")
    def batch(f):
        flip("digest_batch")(f)
        both(f)
    differ(bench, "f.h5", batch, "fetch", "")


def look_at_settings(bench):
    """A gradient that is a rounding apart is no nondeterminism where settings differ."""
    def gradient(f):
        steps = f["runs/main/steps"]
        steps["grad_norm"][...] *= 1 + 1e-7
        steps["tensors/digest_parameter"][...] ^= 1     # and its step moved the weights
        if "digest_gradient" in steps["tensors"]:
            steps["tensors/digest_gradient"][...] ^= 1

    def both(f):
        gradient(f)
        f["runs/main"].attrs["configuration"] += "bf16: True\n"
    write(bench, "x.h5", change=gradient)
    bench.expect(1, "Points to: nondeterminism", "compare", "a.h5", "x.h5")
    write(bench, "x.h5", change=both)
    said = bench.expect(1, "what differs there can do this", "compare", "a.h5", "x.h5")
    require("Configurations differ: bf16: not there | True" in said and "Points to" not in said, said)


def begin_with(bench, **other):
    """Writes the digests of the weights before update 1, as the page's program draws them, by the
    page's own keyed digest; `other` are those of another run."""
    draw = np.random.default_rng(5)
    weights = {"weight": draw.random((2, 3)).astype("<f4"), "bias": draw.random(2).astype("<f4")}
    weights.update(other)
    return [bench.record.keyed(n, "f32", w).tobytes().hex() for n, w in weights.items()]


def look_at_first_weights(bench):
    """Weights before the first update are told apart by their own digests, and not by what update 1
    left of them; where one run has none, nothing is said."""
    begin = begin_with(bench)
    def write_with(name, texts, change=None):
        def both(f):
            f["runs/main/steps/tensors/initial"] = texts
            if change is not None:
                change(f["runs/main/steps"])
        write(bench, name, change=both)

    def train_on(steps):                # what follows is other numbers from update 1 on
        steps["tensors/digest_parameter"][...] ^= 1
        steps["loss"][...] += 1e-3 * np.arange(20) + 0.05

    def batch(steps):
        train_on(steps)
        steps["digest_batch"][...] ^= 1
    odd = begin_with(bench, bias=np.float32([0.5, 0.25]))
    write_with("w.h5", begin)
    write_with("again.h5", begin)
    bench.expect(0, "keyed 1, of weights before the first update, too\n", "import", "--check", "w.h5")
    bench.expect(0, "Weights before update 1 are equal.\nRoots are equal in all 20", "compare",
                 "w.h5", "again.h5")
    said = json.loads(bench.expect(0, '"initial_weights": "equal"', "compare", "w.h5", "again.h5",
                                   "--json"))
    require(said["initial_tensor"] == "" and said["causes"] == [], said)
    write_with("odd.h5", odd, train_on)
    said = bench.expect(1, "Weights before update 1 differ in 1 tensor, bias.\n", "compare", "w.h5",
                        "odd.h5")
    require("no later column can be read before they are equal.\nPoints to: init\n" in said, said)
    said = json.loads(bench.expect(1, '"initial_weights": "differ"', "compare", "w.h5", "odd.h5",
                                   "--json"))
    require((said["initial_tensor"], said["cause"], said["causes"], said["root_parts"]) ==
            ("bias", "init", ["init"], ["weights", "loss"]), said)
    write_with("odder.h5", odd, batch)  # with another batch neither is named alone
    said = bench.expect(1, "So do the batch of update 1: which of it", "compare", "w.h5", "odder.h5")
    require("Points to" not in said, said)
    for texts in (["", begin[1]], ["", odd[1]]):
        write_with("part.h5", texts, train_on)
        said = bench.expect(1, "differs: ", "compare", "w.h5", "part.h5")
        require(("differ in 1 tensor, bias" in said) == (texts[1] == odd[1]) and
                "update 1 are equal" not in said, said)
    said = bench.expect(1, "differs: ", "compare", "base.h5", "odd.h5")     # one has none
    require("Weights before" not in said and "Points to: init" not in said, said)
    bench.expect(0, "every finished update", "recover", "w.h5", "-o", "recovered-w.h5")
    with h5py.File(bench.path("recovered-w.h5")) as f:
        found = [t.decode() for t in f["runs/main/steps/tensors/initial"][:]]
    require(found == begin, found)


def look_at_loop(bench):
    """Where no LR was printed, the places of the phases say that the schedule came first; in one
    update of 20 behind the step they do not."""
    def without(source, name, change=None):
        shutil.copy(bench.path(source), bench.path(name))
        def both(f):
            del f["runs/main/steps/lr_logged"]
            if change is not None:
                change(f["runs/main/steps"])
        write_into(bench, name, both)
    without("b.h5", "first.h5")
    said = bench.expect(0, "remark schedule_before_step\n  The LR was moved before the optimizer stepped "
                        "in 20 of 20 updates.\n  evidence: update 1: lr_applied is 0.095\n", "doctor",
                        "first.h5")
    require("a loop that sets the LR of the update at hand looks like this, too" in said, said)
    without("a.h5", "behind.h5")
    said = bench.expect(0, "no column lr_logged", "doctor", "behind.h5")
    require("schedule_before_step" not in said, said)
    def once(steps):
        steps["phases/place"][7] = [0, 1, 2, 3, 4]
    without("b.h5", "once.h5", once)
    said = bench.expect(0, "no column lr_logged", "doctor", "once.h5")
    require("schedule_before_step" not in said, said)
    said = bench.expect(1, "lr_applied_ahead: likely", "doctor", "b.h5")
    require("schedule_before_step" not in said, said)


def look_at_restart(bench):
    """A recording that goes on behind update 10 with other batches, so that its losses tell nothing of
    the weights: the digests of those that it began with do."""
    def go_on(name, other):
        write(bench, name)
        def change(f):
            steps = f["runs/main/steps"]
            begin = [d.tobytes().hex() for d in steps["tensors/digest_parameter"][9]]
            for column in list(steps):
                if isinstance(steps[column], h5py.Dataset) and column != "group":
                    rest = steps[column][10:]
                    del steps[column]
                    steps[column] = rest
            for column in ("tensors/digest_gradient", "tensors/digest_parameter", "phases/place"):
                rest = steps[column][10:]
                del steps[column]
                steps[column] = rest
            steps["digest_batch"][...] ^= 1
            steps["loss"][...] += 0.125
            if other:
                begin[1] = "f" * 64
            steps["tensors/initial"] = begin
        write_into(bench, name, change)
    go_on("on.h5", False)
    said = bench.expect(1, "weights     restored  those before update 11 are those after update 10 of "
                        "before, by their digests\n", "resume-check", "base.h5", "on.h5")
    require("the batch of update 11 is another one" in said, said)
    go_on("off.h5", True)
    bench.expect(1, "weights     LOST      those before update 11 are not those after update 10 of "
                 "before, by their digests, first bias\n", "resume-check", "base.h5", "off.h5")


def look_at_many(bench):
    """More groups than ten and more tensors than 2,048."""
    count, updates = 3000, 3
    with h5py.File(bench.path("many.h5"), "w", libver=V110) as f:
        f.attrs["twinstep_trace"], f.attrs["kind"], f.attrs["writer"] = np.int64(2), "foreign", "t"
        f["complete"] = np.int64(1)
        f.create_group("runs/main").attrs["digest"] = "keyed 1"
        s = f.create_group("runs/main/steps")
        s["loss"] = np.arange(updates) + 1.0
        s["group"] = np.arange(40)
        s["lr_applied"] = np.random.default_rng(1).random((updates, 40))
        t = s.create_group("tensors")
        t["tensor"] = [f"layers.{i}.weight" for i in range(count)]
        t["group"] = (np.arange(count) % 40).astype("<u4")
        t["dtype"], t["shape"] = ["bf16"] * count, ["64,512"] * count
        t["digest_parameter"] = np.random.default_rng(2).integers(
            1, 255, (updates, count, 32)).astype("u1")
        s["step"] = np.arange(updates) + 1
    bench.expect(0, "3000 tensors in 40 groups, 0 phases", "import", "--check", "many.h5")
    bench.expect(0, "made on reading, of 3 rows", "certify", "many.h5")
    shutil.copy(bench.path("many.h5"), bench.path("x.h5"))
    def change(f):
        f["runs/main/steps/tensors/digest_parameter"][1, 2900, 7] ^= 1
    write_into(bench, "x.h5", change)
    said = bench.expect(1, "differs from update 2 on", "certify", "many.h5", "x.h5")
    require("tensor   layers.2900.weight\n" in said, said)


def look_at_page_of_report(bench):
    bench.expect(0, "report of a.h5", "report", "a.h5", "-o", "a.html")
    page = (bench.folder / "a.html").read_text(encoding="utf-8")
    for text in ("run of record.py 1", "schedule: linear", "lr_applied", "keyed 1", "in 1 group<"):
        require(text in page, f"report: no {text!r}")
    require("--run" not in page, "report: other runs")
    write(bench, "many.h5", change=lambda f: [f["runs"].copy("main", f"r{i}") for i in range(30)])
    def change(f):
        f["runs/r7/steps/loss"][3] = 1234.5
    write_into(bench, "many.h5", change)
    bench.expect(0, "report of", "report", "many.h5", "-o", "x.html")
    page = (bench.folder / "x.html").read_text(encoding="utf-8")
    require("<h1>main</h1>" in page and "The trace has 31 runs. This page shows one" in page
            and ": r0, r1, r10, " in page and " and 10 more.</p>" in page and "1234.5" not in page,
            "report: the other runs")
    bench.expect(0, "report of", "report", "many.h5", "--run", "r7", "-o", "r7.html")
    page = (bench.folder / "r7.html").read_text(encoding="utf-8")
    require("<h1>r7</h1>" in page and "1234.5" in page and ": main, r0, r1, " in page, "report: the run that was asked for")
    bench.expect(2, 'such as "main", got "r31"', "report", "many.h5", "--run", "r31", "-o", "no.html")
    bench.expect(2, "one too many", "report", "a.h5", "b.h5", "-o", "no.html")
    bench.expect(2, "--run: expected a trace that another program recorded", "report", "ours.h5",
                 "--run", "baseline", "-o", "no.html")
    require(not (bench.folder / "no.html").exists(), "report: a refusal left a page")


def look_at_lr(bench):
    """Two runs print one LR column, and one of them applies another: no log can tell, this can."""
    bench.expect(0, "so does every one of the 20 that the log records as applied",
                 "lr", "check", "a.h5", "--expect", "hf")
    bench.expect(1, "update 1 applied 0.095, where hf applies 0.1",
                 "lr", "check", "b.h5", "--expect", "hf")
    bench.expect(1, "where hf-4.50 applies 0; so applies", "lr", "check", "a.h5", "--expect", "hf-4.50")
    bench.expect(0, "pass", "lr", "check", "b.h5", "--expect", "hf", "--logged")
    bench.expect(0, "fits that apply other LRs than the log records", "lr", "fit", "a.h5")
    bench.expect(1, "none of them applies what the log records: update 1 applied 0.095",
                 "lr", "fit", "b.h5")
    write(bench, "x.h5", change=drop(S + "lr_logged"))
    bench.expect(0, "no LR was printed", "lr", "check", "x.h5", "--expect", "hf")


def noisy(seed):
    """Gaps as a race gives them: from update 3 on, in the loss and in every digest."""
    def change(f):
        draw = np.random.default_rng(seed)
        steps = f["runs/main/steps"]
        steps["loss"][2:] *= 1 + 1e-6 * draw.standard_normal(18)
        steps["grad_norm"][2:] *= 1 + 1e-6 * draw.standard_normal(18)
        for column in ("digest_gradient", "digest_parameter"):
            digests = steps["tensors"][column][:]
            digests[2:, :, 0] ^= draw.integers(1, 255, digests[2:, :, 0].shape).astype("u1")
            steps["tensors"][column][:] = digests
    return change


def look_at_floor(bench):
    bench.expect(0, "exact: their roots are equal", "floor", "a.h5", "again.h5", "-o", "exact.h5")
    bench.expect(1, "the runs of the floor are equal to the last bit, and these are not",
                 "compare", "a.h5", "b.h5", "--floor", "exact.h5")
    bench.expect(0, "inside-floor", "compare", "a.h5", "again.h5", "--floor", "exact.h5")
    names = [[f"{arm}{i}.h5" for i in range(5)] for arm in "uvw"]
    for arm, row in enumerate(names):
        for i, name in enumerate(row):
            write(bench, name, change=noisy(10 * arm + i))
            if arm == 2:
                with h5py.File(bench.path(name), "r+", libver=V110) as f:
                    f["runs/main/steps/loss"][4:] *= 1.01
    said = bench.expect(1, "noisy: u1.h5 parts from u0.h5 at update 3, phase forward", "floor",
                        *names[0][:4], "-o", "noisy.h5")
    require("2 pairs: compare --floor at alpha 0.01 needs 99" in said, said)
    for i in range(2):                      # runs without digests have no phase to name
        write(bench, f"bare{i}.h5", change=noisy(i))
        with h5py.File(bench.path(f"bare{i}.h5"), "r+", libver=V110) as f:
            for name in ("tensors", "phases", "digest_batch"):
                f["runs/main/steps"].pop(name, None)
    bench.expect(1, "noisy: bare1.h5 parts from bare0.h5 at update 3\n", "floor", "bare0.h5",
                 "bare1.h5")
    bench.expect(1, '"first_phase": ""', "floor", "bare0.h5", "bare1.h5", "--json")
    with h5py.File(bench.path("noisy.h5"), "r") as f:       # the gaps are those that numpy has
        rows = [h5py.File(bench.path(n), "r")["runs/main/steps/loss"][:] for n in names[0][:4]]
        gaps = np.abs([rows[0] - rows[1], rows[2] - rows[3]])
        require(np.array_equal(f["noise/pairs_loss"][:], gaps), "gaps of the pairs")
    bench.expect(3, "2 A/A pairs cannot give p <= 0.01", "compare", "u0.h5", "v1.h5", "--floor",
                 "noisy.h5")
    # a NaN where no run of the floor has one is a difference, however few pairs there are
    shutil.copy(bench.path("v1.h5"), bench.path("nan.h5"))
    with h5py.File(bench.path("nan.h5"), "r+", libver=V110) as f:
        f["runs/main/steps/loss"][4:] = np.nan
    bench.expect(1, "at update 5 one log has NaN or infinity and the other one a number, as in none "
                 "of the 2 A/A pairs", "compare", "u0.h5", "nan.h5", "--floor", "noisy.h5")
    bench.expect(1, '"broken_update": 5', "compare", "u0.h5", "nan.h5", "--floor", "noisy.h5",
                 "--json")
    bench.expect(0, "inside-floor: p = ", "floor", *names[0], "--against", *names[1])
    bench.expect(1, "outside-floor: p = 0.007937", "floor", *names[0], "--against", *names[2])
    bench.expect(3, "2 and 2 runs cannot give p <= 0.01", "floor", *names[0][:2], "--against",
                 *names[2][:2])
    bench.expect(0, "are, too", "floor", "a.h5", "again.h5", "--against", "l1.h5", "l4.h5")
    bench.expect(2, "are one file", "floor", "a.h5", "a.h5")
    bench.expect(2, "at least two runs", "floor", "a.h5", "--against", "b.h5")
    bench.expect(2, "exists", "floor", "a.h5", "again.h5", "-o", "exact.h5")
    bench.expect(2, "whose floor twinstep noise measures", "floor", "ours.h5", "a.h5")
    write(bench, "x.h5", change=attribute("runs/main", "configuration", "lr: 0.2\n"))
    bench.expect(2, "got another one: a floor is of runs that are meant to be the same", "floor",
                 "a.h5", "x.h5")
    bench.expect(2, "measured for another configuration than A's", "compare", "x.h5", "a.h5",
                 "--floor", "exact.h5")
    bench.expect(2, "this floor is of runs of record.py", "compare", "ours.h5", "a.h5", "--floor",
                 "exact.h5")
    bench.expect(2, "this floor is of runs of record.py", "run", "null-pair", "--floor", "exact.h5",
                 "-o", "x2.h5")
    bench.expect(2, "of runs of record.py, whose weights are not known", "noise", "null-pair",
                 "--plan", "--floor", "exact.h5")


def safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def look_at_weights(bench):
    """Digests of a checkpoint that numpy wrote are those that numpy recorded."""
    weights = {n: ("F32", w) for n, w in bench.rows[6]["parameter"].items()}
    words = ("certify", "a.h5", "--at", "7", "--weights", "w.safetensors")
    safetensors(bench.path("w.safetensors"), weights)
    bench.expect(0, "2 tensors equal, 0 differ, 0 not there", *words)
    bench.expect(1, "0 tensors equal, 2 differ", *words[:3], "8", *words[4:])
    bench.expect(2, "expected an update from 1 to 20, got 21", *words[:3], "21", *words[4:])
    bench.expect(2, "--weights: expected --at K", *words[:2], *words[4:])
    safetensors(bench.path("w.safetensors"), {"module._orig_mod." + n: w for n, w in weights.items()})
    bench.expect(0, "2 tensors equal, 0 differ, 0 not there", *words)
    safetensors(bench.path("w.safetensors"), {"own." + n: w for n, w in weights.items()})
    bench.expect(3, "0 tensors equal, 0 differ, 2 not there", *words)
    changed = weights["bias"][1].copy()
    changed.view("u4")[1] ^= 1
    safetensors(bench.path("w.safetensors"), {**weights, "bias": ("F32", changed)})
    bench.expect(1, "  bias: differs\n", *words) # neither dtype nor shape is to blame
    safetensors(bench.path("w.safetensors"), {**weights, "bias": ("F32", changed[None])})
    bench.expect(1, "it is F32 [1, 2] there and was f32 [2] in the run", *words)
    safetensors(bench.path("w.safetensors"), {"weight": weights["weight"]})
    bench.expect(3, "  bias: not there", *words)
    safetensors(bench.path("w.safetensors"),
                {**weights, "bias": ("F16", changed.astype("<f2"))})
    bench.expect(1, "it is F16 [2] there and was f32 [2] in the run", *words)


# ---- what is refused ----


def renamed(f):
    put("runs/main/steps/tensors/tensor", ["weight", "offset"])(f)


def leaf(world, rank=0):
    def change(f):
        f["runs/main"].attrs["digest"] = "leaf 1"
        f["runs/main"].attrs["world"] = np.int64(world)
        f["runs/main"].attrs["rank"] = np.int64(rank)
    return change


def look_at_refusals(bench):
    recorded = "recorded by record.py 1: "
    bench.expect(2, recorded + "no configuration of ours can train it again", "replay", "a.h5")
    bench.expect(2, recorded + "no configuration of ours can train it again to look at elements",
                 "bisect", "a.h5", "b.h5")
    bench.expect(2, recorded + "no hybrids of two configurations were trained", "attribute", "a.h5")
    for words in (("replay", "a.h5"), ("bisect", "a.h5", "b.h5"), ("attribute", "a.h5")):
        bench.expect(2, "twinstep ablate", *words) # what would do instead
    for change, text in (
            (leaf(1), 'A has digests of kind "keyed 1" and B of kind "leaf 1"'),
            (renamed, 'tensor 1 is "bias" in A and "offset" in B'),
            (put("runs/main/steps/tensors/dtype", ["f32", "bf16"]),
             'tensor "bias" is f32 [2] in A and bf16 [2] in B'),
            (lambda f: (attribute("runs/main", "world", np.int64(2))(f),
                        attribute("runs/main", "rank", np.int64(1))(f)), None)):
        write(bench, "x.h5", change=change)
        for verb in ("certify", "compare"):
            if text is None: # keyed digests of the whole tensor do not depend on how many wrote them
                bench.expect(0, "equal", verb, "a.h5", "x.h5")
            else: # of unlike tensors columns may be compared, but digests of two kinds are no two runs
                columns = verb == "compare" and text.startswith("tensor")
                bench.expect(1 if columns else 2, text, verb, "a.h5", "x.h5")
    write(bench, "l1.h5", change=leaf(1))
    write(bench, "l4.h5", change=leaf(1))
    write(bench, "l2.h5", change=leaf(2))
    write(bench, "l3.h5", change=leaf(2, 1))
    bench.expect(2, 'A is of 1 processes and B of 2: digests "leaf 1" of shards', "certify", "l1.h5",
                 "l2.h5")
    bench.expect(2, "A is of process 0 and B of process 1", "certify", "l2.h5", "l3.h5")
    bench.run("run", "null-pair", "-o", "ours.h5", "--quiet")
    bench.expect(2, "one is a run of twinstep and the other of another program", "certify", "ours.h5",
                 "a.h5")
    bench.expect(1, "differs", "compare", "ours.h5", "a.h5")
    bench.expect(2, "got one of twinstep's own", "import", "--check", "ours.h5")


def put(path, data, **words):
    def change(f):
        if path in f:
            del f[path]
        f.create_dataset(path, data=data, **words)
    return change


def attribute(path, name, value):
    def change(f):
        f[path].attrs[name] = value
    return change


def drop(path, name=None):
    def change(f):
        if name is None:
            del f[path]
        else:
            del f[path].attrs[name]
    return change


def link(path, target):
    def change(f):
        if path in f:
            del f[path]
        f[path] = target
    return change


def hard_cycle(f):
    f["runs/main/again"] = f["/"]


def huge(f):
    del f["runs/main/steps/loss"]
    f.create_dataset("runs/main/steps/loss", (1 << 58,), "<f8", chunks=(64,))
    del f["runs/main/steps/step"]
    f.create_dataset("runs/main/steps/step", (1 << 58,), "<i8", chunks=(64,))


def outside(f):
    del f["runs/main/steps/loss"]
    space = h5py.h5s.create_simple((20,))
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_external(b"/etc/passwd", 0, 160)
    h5py.h5d.create(f["runs/main/steps"].id, b"loss", h5py.h5t.IEEE_F64LE, space, made)


S = "runs/main/steps/"
BROKEN = {
    "no updates": (drop(S + "step"), "runs/main/steps/step: missing: expected a dataset '<i8'"),
    "no mark": (drop("complete"), "complete: missing: expected a dataset '<i8'"),
    "no kind": (drop("/", "kind"), '/: attribute "kind": missing: expected a text'),
    "kind": (attribute("/", "kind", "ours"), 'attribute "kind": expected "foreign", got "ours"'),
    "version": (attribute("/", "twinstep_trace", np.int64(4)), "reads versions 1 to 3"),
    "version's type": (attribute("/", "twinstep_trace", "2"), "one integer of 64 bits"),
    "no writer": (drop("/", "writer"), '"writer": missing'),
    "list of writers": (attribute("/", "writer", ["a", "b"]), "expected a text, got str [2]"),
    "empty attribute": (attribute("/", "writer", h5py.Empty("f8")),
                        "expected a text, got '<f8' without a value"),
    "f32": (put(S + "loss", np.zeros(20, "<f4")), "loss: expected '<f8' [20], got '<f4' [20]"),
    "big-endian": (put(S + "loss", np.zeros(20, ">f8")), "expected '<f8' [20], got '>f8' [20]"),
    "bool": (put(S + "skipped", np.zeros(20, "?")), "expected '<i8' [20], got an enum or bool [20]"),
    "compound": (put(S + "loss", np.zeros(20, [("a", "f8")])), "got a compound [20]"),
    "texts": (put(S + "loss", ["a"] * 20), "expected '<f8' [20], got str [20]"),
    "too short": (put(S + "loss", np.zeros(19)), "expected '<f8' [20], got '<f8' [19]"),
    "two axes": (put(S + "loss", np.zeros((20, 1))), "expected '<f8' [20], got '<f8' [20, 1]"),
    "scalar": (put(S + "loss", 1.0), "expected '<f8' [20], got '<f8'"),
    "31 bytes": (put(S + "digest_batch", np.zeros((20, 31), "u1")), "expected '|u1' [20, 32]"),
    "compressed": (put(S + "loss", np.zeros(20), compression="gzip"), "got a filter"),
    "huge": (huge, "claims more bytes than the file has"),
    "external link": (link(S + "loss", h5py.ExternalLink("/etc/passwd", "/x")),
                      "loss: expected a dataset '<f8' of this file, got an external link"),
    "soft link": (link(S + "loss", h5py.SoftLink("/complete")), "got a soft link"),
    "external bytes": (outside, "got bytes in another file"),
    "a group": (lambda f: (drop(S + "loss")(f), f.create_group(S + "loss")),
                "loss: expected a dataset '<f8', got a group"),
    "no steps": (drop("runs/main/steps"), "runs/main/steps: missing: expected a group"),
    "no run": (drop("runs/main"), "expected a group for each run, got an empty group"),
    "no runs": (drop("runs"), "runs: missing: expected a group"),
    "a cycle": (hard_cycle, "groups nest deeper"),
    "no groups": (drop(S + "group"), 'lr_applied: expected the dataset "group"'),
    "numbers for names": (put(S + "tensors/tensor", np.arange(2)), "expected a text [n], got '<i8'"),
    "a name twice": (put(S + "tensors/tensor", ["weight"] * 2), 'got "weight" twice'),
    "escape in a name": (put(S + "tensors/tensor", ["a\x1b[2J", "b"]), 'got "a?[2J"'),
    "no UTF-8": (put(S + "tensors/tensor", np.array([b"a\xff", b"b"])), 'UTF-8, got "a?"'),
    "C1 in a name": (put(S + "tensors/tensor", ["a\u009b2J", "b"]), 'UTF-8, got "a??2J"'),
    "no name": (put(S + "phases/phase", ["fetch", "", "a", "b", "c"]), "1 to 1000 printable bytes"),
    "dtype": (put(S + "tensors/dtype", ["f32", "float"]), 'tensor 1: expected a dtype such as'),
    "shape": (put(S + "tensors/shape", ["2x3", "2"]), 'as in "64,512", got "2x3"'),
    "initial": (put(S + "tensors/initial", ["ab", ""]), 'as 64 hexadecimal digits (0-9, a-f), or an '
                'empty text, got "ab"'),
    "initial in capitals": (put(S + "tensors/initial", ["", "AB" * 32]), "tensor 1: expected a digest"),
    "one initial": (put(S + "tensors/initial", [""]), "expected a text [2], got str [1]"),
    "one shape": (put(S + "tensors/shape", ["2"]), "expected a text [2], got str [1]"),
    "group": (put(S + "tensors/group", np.array([0, 7], "<u4")), "groups below 1, got 7"),
    "group's type": (put(S + "tensors/group", np.zeros(2)), "expected '<u4' [2], got '<f8' [2]"),
    "kind of digests": (attribute("runs/main", "digest", "md5"), 'got "md5"'),
    "no kind of digests": (drop("runs/main", "digest"), 'attribute "digest": missing'),
    "rank": (attribute("runs/main", "rank", np.int64(1)), "expected 0 <= rank < world, got 1 and 1"),
    "lines": (attribute("runs/main", "configuration", "lr: 1\nsteps 20\n"),
              'line 2: expected "key: value", got "steps 20"'),
    "updates fall": (put(S + "step", np.array([1, 2, 2, *range(4, 21)])),
                     "row 2: expected update numbers that increase, from 1 on, got 2 after 2"),
    "update 0": (put(S + "step", np.arange(20)), "row 0: expected update numbers"),
    "check": (put(S + "check", np.ones((20, 32), "u1")), "update 1 do not match its check"),
}


def look_at_broken(bench):
    for i, (name, (change, text)) in enumerate(BROKEN.items()):
        if not bench.whole and i % 2 == 1:
            continue
        write(bench, "x.h5", change=change)
        try:
            bench.expect(2, text, "import", "--check", "x.h5")
            if bench.whole or i % 8 == 0:
                bench.expect(2, "x.h5", "doctor", "x.h5")
        except Failed as error:
            raise Failed(f"{name}: {error}") from error


def look_at_all_problems(bench):
    """All problems are listed, to a limit, and the first one stands in any verb's error."""
    def change(f):
        for name in ("loss", "grad_norm", "digest_batch"):
            put(S + name, np.zeros(3, "<f4"))(f)
        put(S + "los", np.zeros(20))(f)
    write(bench, "x.h5", change=change)
    said = bench.expect(2, "3 problems", "import", "--check", "x.h5")
    require(said.count("got '<f4' [3]") == 3, said)
    bench.expect(2, "and 2 more (twinstep import --check x.h5)", "compare", "x.h5", "x.h5")
    write(bench, "x.h5", change=put(S + "los", np.zeros(20)))
    bench.expect(0, "passed over, no name of the page: runs/main/steps/los", "import", "--check",
                 "x.h5")
    write(bench, "x.h5", change=lambda f: [put(S + "tensors/dtype", ["?"] * 2)(f)] + [
        f["runs"].copy("main", f"r{i}") for i in range(60)])
    bench.expect(2, "122 problems, of which 50 are listed", "import", "--check", "x.h5")


def look_at_bytes(bench):
    """Old formats, cut files, references into the heap of texts that lead elsewhere."""
    bench.record.write(bench.path("y.h5"), list(bench.record.train(3, 0)))
    whole = (bench.folder / "y.h5").read_bytes()
    with h5py.File(bench.path("x.h5"), "w") as f:
        f.attrs["twinstep_trace"] = np.int64(2)
    bench.expect(2, "superblock version 0", "import", "--check", "x.h5")
    (bench.folder / "x.h5").write_bytes(whole[:-100])
    bench.expect(2, "truncated", "import", "--check", "x.h5")
    heap = whole.index(b"GCOL")
    for at, byte in ((heap, 0), (heap + 5, 9), (heap + 24, 1), (heap + 16, 9), (heap + 25, 255)):
        (bench.folder / "x.h5").write_bytes(whole[:at] + bytes([byte]) + whole[at + 1:])
        got, said = bench.run("import", "--check", "x.h5")
        require(got in (0, 2) and (at == heap + 5 or "where it should be" in said), said)
    draw = random.Random(1)
    for _ in range(2000 if bench.whole else 10):
        changed = bytearray(whole)
        for _ in range(draw.choice((1, 8))):
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        (bench.folder / "x.h5").write_bytes(changed)
        bench.run("import", "--check", "x.h5")


def main():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sys.argv[1], pathlib.Path(folder))
        for look in (look_at_page, look_at_protected, look_at_first, look_at_settings, look_at_many,
                     look_at_first_weights, look_at_loop, look_at_restart,
                     look_at_weights, look_at_lr, look_at_refusals, look_at_page_of_report,
                     look_at_floor, look_at_broken,
                     look_at_all_problems, look_at_bytes):
            look(bench)
    print("every look passed")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        print(error)
        sys.exit(1)
