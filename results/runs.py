"""Many runs together, compared with each other."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from results.compare import Comparison, compare
from results.location import location
from results.measure import Budget, Measure, NotComparable
from results.paired import paired as pair
from results.run_set import RunSet
from results.score import common_budget
from results.views import lines, view

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from results.plot import Drawn

SHOWN = 50  # runs that a notebook lists at most


class How(TypedDict, total=False):
    """How a comparison takes one number from each run. Each has the meaning, and the default, that `Measure` says."""

    metric: str | Iterable[str]  # `Measure.metrics`
    reduce: str
    target: Iterable[tuple[str, float]]  # `Measure.targets`; each adds the costs up to it
    cost: str | Iterable[str]  # `Measure.costs`
    at: Budget | None  # `Measure.at`, or a cost and "common"
    subject: str | None  # None: peer if no run has a server, else global
    split: str
    over: str


class Compared(How, total=False):
    """How runs are compared, see `Runs.compare`."""

    paired: bool
    baseline: str | Iterable[str]
    unfinished: bool


class Runs(RunSet):
    """Several runs, in the order in which they were given, with comparisons of them."""

    def __repr__(self) -> str:
        return f"Runs({len(self)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: a line for each run, for the first 50."""
        import pandas as pd

        heads, rows, reasons = lines([view(run, run.id) for run in self.runs[:SHOWN]])
        return (
            f"{pd.DataFrame(rows, columns=list(heads)).to_html(index=False)}<pre>{escape(chr(10).join(reasons))}</pre>"
        )

    def compare(
        self, by: str | Iterable[str] | None = None, columns: str | Iterable[str] = (), **how: Unpack[Compared]
    ) -> pd.DataFrame:
        """Compares groups of runs that differ in their seed alone.

        Returns one row for each group and metric, with mean, std (the sample standard deviation over runs), runs (how
        many have the number), missing (how many do not), censored (how many have not reached a target, and make the
        mean a lower bound), best, and p of the test against the best of its column, see `Comparison.frame`. With
        `paired=True`, runs are compared seed by seed with a baseline, which must have the same scenario but for the
        keys `by`: one row for each case and metric, with the fields of `results.ranking.Difference`, and p_holm, which
        is p corrected over the cases. Warns of runs that do not count.

        by, columns: the keys whose values make the groups; `by` is by default all keys that differ.
        how: see `How`; baseline, values of keys, such as "fedavg" or "algorithm=fedavg", by default the first
            algorithm or, if that is the same everywhere, the first value of the first key; unfinished, whether runs
            that are not finished count.

        Raises UnknownKey, and NotComparable (a ValueError) where runs cannot be compared so.
        """
        found = self.compared(by, columns, **how)
        for note in found.notes:
            warnings.warn(note, stacklevel=2)
        return found.frame

    def compared(
        self,
        by: str | Iterable[str] | None = None,
        columns: str | Iterable[str] = (),
        *,
        paired: bool = False,
        baseline: str | Iterable[str] = (),
        unfinished: bool = False,
        **how: Unpack[How],
    ) -> Comparison:
        """Returns what `raysim compare` makes a table of, with its notes."""
        rows, heads, chosen = None if by is None else _listed(by), _listed(columns), _listed(baseline)
        if paired and heads:
            raise NotComparable(f"columns: must not be given with paired, got {heads}; leave them out")
        if chosen and not paired:
            raise NotComparable(f"baseline: must be given with paired=True, got {chosen}; add that")
        measure = self.measure(**how)
        if paired:
            return pair(self, rows, chosen, measure, unfinished)
        return compare(self, rows, heads, measure, unfinished)

    def plot(
        self, metric: str = "accuracy", x: str | None = None, axes: Axes | None = None, **how: Unpack[Drawn]
    ) -> Any:
        """Draws learning curves as reports do, with a band over seeds, and returns matplotlib's axes.

        A line is the mean over the runs of a group, which differ in their seed alone. Warns of runs that are left out.

        x: round, virtual_time, bytes, up_bytes, down_bytes or seconds; None: virtual_time where delays are in seconds,
            else round.
        axes: where to draw; None: in a new figure of pyplot.
        how: by, keys whose values make the lines; split; subject, whose own models (client, unseen or peer); band,
            which is minmax, std, ci (95 %) or none; unfinished, whether runs that are not finished are drawn beside
            some that are.

        Raises NotComparable (a ValueError) for what cannot be drawn, and UnknownKey.
        """
        from results.plot import plot

        return plot(self, metric, x, axes, **how)

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        by: str | Iterable[str] | None = None,
        *,
        svg: str | os.PathLike[str] | None = None,
    ) -> Path:
        """Writes one HTML page with figures of the runs, as `raysim report` does, and returns where it is.

        by: keys whose values make a line; by default all that differ, except the seed. svg: a folder for each figure as
        a file. Raises UnknownKey; NotComparable where runs of a line differ in more
        than their seed; and CannotWrite.
        """
        from results.report import report

        page = location(path)
        made = report(self, None if by is None else _listed(by))
        made.write(page, None if svg is None else location(svg))
        return page

    def measure(self, **how: Unpack[How]) -> Measure:
        """Returns how these runs are measured. Raises NotComparable for settings that make no sense together."""
        others: dict[str, Any] = dict(how)
        private = any((run.info.get("privacy") or {}).get("epsilon") is not None for run in self.runs)
        usual = ("accuracy", "epsilon") if private and not others.get("at") else ("accuracy",)
        metrics, targets = _listed(others.pop("metric", usual)), tuple(others.pop("target", ()))
        subject = others.pop("subject", None) or self.subject
        if (at := others.get("at")) and at[1] == "common":
            others["at"] = at[0], common_budget(self, at[0])
        if "cost" in others:
            others["costs"] = _listed(others.pop("cost"))
        return Measure(metrics, targets=targets, subject=subject, larger=self.directions, **others)


def _listed(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
