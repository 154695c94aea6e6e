# SPDX-License-Identifier: Apache-2.0
"""Pictures of a trace, as notebooks/ draws them. Each draws on `axes`, or on a new figure, and
returns the axes, so everything can be changed afterwards. matplotlib is imported here alone."""
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twinstep.trace import Array, Run, Trace, _needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _axes(axes: Any, size: tuple[float, float]) -> Any:
    if axes is not None:
        return axes
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise _needs("matplotlib", error) from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def _above_zero(values: Array) -> Array:
    """Returns values with NaN where they are 0 or less, which a log axis cannot show."""
    return np.where(values > 0, values, np.nan)


class Plots:
    """The pictures of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def _only(self, trace: Trace) -> Run:
        """Returns the one run of a trace, as a recording has it."""
        if len(trace.runs) != 1:
            raise ValueError(f"{trace.path.name} has {len(trace.runs)} runs "
                             f"({', '.join(trace.runs) or 'none'}): give one, trace.runs[NAME]")
        return next(iter(trace.runs.values()))

    def _runs(self, against: Trace | Run | None) -> tuple[Run, Run, tuple[str, str]]:
        """Returns the two runs that are drawn, and what to call them."""
        runs = self._trace.runs
        if against is not None:
            a = self._only(self._trace)
            b = self._only(against) if isinstance(against, Trace) else against
            names = (a.name, b.name) if a.path == b.path else (a.path.name, b.path.name)
            return a, b, names
        if "baseline" in runs and "test" in runs:
            return runs["baseline"], runs["test"], ("baseline", "test")
        if len(runs) == 2:
            a, b = runs.values()
            return a, b, (a.name, b.name)
        raise ValueError(f"{self._trace.path.name} has no two arms, but "
                         f"{', '.join(runs) or 'none'}: give against=, another trace or one of "
                         "its runs")

    def _both(self, column: str, against: Trace | Run | None
              ) -> tuple[Array, Array, Array, tuple[str, str]]:
        """Returns the updates that both runs have, a column of each, and what to call them."""
        a, b, names = self._runs(against)
        step, of_a, of_b = np.intersect1d(a.step, b.step, return_indices=True)
        return step, a[column].values[of_a], b[column].values[of_b], names

    def curves(self, column: str = "loss", *, against: Trace | Run | None = None,
               axes: "Axes | None" = None) -> "Axes":
        """Draws a column [step] of both arms, or of this recording and of `against`, another
        recording or a run of it."""
        step, a, b, names = self._both(column, against)
        axes = _axes(axes, (7, 3))
        axes.plot(step, a, label=names[0])
        axes.plot(step, b, "--", label=names[1])
        axes.set_ylabel(f"{column}, {self._runs(against)[0][column].units}")
        axes.set_xlabel("update")
        axes.legend()
        return axes

    def gap(self, column: str = "loss", *,
            against: Trace | Run | Sequence[Trace | Run] | None = None,
            floor: Trace | None = None, axes: "Axes | None" = None) -> "Axes":
        """Draws |A - B| of a column over a log axis; updates without a difference have no point.

        A and B are the arms, or this recording and `against`: another one, a run of it, or a list.
        `column` may be "distance", that of the weights of arms. `floor` is a loaded floor file
        (twinstep noise -o), whose pairs become a band with their median; it holds loss, distance
        and grad_norm, of which it has |A - B| / |A|: then the gap is drawn so, too."""
        axes = _axes(axes, (7, 3))
        relative = floor is not None and column == "grad_norm"
        sign = "|A - B| / |A|" if relative else "|A - B|"
        others = against if isinstance(against, Sequence) else [against]
        for i, other in enumerate(others):
            label = sign
            if column == "distance":
                pair = self._trace.pairs["baseline-test"]
                step, gap = pair.step, pair["distance"].values
            else:
                step, a, b, names = self._both(column, other)
                with np.errstate(divide="ignore", invalid="ignore"):
                    gap = np.abs(a - b) / (np.abs(a) if relative else 1)
                label += "" if other is None else f", {names[0]}, {names[1]}"
            if floor is not None and i == 0:
                self._band(axes, floor, column, step)
            axes.plot(step, _above_zero(gap), "o-", label=label)
        axes.set_yscale("log")
        axes.set_ylabel(f"{sign} of {column}")
        axes.set_xlabel("update")
        axes.legend()
        return axes

    @staticmethod
    def _band(axes: Any, floor: Trace, column: str, step: Array) -> None:
        """Draws the pairs of a floor file, from the least to the largest, and their median."""
        name = f"noise/pairs_{column}"
        if name not in floor.arrays:
            known = [key.rsplit("pairs_", 1)[1] for key in floor.arrays if "noise/pairs_" in key]
            raise KeyError(f"{floor.path.name} has no floor of {column}; it has: "
                           f"{', '.join(known) or 'none'}")
        shown = step[step <= floor.arrays[name].shape[1]]
        pairs = floor.arrays[name][:, shown - 1]        # of update 1 and on
        axes.fill_between(shown, pairs.min(axis=0), pairs.max(axis=0), color="0.8",
                          label=f"{len(pairs)} A/A pairs")
        axes.plot(shown, np.median(pairs, axis=0), color="0.5")

    def shares(self, *, axes: "Axes | None" = None) -> "Axes":
        """Draws each cause's share of the way between the arms, %, with its interval."""
        causes = [cause for cause in self._verdict().causes if cause.share is not None]
        if not causes:
            raise ValueError(f"{self._trace.path.name}: nothing was shared out between causes")
        share, low, high = (100 * np.array([getattr(cause, name) for cause in causes], dtype=float)
                            for name in ("share", "low", "high"))
        axes = _axes(axes, (7, 1 + 0.4 * len(causes)))
        place = np.arange(len(causes))
        axes.barh(place, share, xerr=(share - low, high - share), capsize=3, color="0.7")
        axes.set_yticks(place, [cause.cause for cause in causes])
        axes.invert_yaxis()
        axes.axvline(0, color="k", linewidth=0.8)
        axes.set_xlabel("share of the way between the arms, %")
        return axes

    def shares_over_time(self, *, axes: "Axes | None" = None) -> "Axes":
        """Draws the shares after each marked update, %. Needs a trace of up to five causes."""
        marks = self._verdict().marks
        names: Sequence[str] = list(marks[0].shares) if marks else []
        if not names:
            raise ValueError(f"{self._trace.path.name}: the way was shared out at its end alone")
        axes = _axes(axes, (7, 3))
        for name in names:
            values = np.array([mark.shares[name] for mark in marks], dtype=float)
            axes.plot([mark.update for mark in marks], 100 * values, "o-", label=name)
        axes.set_ylabel("share, %")
        axes.set_xlabel("update")
        axes.legend()
        return axes

    def _verdict(self) -> Any:
        verdict = self._trace.verdict
        if verdict is None:
            raise ValueError(f"{self._trace.path.name} holds no verdict: twinstep attribute judges "
                             "it")
        return verdict
