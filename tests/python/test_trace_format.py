# SPDX-License-Identifier: Apache-2.0
"""labels: unit

A trace of `run` against docs/TRACE.md, by h5py alone: every object with its type, shape, chunks,
fill value, units, attributes and scales, and the columns against the tables of the page."""
import math
import pathlib
import re
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

import twinstep

FOLDER = tempfile.TemporaryDirectory()
TRACE = pathlib.Path(FOLDER.name) / "out.h5"
PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/TRACE.md").read_text(encoding="utf-8")
UPDATES = 5
TYPES = {"f64": "<f8", "i64": "<i8", "u64": "<u8", "u8": "|u1"}
# Rows that a run of one CPU, one rank and our own loop does not have, as the page says.
ELSEWHERE = ("phases/place", "ranks/digest", "ranks/first_tensor")


def setUpModule():
    unittest.addModuleCleanup(FOLDER.cleanup)
    small = [f"--set=common.model.{key}" for key in ("hidden=16", "mlp=32", "layers=1")]
    subprocess.run([twinstep.program(), "run", "lr-set-before-step", *small, "--checkpoint-every", "2",
                    "--reproducible", "--quiet", "-o", TRACE], check=False, stdout=subprocess.DEVNULL)


def section(title):
    return re.search(rf"^## {re.escape(title)}.*?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]


def run_columns():
    """Name: (axes, type, units) of the page's table of a run's columns, in its order."""
    found = {}
    for names, shape, units in re.findall(r"^\| (`[^|]+) \| (\[[^|]+) \| (\w+) \|", section("Columns of a run"), re.M):
        axes = re.search(r"\[(.*)\]", shape)[1].split(", ")
        kind = "u8" if axes[-1] == "byte" else (shape.split("]")[1].strip() or "f64")
        for name in re.findall("`([^`]+)`", names):
            found[name] = (axes, TYPES[kind], units)
    return found


def pair_columns():
    of_run = run_columns()
    found = {name: of_run[name] for name in ("step", "check")}
    found |= {f"gap_{name}": what for name, what in of_run.items() if what[:2] == (["step"], "<f8")}
    for name, kind, units in re.findall(r"^\| `(\w+)`( i64)? \| (\w+) \|", section("Columns of a pair"), re.M):
        found[name] = (["step"], TYPES[kind.strip() or "f64"], units)
    return found


def is_scale(dataset):
    return h5py.h5ds.is_scale(dataset.id)


def address(thing):
    """Which object of the file it is; HDF5 looks through the whole file for the name of a reference."""
    return h5py.h5o.get_info(thing.id).addr


def scales_of(dataset, axis):
    """Where the scales of an axis are."""
    found = []
    h5py.h5ds.iterate(dataset.id, axis, lambda scale: found.append(h5py.h5o.get_info(scale).addr), 0)
    return found


def chunk_rows(row_bytes, updates):
    rows = 64
    while rows < 512 and updates > 64 * rows:
        rows *= 2
    while rows > 1 and rows * row_bytes > 65536:
        rows //= 2
    return rows


class Format(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = h5py.File(TRACE, "r")
        cls.addClassCleanup(cls.file.close)
        cls.datasets = {}
        cls.file.visititems(lambda name, it: cls.datasets.update({name: it})
                            if isinstance(it, h5py.Dataset) else None)

    def text_of(self, place, name):
        """An attribute that must be a text of its own length, in UTF-8, padded with zeros."""
        kind = place.attrs.get_id(name).get_type()
        self.assertIsInstance(kind, h5py.h5t.TypeStringID, (place.name, name))
        self.assertFalse(kind.is_variable_str(), (place.name, name))
        self.assertEqual((kind.get_strpad(), kind.get_cset()), (h5py.h5t.STR_NULLPAD, h5py.h5t.CSET_UTF8))
        value = place.attrs[name]
        value = value.decode() if isinstance(value, bytes) else value
        self.assertIn(kind.get_size(), (len(value.encode()), 1), (place.name, name))
        return value

    def number_of(self, place, name, kind):
        of = place.attrs.get_id(name)
        self.assertEqual((of.shape, of.dtype.str), ((), kind), (place.name, name))
        return int(place.attrs[name])

    def test_root(self):
        root = self.file["/"]
        self.assertEqual(self.number_of(root, "twinstep_trace", "<i8"), 3)
        self.assertEqual([self.text_of(root, name) for name in ("Conventions", "NX_class", "default")],
                         ["twinstep-trace-3", "NXroot", "runs/baseline"])
        self.assertEqual([self.text_of(root, name) for name in ("baseline", "test", "steps")],
                         ["baseline", "test", str(UPDATES)])
        complete, seal = self.file["complete"], self.file["seal"]
        self.assertEqual((complete.shape, complete.dtype.str, int(complete[()])), ((), "<i8", 1))
        self.assertEqual(complete.fillvalue, 0)
        self.assertEqual((seal.shape, seal.dtype.str, seal.fillvalue), ((64,), "|u1", 0))
        self.assertTrue(seal[:32].any() and seal[32:].any() and (seal[:32] != seal[32:]).any())

    def test_links(self):
        """All are hard but those of the arms, which lead to the runs of no replicate and no mask."""
        def look(group):
            for name in group:
                link = group.get(name, getlink=True)
                self.assertIsInstance(link, h5py.SoftLink if group.name == "/arms" else h5py.HardLink,
                                      (group.name, name))
                if isinstance(link, h5py.HardLink) and isinstance(group[name], h5py.Group):
                    look(group[name])
        look(self.file)
        self.assertEqual({name: self.file["arms"].get(name, getlink=True).path for name in self.file["arms"]},
                         {"baseline": "/runs/baseline", "test": "/runs/test"})

    def test_runs(self):
        wanted = {"baseline": ("baseline", 0, 0), "test": ("test", 0, 0), "floor-rerun": ("baseline", 0, 0),
                  "twin": ("baseline", 0, 0), "hybrid-1": ("baseline", 0, 1)}
        for name, run in self.file["runs"].items():
            self.assertIn(name, wanted)
            arm, replicate, mask = wanted[name]
            self.assertEqual([self.text_of(run, one) for one in ("NX_class", "default", "arm")],
                             ["NXentry", "steps", arm])
            self.assertEqual(self.number_of(run, "replicate", "<i8"), replicate)
            self.assertEqual(self.number_of(run, "mask", "<u8"), mask)
            first = self.number_of(run, "first_step", "<u8")
            steps = run["steps"]
            np.testing.assert_array_equal(steps["step"][:], np.arange(first, UPDATES + 1))
            groups, tensors = self.text_of(run, "groups"), steps["tensors/tensor"].shape[0]
            self.assertEqual((len(groups), set(groups) <= set("01")), (tensors, True))
            self.assertIn("optimizer.name: ", self.text_of(run, "configuration"))
            self.assertEqual([self.text_of(steps, one) for one in ("NX_class", "signal", "axes")],
                             ["NXdata", "loss", "step"])
        self.assertEqual(set(self.file["runs"]), set(wanted))
        pair = self.file["pairs/baseline-test"]
        self.assertEqual([self.text_of(pair, one) for one in ("NX_class", "default", "a", "b")],
                         ["NXentry", "steps", "baseline", "test"])
        self.assertEqual([self.text_of(pair["steps"], one) for one in ("NX_class", "signal", "axes")],
                         ["NXdata", "distance", "step"])

    def look_at_column(self, steps, name, axes, kind, units):
        column = steps[name]
        self.assertEqual((column.dtype.str, column.ndim), (kind, len(axes)), name)
        self.assertEqual(self.text_of(column, "units"), units, name)
        self.assertNotEqual(self.text_of(column, "long_name"), "", name)
        self.assertEqual((column.maxshape[0], column.maxshape[1:]), (None, column.shape[1:]), name)
        self.assertIsNone(column.compression)
        rows = 64 if name == "step" else chunk_rows(math.prod(column.shape[1:]) * column.dtype.itemsize, UPDATES)
        self.assertEqual(column.chunks, (rows, *column.shape[1:]), name)
        if kind == "<f8":
            self.assertTrue(math.isnan(column.fillvalue) and math.isnan(column.attrs["_FillValue"]), name)
            self.assertEqual((column.attrs.get_id("_FillValue").shape, column.attrs.get_id("_FillValue").dtype.str),
                             ((), "<f8"))
        else:
            self.assertEqual((column.fillvalue, "_FillValue" in column.attrs), ({"<i8": -1, "|u1": 0}[kind], False))
        if name == "step":
            self.assertTrue(is_scale(column))
            return
        folder = name.rpartition("/")[0]
        for axis, scale in enumerate(axes):
            inside = f"{folder}/" if scale not in ("step", "group", "byte") else ""
            self.assertEqual(scales_of(column, axis), [address(steps[inside + scale])], name)

    def test_columns_are_those_of_the_page(self):
        of_run = run_columns()
        self.assertGreater(len(of_run), 45)
        for run in self.file["runs"]:
            steps, others = self.file[f"runs/{run}/steps"], set()
            for name, what in of_run.items():
                if name in ELSEWHERE:
                    self.assertNotIn(name, steps)
                else:
                    self.look_at_column(steps, name, *what)
                    self.assertEqual(steps[name].shape[0], steps["step"].shape[0], name)
            for name, dataset in self.datasets.items():
                inside = name.removeprefix(f"runs/{run}/steps/")
                if inside != name and inside not in of_run and not is_scale(dataset):
                    others.add(inside)
            self.assertEqual(others, {f"ledger/{name}" for name in ("initial", "op", "seed", "stream")})
        steps = self.file["pairs/baseline-test/steps"]
        for name, what in pair_columns().items():
            self.look_at_column(steps, name, *what)
        self.assertEqual(set(steps), set(pair_columns()) | {"byte"})

    def test_long_names_say_what_the_page_says(self):
        steps = self.file["runs/test/steps"]
        for name, said in {"step": "update, 1-based", "check": "digest of the row, all columns",
                           "loss": "loss of the update", "phases/digest": "digest of what the phase wrote",
                           "sites/digest": "digest of the activation",
                           "ledger/words": "random words the consumer drew in the update"}.items():
            self.assertEqual(self.text_of(steps[name], "long_name"), said)
        pair = self.file["pairs/baseline-test/steps"]
        self.assertEqual(self.text_of(pair["gap_loss"], "long_name"), "a - b: loss of the update")
        self.assertEqual(self.text_of(pair["max_ulp"], "units"), "ulp")

    def test_axes_have_names_and_numbers(self):
        steps = self.file["runs/test/steps"]
        for name, said in {"group": "parameter group, table order", "byte": "byte of a digest",
                           "micro/micro": "micro-batch of the update"}.items():
            scale = steps[name]
            self.assertEqual((scale.dtype.str, is_scale(scale), scale.chunks), ("<i8", True, None))
            np.testing.assert_array_equal(scale[:], np.arange(scale.shape[0]))
            self.assertEqual((self.text_of(scale, "units"), self.text_of(scale, "long_name")), ("1", said))
        self.assertEqual((steps["byte"].shape, steps["group"].shape), ((32,), (steps["lr_applied"].shape[1],)))
        for name, said in {"tensors/tensor": "trainable tensor, table order",
                           "phases/phase": "phase of the loop, loop order",
                           "sites/site": "activation site, forward order",
                           "ledger/consumer": "consumer of random words",
                           "streams/stream": "random stream"}.items():
            scale = steps[name]
            told = [one.decode() for one in scale[:]]
            self.assertEqual((scale.dtype.kind, is_scale(scale), self.text_of(scale, "long_name")), ("S", True, said))
            self.assertEqual((len(set(told)), max(map(len, told))), (len(told), scale.dtype.itemsize), name)
        self.assertEqual([one.decode() for one in steps["phases/phase"][:]],
                         ["fetch", "forward", "backward", "count", "clip", "schedule", "optimize", "log", "zero"])
        self.assertIn(b"model.embed_tokens.weight", steps["tensors/tensor"][:])
        self.assertIn(b"init/embedding", steps["ledger/consumer"][:])
        for name in ("stream", "op", "seed", "initial"):
            fixed = steps[f"ledger/{name}"]
            self.assertEqual((fixed.dtype.str, fixed.shape), ("<u8", steps["ledger/consumer"].shape))
            self.assertEqual(self.text_of(fixed, "units"), "words" if name == "initial" else "1")
            self.assertEqual(scales_of(fixed, 0), [address(steps["ledger/consumer"])])
        embedding = list(steps["ledger/consumer"][:]).index(b"init/embedding")
        self.assertGreater(steps["ledger/initial"][embedding], 0)

    def test_every_axis_has_one_scale(self):
        """And a scale says of which axes it is one (REFERENCE_LIST), no more and no fewer."""
        places = {address(dataset): dataset for dataset in self.datasets.values()}
        used = {}
        for name, dataset in self.datasets.items():
            if is_scale(dataset) or name.startswith("snapshots/"):
                continue
            for axis in range(dataset.ndim):
                scale, = scales_of(dataset, axis)
                self.assertEqual(places[scale].shape, (dataset.shape[axis],), name)
                used.setdefault(scale, set()).add((address(dataset), axis))
        self.assertGreater(len(used), 20)
        for scale, axes in used.items():
            references = places[scale].attrs["REFERENCE_LIST"]
            told = [(address(self.file[one]), int(axis)) for one, axis in references]
            self.assertEqual((set(told), len(told)), (axes, len(axes)), scale)

    def test_arrays_and_texts(self):
        arrays = texts = 0
        for name, dataset in self.datasets.items():
            if name.split("/")[0] not in ("floor", "attribution", "verdict", "first", "steps"):
                continue
            if dataset.dtype.str == "|u1":
                self.assertEqual((dataset.maxshape, dataset.chunks, dataset.fillvalue), ((None,), (4096,), 0), name)
                self.assertEqual((is_scale(dataset), self.text_of(dataset, "units"), self.text_of(dataset, "long_name")),
                                 (True, "1", "bytes of a UTF-8 text"), name)
                dataset[:].tobytes().decode()
                texts += 1
            elif dataset.dtype.str == "<f8":
                self.assertEqual((dataset.chunks, dataset.maxshape), (None, dataset.shape), name)
                self.assertTrue(math.isnan(dataset.fillvalue), name)
                self.assertNotEqual("", self.text_of(dataset, "long_name") and self.text_of(dataset, "units"), name)
                self.assertEqual(is_scale(dataset), dataset.ndim == 1, name)
                for number, axis in enumerate(("row", "column") if dataset.ndim == 2 else ()):
                    scale = self.file[f"{name}_{axis}"]
                    self.assertEqual(scales_of(dataset, number), [address(scale)])
                    self.assertEqual((scale.dtype.str, self.text_of(scale, "long_name")), ("<i8", axis))
                    np.testing.assert_array_equal(scale[:], np.arange(dataset.shape[number]))
                arrays += 1
        self.assertGreater(arrays, 8)
        self.assertGreaterEqual(texts, 3)
        self.assertEqual(list(self.file["floor/equal"][:]), [1, 1])
        self.assertEqual(list(self.file["attribution/closure"][:])[:1], [1])
        self.assertIn("OUTSIDE THE FLOOR", self.file["verdict/text"][:].tobytes().decode())

    def test_stored_states(self):
        for name in ("baseline", "test"):
            states = self.file[f"snapshots/{name}"]
            self.assertEqual((self.number_of(states, "format", "<i8"), self.number_of(states, "every", "<u8"),
                              self.text_of(states, "byte_order")), (2, 2, "little"))
            self.assertRegex(self.text_of(states, "layout"), "^[0-9a-f]{64}$")
            self.assertEqual(list(states["step"][:]), [0, 2, 4])
            self.assertEqual((states["state"].dtype.str, states["digest"].dtype.str), ("|u1", "|u1"))


if __name__ == "__main__":
    unittest.main()
