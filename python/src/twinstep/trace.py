# SPDX-License-Identifier: Apache-2.0
"""Reads a trace (docs/TRACE.md) with h5py: finished, killed, or still being written.

`step` is the commit mark of a run: every column is cut to its length, as it was when the trace was
loaded. Nothing stays open; a column is read when its values are asked for."""
import functools
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import numpy.typing as npt

from twinstep import _seal
from twinstep._decode import decode
from twinstep._hdf5 import open_file
from twinstep.results import Judgement

if TYPE_CHECKING:
    import pandas
    import xarray

    from twinstep.plots import Plots

Array = npt.NDArray[Any]


class NotATrace(ValueError):
    """The file is no trace that this version can read."""


def _open(path: pathlib.Path) -> h5py.File:
    """Opens a trace; one that is being written, or was killed, as a reader beside its writer."""
    try:
        return open_file(path, "r")
    except FileNotFoundError:
        raise
    except OSError as error:
        try:
            return open_file(path, "r", libver="latest", swmr=True)
        except OSError:
            raise NotATrace(f"{path}: {error}") from None


def _plain(value: Any) -> Any:
    """Returns an attribute as a Python value: text as str, a scalar as int or float."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return value.item() if isinstance(value, np.generic) else value


def _attributes(of: h5py.HLObject) -> dict[str, Any]:
    hidden = ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid")
    return {name: _plain(of.attrs[name]) for name in of.attrs if name not in hidden}


def _needs(library: str, error: ImportError) -> ImportError:
    return ImportError(f"this needs {library}, which is not installed: pip install {library} "
                       f"({error})")


def _dims(stored: h5py.Dataset) -> tuple[str, ...]:
    """Returns the names of the axes. The scale's own name is asked for last: HDF5 searches it."""
    found = []
    for i, axis in enumerate(stored.dims):
        word = next(iter(axis.keys()), f"axis{i}")
        if word.startswith("This is a netCDF dimension"):
            word = axis[0].name.rsplit("/", 1)[-1]
        found.append(word)
    return tuple(found)


