"""The numbers by which a report ranks methods: a metric of the runs that are over, and what had been spent by then."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from results.cost import Costs, Point
from results.groups import Groups, RunGroup
from results.measure import Measure, NotComparable
from results.reader import Run
from results.report.draw import unit_along
from results.score import series_of
from results.texts import in_full

COSTS = {
    "virtual_time": "virtual time",
    "rounds": "rounds",
    "bytes": "bytes, up and down",
    "flops": "FLOP of clients",
    "energy": "energy",
}
_UNITS = {"bytes": "B", "flops": "FLOP", "energy": "J"}


@dataclass(frozen=True)
class Standings:
    """The evaluations of a metric in the runs that are over."""

    groups: Groups
    metric: str
    larger: bool
    counted: tuple[tuple[Run, ...], ...]
    """By place of the group: its runs that count."""
    points: Mapping[str, list[Point]]
    """By run."""
    spent: Mapping[str, Mapping[str, list[float]]]
    """By cost and run, for each of its points. The first cost is the first axis: virtual time, or rounds."""

    @property
    def counting(self) -> list[RunGroup]:
        """The groups of which a run counts."""
        return [group for group in self.groups.groups if self.counted[group.place]]

    @property
    def cost(self) -> str:
        """The first cost: virtual_time or rounds."""
        return next(iter(self.spent))

    @property
    def sign(self) -> int:
        return 1 if self.larger else -1

    def common(self, cost: str) -> float:
        """Returns the largest budget that all runs have spent."""
        return min(of_run[-1] for of_run in self.spent[cost].values())

    def within(self, cost: str, budget: float, run: Run) -> float:
        """Returns the value of a run's last evaluation within a budget; NaN if it has none."""
        place = int(np.searchsorted(self.spent[cost][run.id], budget, side="right"))
        return self.points[run.id][place - 1].value if place else math.nan

    def values(self, group: RunGroup, cost: str, budget: float) -> list[float]:
        """Returns the values of a group's runs within a budget."""
        return [self.within(cost, budget, run) for run in self.counted[group.place]]

    def of(self, group: RunGroup) -> dict[Hashable, float]:
        """Returns a group's numbers by seed, at the largest first cost that all runs have spent."""
        values = self.values(group, self.cost, self.common(self.cost))
        return {run.keys.get("seed"): value for run, value in zip(self.counted[group.place], values, strict=True)}

    @property
    def where(self) -> str:
        """Says at what cost groups are ranked, such as "at virtual time 400 seconds" or "after 200 rounds"."""
        budget = in_full(self.common(self.cost))
        if self.cost == "rounds":
            return f"after {budget} rounds"
        return f"at virtual time {budget}{self._unit}"

    @property
    def _unit(self) -> str:
        """The unit of virtual time, to follow a number."""
        return self.groups.unit.replace("(", "").replace(")", "")

    def amount(self, cost: str, number: float) -> str:
        """Returns what was spent as text, with its unit, such as "2.12 MB"."""
        if cost in _UNITS:
            return EngFormatter(unit=_UNITS[cost], places=2, sep=" ")(number)
        return f"{number:.4g} rounds" if cost == "rounds" else f"{number:.4g}{self._unit} of virtual time"

    def axis(self, cost: str) -> str:
        """Returns the label of an axis of a cost."""
        return COSTS[cost] + (self.groups.unit if cost == "virtual_time" else "")

    @property
    def name(self) -> str:
        """The metric, in words."""
        return self.metric.replace("_", " ")


def standings(groups: Groups) -> Standings | None:
    """Returns the numbers of accuracy or, if not all runs have it, of loss; None if no run is over and evaluated."""
    over = groups.drawn.only(run for run in groups.drawn.runs if run.over)
    if not len(over):
        return None
    for metric in ("accuracy", "loss"):
        measure = Measure((metric,), subject=over.subject, larger=over.directions)
        try:
            points = {run: found for (_, run), found in series_of(over, measure).items()}
        except NotComparable:  # nobody evaluated it
            continue
        runs = over.only(run for run in over.runs if run.id in points)
        if len(runs) == len(over) or metric == "loss":
            break
    else:
        return None
    costs, spent = Costs(runs), {}
    for name in ("virtual_time" if groups.timed else "rounds", "bytes", "flops", "energy"):
        of_runs = {run.id: [costs.by(run, point, name) for point in points[run.id]] for run in runs.runs}
        known = {run: [number for number in numbers if number is not None] for run, numbers in of_runs.items()}
        if all(len(known[run]) == len(numbers) and known[run][-1] for run, numbers in of_runs.items()):
            spent[name] = known
    if not spent:
        return None
    counted = tuple(tuple(run for run in group.drawn if run in runs.runs) for group in groups.groups)
    return Standings(groups, metric, metric == "accuracy", counted, points, spent)


def by_unit(axes: Axes, cost: str) -> None:
    """Labels the ticks of a horizontal axis of a cost with its unit."""
    if cost in _UNITS:
        unit_along(axes.xaxis, _UNITS[cost], 4)


def mean(values: Any) -> float:
    """Returns the mean; NaN of nothing."""
    found = [*values]
    return float(np.mean(found)) if found else math.nan
