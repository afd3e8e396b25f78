"""The numbers by which a report ranks methods: a metric of the runs that are over, and what had been spent by then."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from results.drawing import unit_along
from results.groups import Groups, RunGroup
from results.reader import Run
from results.readings import last, readings
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
    readings: pd.DataFrame
    """Of these runs, with their costs, in order of evaluation."""
    costs: tuple[str, ...]
    """What all of them say. The first one is the first axis: virtual time, or rounds."""

    @property
    def counting(self) -> list[RunGroup]:
        """The groups of which a run counts."""
        return [group for group in self.groups.groups if self.counted[group.place]]

    @property
    def cost(self) -> str:
        """The first cost: virtual_time or rounds."""
        return self.costs[0]

    @property
    def sign(self) -> int:
        return 1 if self.larger else -1

    def common(self, cost: str) -> float:
        """Returns the largest budget that all runs have spent."""
        return float(last(self.readings, "run")[cost].min())

    def within(self, cost: str, budget: float) -> dict[str, float]:
        """Returns the value of each run's last evaluation within a budget, by run; NaN if it has none."""
        known = last(self.readings[self.readings[cost] <= budget], "run").set_index("run")["value"]
        return {run: float(known.get(run, math.nan)) for run in self.readings["run"].unique()}

    def values(self, group: RunGroup, cost: str, budget: float) -> list[float]:
        """Returns the values of a group's runs within a budget."""
        found = self.within(cost, budget)
        return [found[run.id] for run in self.counted[group.place]]

    def by_seed(self, group: RunGroup) -> dict[Hashable, float]:
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
    costs = ("virtual_time" if groups.timed else "rounds", "bytes", "flops", "energy")
    if not len(over):
        return None
    frame = readings(over, ["accuracy", "loss"], [over.subject], ["test"], costs=costs)
    has_all = frame["run"][frame["metric"] == "accuracy"].nunique() == len(over)
    metric = "accuracy" if has_all or "loss" not in set(frame["metric"]) else "loss"
    frame = frame[frame["metric"] == metric]
    ends = last(frame, "run")
    known = tuple(cost for cost in costs if frame[cost].notna().all() and ends[cost].all())
    if frame.empty or not known:
        return None
    there = set(frame["run"])
    counted = tuple(tuple(run for run in group.drawn if run.id in there) for group in groups.groups)
    return Standings(groups, metric, metric == "accuracy", counted, frame, known)


def by_unit(axes: Axes, cost: str) -> None:
    """Labels the ticks of a horizontal axis of a cost with its unit."""
    if cost in _UNITS:
        unit_along(axes.xaxis, _UNITS[cost], 4)


def mean(values: Any) -> float:
    """Returns the mean; NaN of nothing."""
    found = [*values]
    return float(np.mean(found)) if found else math.nan