class Column:
    """One column of a run. Its values are as stored: NaN (f64), -1 (i64) and zeros (digest) mean
    not measured."""

    def __init__(self, run: "Run", name: str, dims: tuple[str, ...], shape: tuple[int, ...],
                 attributes: Mapping[str, Any]) -> None:
        self.name, self.dims, self.attributes = name, dims, dict(attributes)
        self._run, self._shape = run, shape

    def __repr__(self) -> str:
        axes = ", ".join(f"{dim}: {size}" for dim, size in zip(self.dims, self.shape))
        return f"<Column {self.name} [{axes}] {self.units}: {self.long_name}>"

    def __array__(self, dtype: npt.DTypeLike | None = None) -> Array:
        return np.asarray(self.values, dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes `dims`; the first is the run's updates."""
        cut = self._run.updates if self.dims[:1] == ("step",) else self._shape[0]
        return (cut, *self._shape[1:])

    @property
    def units(self) -> str:
        """The unit, such as nat; 1 where there is none."""
        return str(self.attributes.get("units", "1"))

    @property
    def long_name(self) -> str:
        """What the column is, in words."""
        return str(self.attributes.get("long_name", ""))

    @property
    def is_digest(self) -> bool:
        """Whether the last axis holds the 32 bytes of a digest."""
        return self.dims[-1:] == ("byte",)

    @property
    def values(self) -> Array:
        """The array, read now from the file."""
        with _open(self._run.path) as file:
            stored = file[f"{self._run.place}/{self.name}"]
            return np.asarray(stored[:self.shape[0]])

    @property
    def hex(self) -> Array:
        """A digest's 64 hexadecimal digits; an empty text where it was not taken."""
        if not self.is_digest:
            raise TypeError(f"column {self.name} holds no digests")
        values = self.values
        texts = [row.tobytes().hex() if row.any() else ""
                 for row in values.reshape(-1, values.shape[-1])]
        return np.array(texts, dtype="U64").reshape(values.shape[:-1])


class Run(Mapping[str, Column]):
    """The columns of one training, by name: run["loss"], run["tensors/grad_norm"]."""

    def __init__(self, path: pathlib.Path, place: str, name: str, updates: int,
                 attributes: Mapping[str, Any]) -> None:
        self.path, self.place, self.name = path, place, name
        self.updates, self.attributes = updates, dict(attributes)

    @functools.cached_property
    def _read(self) -> tuple[dict[str, Column], dict[str, Array]]:
        """The columns, and the names along the axes, read at the first question."""
        columns: dict[str, Column] = {}
        names: dict[str, Array] = {}

        def take(name: str, stored: h5py.HLObject) -> None:
            if not isinstance(stored, h5py.Dataset) or stored.ndim == 0:
                return
            if name != "step" and h5py.h5ds.is_scale(stored.id):
                values = np.asarray(stored[:])
                is_text = values.dtype.kind == "S"
                if is_text:
                    values = np.char.decode(values, "utf-8")
                names[name.rsplit("/", 1)[-1]] = values
            else:
                dims = ("step",) if name == "step" else _dims(stored)
                columns[name] = Column(self, name, dims, stored.shape, _attributes(stored))
        with _open(self.path) as file:
            file[self.place].visititems(take)
        return columns, names

    @property
    def names(self) -> dict[str, Array]:
        """The names along an axis: names["tensor"]."""
        return self._read[1]

    def __repr__(self) -> str:
        return f"<Run {self.name}: {self.updates} updates>"

    def __getitem__(self, name: str) -> Column:
        try:
            return self._read[0][name]
        except KeyError:
            raise KeyError(f"run {self.name} has no column {name}; it has: "
                           f"{', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._read[0])

    def __len__(self) -> int:
        return len(self._read[0])

    @property
    def step(self) -> Array:
        """The updates, from 1, increasing."""
        return self["step"].values

    def to_xarray(self) -> "xarray.Dataset":
        """Returns an xarray.Dataset: a variable per column, with its units; digests as hexadecimal
        text, and i64 values that were not measured (-1) as they are stored."""
        try:
            import xarray
        except ImportError as error:
            raise _needs("xarray", error) from error
        variables = {}
        for name, column in self.items():
            if name != "step":
                digest = column.is_digest
                variables[name] = (column.dims[:-1] if digest else column.dims,
                                   column.hex if digest else column.values,
                                   {k: v for k, v in column.attributes.items()
                                    if k != "_FillValue"})
        used = {dim for dims, _, _ in variables.values() for dim in dims}
        coordinates: dict[str, Any] = {dim: values for dim, values in self.names.items()
                                       if dim in used}
        words = {"units": "1", "long_name": self["step"].long_name}
        coordinates["step"] = ("step", self.step, words)
        return xarray.Dataset(variables, coordinates, {"run": self.name, **self.attributes})

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns a pandas.DataFrame with one row per update, its index, and one column per number:
        lr_applied[0], tensors/grad_norm[lm_head.weight]. Digests are hexadecimal text; an i64 that
        was not measured is NA; what has no row per update is left out. `attrs["units"]` has the
        unit of each column."""
        try:
            import pandas
        except ImportError as error:
            raise _needs("pandas", error) from error
        series: dict[str, Any] = {}
        units: dict[str, str] = {}
        for name, column in self.items():
            if name == "step" or column.dims[:1] != ("step",):
                continue
            values = column.hex if column.is_digest else column.values
            for place in np.ndindex(values.shape[1:]):
                words = [str(self.names[dim][i]) if dim in self.names else str(i)
                         for dim, i in zip(column.dims[1:], place)]
                label = f"{name}[{', '.join(words)}]" if words else name
                part = pandas.Series(values[(slice(None), *place)])
                if values.dtype.kind == "i" and not name.startswith("streams/"):
                    part = part.astype("Int64").mask(part == -1)
                series[label], units[label] = part, column.units
        frame = pandas.DataFrame(series)
        frame.index = pandas.Index(self.step, name="step")
        frame.attrs = {"run": self.name, "units": units}
        return frame


class Trace:
    """A trace as twinstep writes it: runs by id, arms by name, and the verdict if there is one."""

    def __init__(self, path: pathlib.Path, file: h5py.File, seal: str) -> None:
        self.path = path
        self.seal = seal        # none, opening, unfinished or whole, as in `certify --json`
        self.attributes = _attributes(file)
        self.complete = bool(file["complete"][()]) if "complete" in file else False
        self.runs = self._runs(file, "runs")
        self.pairs = self._runs(file, "pairs")
        self.arrays = {name: self._array(file, name)
                       for top in ("floor", "attribution", "noise", "steps", "eval") if top in file
                       for name in self._names_of(file[top])}
        self._texts = {name: file[name][:].tobytes().decode("utf-8")
                       for name in ("verdict/text", "verdict/json", "first/place") if name in file}

    def _runs(self, file: h5py.File, top: str) -> dict[str, Run]:
        """Returns what has a row per update, by id. One without `step` is not begun yet."""
        return {name: Run(self.path, f"{top}/{name}/steps", name, int(group["steps/step"].shape[0]),
                          _attributes(group))
                for name, group in file.get(top, {}).items() if "steps/step" in group}

    @staticmethod
    def _names_of(group: h5py.Group) -> list[str]:
        return [item.name.lstrip("/") for item in group.values()
                if isinstance(item, h5py.Dataset) and item.ndim in (1, 2)
                and item.dtype.kind == "f"]

    @staticmethod
    def _array(file: h5py.File, name: str) -> Array:
        return np.asarray(file[name][:])

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not finished"
        return f"<Trace {self.path.name}: {', '.join(self.runs) or 'no runs'}; {state}>"

    def arm(self, name: str) -> Run:
        """Returns the run that is the arm itself: "baseline" or "test"."""
        if name not in self.runs:
            raise KeyError(f"{self.path.name} has no arm {name}; its runs: "
                           f"{', '.join(self.runs) or 'none'}")
        return self.runs[name]

    @property
    def text(self) -> str:
        """The verdict as `twinstep run` printed it; empty where there is none yet."""
        return self._texts.get("verdict/text", "")

    @functools.cached_property
    def verdict(self) -> Judgement | None:
        """The verdict that stands in the file; None where it was not finished."""
        text = self._texts.get("verdict/json")
        return decode(Judgement, json.loads(text)) if text else None

    @property
    def plot(self) -> "Plots":
        """Pictures of this trace, by matplotlib: trace.plot.gap()."""
        from twinstep.plots import Plots
        return Plots(self)


def load(path: str | os.PathLike[str]) -> Trace:
    """Returns the trace (or floor file) in this file. Raises NotATrace, also where the file does
    not agree with its seals, and FileNotFoundError."""
    place = pathlib.Path(path)
    with _open(place) as file:
        version = file.attrs.get("twinstep_trace")
        if version is None:
            raise NotATrace(f"{place}: HDF5, but no trace: the root attribute twinstep_trace is "
                            "absent")
        if int(version) > 3:
            raise NotATrace(f"{place}: trace version {int(version)}; this package reads 1 to 3")
        try:
            seal = _seal.check(file)
        except _seal.Broken as error:
            raise NotATrace(f"{place}: damaged: {error} (docs/TRACE.md)") from None
        return Trace(place, file, seal)
