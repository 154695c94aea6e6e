#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is said of traces in which one thing is wrong each: the whole text, not a part of it.

    trace_words.py BINARY

h5py writes the traces, so what an answer must say of a type, a shape or a name is what was written
here. Problems of a foreign trace are all listed by one call, hence a file holds a run for each.
Returns 77 without h5py."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("left out: no h5py")
    sys.exit(77)

V110 = ("v110", "v110")
ROWS = 4
COLUMNS = {"loss": "<f8", "grad_norm": "<f8", "skipped": "<i8", "optimizer_t": "<i8"}


class Failed(Exception):
    pass


def differ(name, wanted, got):
    """Fails with the first line that is another one."""
    if wanted == got:
        return
    pairs = [pair for pair in zip(wanted + ["nothing"] * len(got), got + ["nothing"] * len(wanted))
             if pair[0] != pair[1]]
    raise Failed(f"{name}: expected\n  {pairs[0][0]}\ngot\n  {pairs[0][1]}")


def fill(run):
    """A run with every axis that another program's trace can have."""
    run.attrs["digest"] = "keyed 1"
    run.attrs["configuration"] = "lr: 0.1\n\nseed: 3\n"
    steps = run.create_group("steps")
    for name, kind in COLUMNS.items():
        steps[name] = np.ones(ROWS, kind)
    steps["group"] = np.arange(2)
    steps["lr_applied"] = np.ones((ROWS, 2))
    steps["digest_batch"] = np.ones((ROWS, 32), "u1")
    tensors, phases, sites, micro = map(steps.create_group, ("tensors", "phases", "sites", "micro"))
    tensors["tensor"], tensors["group"] = ["w", "b", "é"], np.array([0, 1, 1], "<u4")
    tensors["dtype"], tensors["shape"] = ["f32", "bf16", "f32"], ["2,3", "3", ""]
    tensors["grad_norm"] = np.ones((ROWS, 3))
    tensors["digest_parameter"] = np.ones((ROWS, 3, 32), "u1")
    phases["phase"], phases["place"] = ["forward", "optimize"], np.ones((ROWS, 2), "<i8")
    phases["digest"] = np.ones((ROWS, 2, 32), "u1")
    sites["site"], sites["digest"] = ["embedding"], np.ones((ROWS, 1, 32), "u1")
    micro["micro"], micro["loss"] = np.arange(2), np.ones((ROWS, 2))
    steps["step"] = np.arange(1, ROWS + 1)


def put(name, data, **words):
    def change(run):
        if name in run:
            del run[name]
        run.create_dataset(name, data=data, **words)
    return change


def link(name, to):
    def change(run):
        if name in run:
            del run[name]
        run[name] = to
    return change


def without(*names):
    def change(run):
        for name in names:
            del run[name]
    return change


def attribute(name, value):
    def change(run):
        run.attrs[name] = value
    return change


def a_group(name):
    def change(run):
        del run[name]
        run.create_group(name)
    return change


def a_type(name):
    def change(run):
        del run[name]
        run[name] = np.dtype("<f8")
    return change


def late(name, bytes_):
    """A dataset that HDF5 keeps in its own header."""
    def change(run):
        del run[name]
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(run.id, name.encode(), h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((bytes_ // 8,)), made)
    return change


def outside(run):
    del run["steps/loss"]
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_external(b"/etc/passwd", 0, 8 * ROWS)
    h5py.h5d.create(run["steps"].id, b"loss", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((ROWS,)), made)


S = "steps/"
GROUPLESS = "expected the dataset \"group\" ('<i8', 0 to the number of groups less 1) beside it, got none"
LOSS = "/steps/loss: expected '<f8' [4], got "
NAME = "expected 1 to 1000 printable bytes of UTF-8, got "
# Of each run: what is done to it, and what is said of it, behind "runs/NAME".
RUNS = [
    (lambda run: None, []),
    (put(S + "loss", np.ones(ROWS, "<f4")), [LOSS + "'<f4' [4]"]),
    (put(S + "loss", np.ones(ROWS, ">f8")), [LOSS + "'>f8' [4]"]),
    (put(S + "loss", np.ones(ROWS, "u1")), [LOSS + "'|u1' [4]"]),
    (put(S + "loss", np.ones(ROWS, "<i2")), [LOSS + "'<i2' [4]"]),
    (put(S + "loss", np.ones(ROWS, "S3")), [LOSS + "'S3' [4]"]),
    (put(S + "loss", ["a"] * ROWS), [LOSS + "str [4]"]),
    (put(S + "loss", np.ones(ROWS, "?")), [LOSS + "an enum or bool [4]"]),
    (put(S + "loss", np.ones(ROWS, [("a", "f8")])), [LOSS + "a compound [4]"]),
    (put(S + "loss", np.zeros(ROWS, "V5")), [LOSS + "bytes [4]"]),
    (put(S + "loss", None, shape=(ROWS,), dtype=h5py.ref_dtype), [LOSS + "a reference [4]"]),
    (put(S + "loss", None, shape=(ROWS,), dtype=h5py.vlen_dtype("f8")), [LOSS + "a list [4]"]),
    (put(S + "loss", None, shape=(ROWS,), dtype=np.dtype(("<f8", (2,)))), [LOSS + "an array [4]"]),
    (put(S + "loss", np.ones(ROWS - 1)), [LOSS + "'<f8' [3]"]),
    (put(S + "loss", np.ones((ROWS, 1, 2))), [LOSS + "'<f8' [4, 1, 2]"]),
    (put(S + "loss", 1.0), [LOSS + "'<f8'"]),
    (put(S + "loss", h5py.Empty("f8")), [LOSS + "'<f8' without a value"]),
    (put(S + "loss", np.ones(ROWS), compression="gzip"),
     ["/steps/loss: expected its bytes as they are, got a filter (compression, shuffle, checksum)"]),
    (late(S + "loss", 8 * ROWS), ["/steps/loss: expected its bytes as they are, got compact or virtual storage"]),
    (outside, ["/steps/loss: expected its bytes as they are, got bytes in another file"]),
    (a_group(S + "loss"), ["/steps/loss: expected a dataset '<f8', got a group"]),
    (a_type(S + "loss"), ["/steps/loss: expected a dataset '<f8', got a type"]),
    (link(S + "loss", h5py.SoftLink("/complete")),
     ["/steps/loss: expected a dataset '<f8' of this file, got a soft link"]),
    (put(S + "skipped", np.ones(ROWS, "<u8")), ["/steps/skipped: expected '<i8' [4], got '<u8' [4]"]),
    (put(S + "lr_applied", np.ones((ROWS, 3))), ["/steps/lr_applied: expected '<f8' [4, 2], got '<f8' [4, 3]"]),
    (put(S + "digest_batch", np.ones((ROWS, 31), "u1")),
     ["/steps/digest_batch: expected '|u1' [4, 32], got '|u1' [4, 31]"]),
    (put(S + "check", np.ones((3, 32), "u1")), ["/steps/check: expected '|u1' [4, 32], got '|u1' [3, 32]"]),
    (put(S + "tensors/digest_parameter", np.ones((ROWS, 2, 32), "u1")),
     ["/steps/tensors/digest_parameter: expected '|u1' [4, 3, 32], got '|u1' [4, 2, 32]"]),
    (put(S + "micro/loss", np.ones((ROWS, 3))), ["/steps/micro/loss: expected '<f8' [4, 2], got '<f8' [4, 3]"]),
    (put(S + "phases/place", np.ones((ROWS, 1), "<i8")), ["/steps/phases/place: expected '<i8' [4, 2], got '<i8' [4, 1]"]),
    (put(S + "sites/digest", np.ones((ROWS, 2, 32), "u1")),
     ["/steps/sites/digest: expected '|u1' [4, 1, 32], got '|u1' [4, 2, 32]"]),
    (without(S + "group"), [f"/steps/lr_applied: {GROUPLESS}"]),
    (put(S + "group", np.arange(2, dtype="<i4")),
     ["/steps/group: expected '<i8' [n], got '<i4' [2]", f"/steps/lr_applied: {GROUPLESS}"]),
    (put(S + "tensors/group", np.zeros(3)), ["/steps/tensors/group: expected '<u4' [3], got '<f8' [3]"]),
    (without(S + "tensors/group"), ["/steps/tensors/group: missing: expected a dataset '<u4'"]),
    (without(S + "tensors/dtype"), ["/steps/tensors/dtype: missing: expected a dataset of texts"]),
    (put(S + "tensors/dtype", ["f32", "float", "bf16"]),
     ['/steps/tensors/dtype: tensor 1: expected a dtype such as "bf16" or "f32", got "float"']),
    (put(S + "tensors/shape", ["2,3", "3,", "2x3"]),
     [f'/steps/tensors/shape: tensor {i}: expected at most 8 lengths as in "64,512", got "{text}"'
      for i, text in ((1, "3,"), (2, "2x3"))]),
    (put(S + "tensors/shape", ["1,1,1,1,1,1,1,1", "1,1,1,1,1,1,1,1,1", "1234567890123456789"]),
     [f'/steps/tensors/shape: tensor {i}: expected at most 8 lengths as in "64,512", got "{text}"'
      for i, text in ((1, "1,1,1,1,1,1,1,1,1"), (2, "1234567890123456789"))]),
    (put(S + "tensors/tensor", ["b", "w", "b"]), ['/steps/tensors/tensor: expected each name once, got "b" twice']),
    (put(S + "phases/phase", ["", "a\x1b[2J"]), [f'/steps/phases/phase: name 0: {NAME}""',
                                                 f'/steps/phases/phase: name 1: {NAME}"a?[2J"']),
    (put(S + "sites/site", ["x" * 1001]), [f'/steps/sites/site: name 0: {NAME}"{"x" * 60}"']),
    (put(S + "sites/site", ["x" * 1000]), []),
]
MORE = [
    (put(S + "step", np.array([1, 3, 3, 4])),
     ["/steps/step: row 2: expected update numbers that increase, from 1 on, got 3 after 3"]),
    (put(S + "step", np.arange(ROWS)),
     ["/steps/step: row 0: expected update numbers that increase, from 1 on, got 0 after 0"]),
    (put(S + "step", np.array([2, 5, 9, 10])), []),
    (put(S + "step", np.ones(ROWS)), ["/steps/step: expected '<i8' [n], got '<f8' [4]"]),
    (without(S + "step"), ["/steps/step: missing: expected a dataset '<i8'"]),
    (without("steps"), ["/steps: missing: expected a group"]),
    (put("steps", np.ones(2)), ["/steps: expected a group, got a dataset"]),
    (link("steps", h5py.SoftLink("/runs/a00/steps")), ["/steps: expected a group of this file, got a soft link"]),
    (link("steps", h5py.ExternalLink("x", "/y")), ["/steps: expected a group of this file, got an external link"]),
    (attribute("configuration", "lr: 1\n: 2\nx\ttab: y\nsteps 20\n"),
     [': attribute "configuration": line 2: expected "key: value", got ": 2"',
      ': attribute "configuration": line 4: expected "key: value", got "steps 20"']),
    (attribute("causes", "a: b\nlr\x07: c"), [': attribute "causes": line 2: expected "key: value", got "lr?: c"']),
    (attribute("configuration", "k" * 70), [f': attribute "configuration": line 1: expected "key: value", got "{"k" * 60}"']),
    (attribute("configuration", np.int64(1)), [": attribute \"configuration\": expected a text, got '<i8'"]),
    (attribute("digest", "md5"), [': attribute "digest": expected "keyed 1" or "leaf 1", got "md5"']),
    (attribute("digest", "leaf 1"), []),
    (lambda run: run.attrs.__delitem__("digest"), [': attribute "digest": missing: expected a text']),
    (lambda run: (without(*(f"{S}{name}" for name in ("tensors/digest_parameter", "phases/digest", "sites/digest")))(run),
                  run.attrs.__delitem__("digest")), []),
    (attribute("rank", np.int64(1)),
     [': attributes "rank" and "world": expected 0 <= rank < world, got 1 and 1']),
    (lambda run: (attribute("rank", np.int64(1))(run), attribute("world", np.int64(2))(run)), []),
    (attribute("rank", np.int64(-1)), [': attributes "rank" and "world": expected 0 <= rank < world, got -1 and 1']),
    (attribute("world", np.int64(0)), [': attributes "rank" and "world": expected 0 <= rank < world, got 0 and 0']),
    (attribute("world", np.int32(2)), [": attribute \"world\": expected '<i8', got '<i4'"]),
    (attribute("digest", ["keyed 1"]), [': attribute "digest": expected a text, got str [1]']),
]


def said_by(binary, folder, *words):
    done = subprocess.run([binary, *words], cwd=folder, text=True, check=False, capture_output=True, timeout=60)
    return [f"status {done.returncode}", *(done.stdout + done.stderr).splitlines()]


def look_at_runs(binary, folder, cases):
    file = folder / "x.h5"
    wanted = []
    with h5py.File(file, "w", libver=V110, track_order=True) as f:
        f.attrs["twinstep_trace"], f.attrs["kind"], f.attrs["writer"] = np.int64(2), "foreign", "made up"
        f["complete"] = np.int64(1)
        runs = f.create_group("runs")
        fill(runs.create_group("whole"))
        for number, (change, said) in enumerate(cases):
            name = f"a{number:02d}"
            f.copy("runs/whole", runs, name)
            change(runs[name])
            wanted += [f"runs/{name}{text}" for text in said]
        del runs["whole"]
    wanted = ["status 2", *wanted, f"twinstep: error: x.h5: {len(wanted)} problems (docs/FOREIGN.md)"]
    differ("foreign", wanted, said_by(binary, folder, "import", "--check", "x.h5"))


# ---- traces of twinstep ----

FORM = "expected the type and shape that docs/TRACE.md gives"
B = "runs/test/steps/"


# Of a trace as the first twinstep wrote it, without seals: what is done to it, and what is said.
OURS = [
    (put(B + "loss", np.ones(5, "<f4")), f"runs/test: damaged, or not a trace: loss: {FORM}"),
    (put(B + "loss", np.ones((5, 1)), maxshape=(None, 1)), f"runs/test: damaged, or not a trace: loss: {FORM}"),
    (put(B + "loss", np.ones(5), compression="gzip"), f"runs/test: damaged, or not a trace: loss: {FORM}"),
    (put(B + "loss", np.ones(4), maxshape=(None,)), 'runs/test: damaged: column "loss" has 4 updates of 5'),
    (put(B + "digest_batch", np.ones((5, 31), "u1")), f"runs/test: damaged, or not a trace: digest_batch: {FORM}"),
    (put(B + "lr_applied", np.ones((5, 2))), f"runs/test: damaged, or not a trace: lr_applied: {FORM}"),
    (put(B + "check", np.ones((3, 32), "u1"), maxshape=(None, 32)), 'runs/test: damaged: column "check" has 3 updates of 5'),
    (put(B + "step", np.ones(5)), f"runs/test: damaged, or not a trace: step: {FORM}"),
    (put(B + "tensors/tensor", np.ones(3)), f"runs/test: damaged, or not a trace: tensors/tensor: {FORM}"),
    (put(B + "ledger/seed", np.ones(3, "<u8")), f"runs/test: damaged, or not a trace: ledger/seed: {FORM}"),
    (put("pairs/baseline-test/steps/max_ulp", np.ones(5)), f"pairs/baseline-test: damaged, or not a trace: max_ulp: {FORM}"),
    (put("complete", np.ones(1, "<i8")), f"damaged, or not a trace: complete: {FORM}"),
    (put("complete", 1.0), f"damaged, or not a trace: complete: {FORM}"),
    (lambda f: attribute("replicate", np.int32(0))(f["runs/test"]),
     "runs/test: damaged, or not a trace: replicate: expected one integer of 64 bits"),
    (lambda f: attribute("mask", "0")(f["runs/test"]), "runs/test: damaged, or not a trace: mask: expected one integer of 64 bits"),
    (lambda f: attribute("first_step", np.ones(2, "<u8"))(f["runs/test"]),
     "runs/test: damaged, or not a trace: first_step: expected one integer of 64 bits"),
    (lambda f: attribute("arm", np.int64(1))(f["runs/test"]), "runs/test: damaged, or not a trace: arm: expected a fixed text"),
    (lambda f: attribute("arm", "test")(f["runs/test"]), "runs/test: damaged, or not a trace: arm: expected a fixed text"),
    (lambda f: attribute("configuration", ["a", "b"])(f["runs/test"]),
     "runs/test: damaged, or not a trace: configuration: expected a fixed text"),
    (link(B + "loss", h5py.SoftLink("/complete")), 'runs/test: "loss": expected an object of this file, got a soft link'),
    (link(B + "loss", h5py.ExternalLink("x", "/y")), 'runs/test: "loss": expected an object of this file, got an external link'),
    (link("runs/more", h5py.SoftLink("/runs/test")), '"more": expected an object of this file, got a soft link'),
    (link("notes", h5py.ExternalLink("x", "/y")), '"notes": expected an object of this file, got an external link'),
    (lambda f: f.attrs.modify("twinstep_trace", np.int64(0)), "trace version 0; this twinstep reads versions 1 to 3"),
    (lambda f: f.attrs.modify("twinstep_trace", np.int64(4)), "trace version 4; this twinstep reads versions 1 to 3"),
]


CHANGED = ("damaged: {} are not those that were sealed (docs/TRACE.md): something changed the file after it was "
           "written")
EARLY, LATE = CHANGED.format("names, texts, axes or configurations"), CHANGED.format("results")


def bits(name, place):
    """Changes the lowest bit of a number."""
    def change(f):
        value = f[name][place]
        f[name][place] = (value.view("<i8") ^ 1).view(value.dtype) if value.dtype.itemsize == 8 else value ^ 1
    return change


# Of a sealed trace.
SEALED = [
    (lambda f: f["runs/test"].attrs.modify("replicate", np.int64(1)), EARLY),
    (lambda f: f["env"].attrs.create("more", np.bytes_("x")), EARLY),
    (lambda f: f.create_group("more"), EARLY),
    (bits("runs/twin/steps/ledger/initial", 0), EARLY),
    (bits("runs/test/steps/byte", 3), EARLY),
    (bits("attribution/value", 1), LATE),
    (bits("attribution/closure", 0), LATE),
    (bits("verdict/text", 5), LATE),
    (bits("seal", 0), EARLY),
    (bits("seal", 40), LATE),
    (lambda f: f["seal"].__setitem__(slice(0, 32), np.zeros(32, "u1")), CHANGED.format("its seals")),
    (lambda f: f["seal"].__setitem__(slice(0, 64), np.zeros(64, "u1")), CHANGED.format("its seals")),
    (bits("runs/twin/steps/loss", 2), "runs/twin: damaged: the columns of update 3 do not match its check"),
    (bits("runs/test/steps/digest_root", (4, 31)),
     "runs/test: damaged: the columns of update 5 do not match its check"),
    (bits("pairs/baseline-test/steps/distance", 0),
     "pairs/baseline-test: damaged: the columns of update 1 do not match its check"),
]


def other_files(whole):
    """Bytes that are no trace, and what is said of them."""
    old = bytearray(whole)
    old[8] = 0
    return [
        (b"", "expected a trace, got an empty file"),
        (b"steps: 5\n", "expected a trace, got a file that is not HDF5"),
        (whole[:7], "truncated: 7 bytes of a trace"),
        (whole[:47], "truncated: 47 bytes of a trace"),
        (whole[:48], f"truncated: 48 bytes of {len(whole)}"),
        (whole[:-1], f"truncated: {len(whole) - 1} bytes of {len(whole)}"),
        (bytes(old), "expected a trace, got an HDF5 file of superblock version 0 (a trace has 3)"),
    ]


def unknown(f):
    """What a later version may add and a reader passes over (docs/TRACE.md)."""
    for place in ("env", "runs/test", "pairs/baseline-test", "attribution"):
        f[place].attrs["number"] = np.int64(4)
        f[place].attrs["numbers"] = np.arange(3.0)
        f[place].attrs["text"] = "of variable length"
        f[place].attrs["texts"] = ["a", "b"]
        f[place].attrs["empty"] = h5py.Empty("f8")
    f["more/steps/words"] = ["a", "b"]
    f["more/cube"], f["more/small"] = np.ones((2, 2, 2)), np.ones(2, "<f4")
    f["runs/test/steps/more"], f["runs/test/steps/more_digests"] = np.ones(5, "<i4"), np.ones((5, 32), "u1")
    f["type"] = np.dtype("<f8")


def look_at_ours(binary, folder):
    def judged(name, said):
        differ(name, ["status 2", f"twinstep: error: x.h5: {said}"], said_by(binary, folder, "attribute", "x.h5"))

    small = [f"--set=common.model.{key}" for key in ("hidden=16", "mlp=32", "layers=1")]
    said_by(binary, folder, "run", "lr-set-before-step", *small, "--quiet", "-o", "sealed.h5")
    shutil.copy(folder / "sealed.h5", folder / "early.h5")
    with h5py.File(folder / "early.h5", "r+", libver=V110) as f:
        f.attrs.modify("twinstep_trace", np.int64(1))
        del f["seal"]
    answers = [said_by(binary, folder, "attribute", name) for name in ("sealed.h5", "early.h5")]
    if answers[0][0] != "status 0" or "OUTSIDE THE FLOOR. Cause: schedule" not in answers[0][1]:
        raise Failed(f"the trace itself: {answers[0]}")
    differ("without seals", answers[0], answers[1])
    shutil.copy(folder / "early.h5", folder / "x.h5")
    with h5py.File(folder / "x.h5", "r+", libver=V110) as f:
        unknown(f)
    differ("what readers do not know", answers[0], said_by(binary, folder, "attribute", "x.h5"))
    shutil.copy(folder / "sealed.h5", folder / "x.h5")
    with h5py.File(folder / "x.h5", "r+", libver=V110) as f:
        f["complete"][()] = 0 # the closing seal says that the experiment ran to its end
    differ("complete", answers[0], said_by(binary, folder, "attribute", "x.h5"))
    for kind, cases in (("early", OURS), ("sealed", SEALED)):
        for number, (change, said) in enumerate(cases):
            shutil.copy(folder / f"{kind}.h5", folder / "x.h5")
            with h5py.File(folder / "x.h5", "r+", libver=V110) as f:
                change(f)
            judged(f"{kind} {number}", said)
    for number, (content, said) in enumerate(other_files((folder / "sealed.h5").read_bytes())):
        (folder / "x.h5").write_bytes(content)
        judged(f"bytes {number}", said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        look_at_runs(sys.argv[1], pathlib.Path(folder), RUNS)
        look_at_runs(sys.argv[1], pathlib.Path(folder), MORE)
        look_at_ours(sys.argv[1], pathlib.Path(folder))
    print("every text is as it should be")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        print(error)
        sys.exit(1)
