"""The section on runs at equal cost, by the three protocols of EdgeFlowerTune: how good they are within a budget, what
a target costs, and how robust they are to the world that they are in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from results.cost import Costs, Point
from results.groups import Groups, labels
from results.keys import Value
from results.measure import Measure, NotComparable
from results.reader import Run
from results.report import style
from results.report.draw import band
from results.report.picture import Picture, picture
from results.report.section import Panel, Section
from results.score import series_of
from results.texts import short_names

_COSTS = {"virtual_time": "virtual time", "bytes": "bytes, up and down", "flops": "FLOP of clients", "energy": "energy"}
_UNITS = {"bytes": "B", "flops": "FLOP", "energy": "J"}
_STEPS = 25  # budgets in a figure
_LEVELS = (0.5, 0.8, 0.95)  # targets, as parts of the way from the first evaluations to the best group's last ones
_FEW = 4  # groups for which all targets are shown, and no more than one for others
_RANKED = 6  # groups in a caption
_ROW = 0.36  # height of a bar and its label, in inches
_WORLDS = re.compile(r"data\.(partition\.alpha|clients)|world\.(delay|edge_delay|dropout)\.\w+|world\.loss")
_TEXT = (
    "Rounds cost every method something else. Here, runs are compared by what they spend: each counts with its last "
    "evaluation within a budget, and runs that never reach a target count with what they had spent, which `>` says."
)


def budgets(groups: Groups) -> Section | None:
    """Returns the section; None for a single group, or if no metric was evaluated in all of them."""
    found = _found(groups) if len(groups) > 1 else None
    if found is None:
        return None
    panels = (
        Panel("quality within a budget", list(_quality(found))),
        Panel("cost of a target", list(_targets(found))),
        Panel("robustness", list(_robustness(found))),
    )
    return Section("budgets", "At equal cost", _TEXT, tabs=[panel for panel in panels if panel.pictures])


@dataclass(frozen=True)
class _Found:
    """The evaluations of a metric in all runs, and what had been spent by each."""

    groups: Groups
    metric: str
    larger: bool
    points: Mapping[str, list[Point]]  # by run
    spent: Mapping[str, Mapping[str, list[float]]]  # by cost and run, for each of its points

    def within(self, cost: str, budget: float, run: Run) -> float:
        """Returns the value of a run's last evaluation within a budget; NaN if it has none."""
        place = int(np.searchsorted(self.spent[cost][run.id], budget, side="right"))
        return self.points[run.id][place - 1].value if place else math.nan

    def common(self, cost: str) -> float:
        """Returns the largest budget that all runs have spent."""
        return min(of_run[-1] for of_run in self.spent[cost].values())

    @property
    def sign(self) -> int:
        return 1 if self.larger else -1


def _found(groups: Groups) -> _Found | None:
    runs = groups.drawn
    for metric in ("accuracy", "loss"):
        measure = Measure((metric,), subject=runs.subject, larger=runs.directions)
        try:
            points = {run: found for (_, run), found in series_of(runs, measure).items()}
        except NotComparable:  # nobody evaluated it
            continue
        if len(points) == len(runs):
            break
    else:
        return None
    costs = Costs(runs)
    spent: dict[str, dict[str, list[float]]] = {}
    for name in _COSTS:
        of_runs = {run.id: [costs.by(run, point, name) for point in points[run.id]] for run in runs.runs}
        known = {run: [number for number in numbers if number] for run, numbers in of_runs.items()}
        if all(len(known[run]) == len(numbers) for run, numbers in of_runs.items()):
            spent[name] = known
    return _Found(groups, metric, metric == "accuracy", points, spent) if spent else None


# --- quality within a budget ------------------------------------------------------------------------------------------


def _quality(found: _Found) -> Iterator[Picture]:
    groups = found.groups
    for cost in found.spent:
        budgets = found.common(cost) * np.arange(1, _STEPS + 1) / _STEPS

        def draw(axes: Axes, cost: str = cost, budgets: Any = budgets) -> None:
            for group in groups.groups:
                values = np.array([[found.within(cost, budget, run) for budget in budgets] for run in group.drawn])
                lines = (values.mean(axis=0), values.min(axis=0), values.max(axis=0))
                band(axes, group.place, group.label, budgets, *lines, strength=min(0.18, 0.6 / len(groups)))
            axes.set(xlabel=_axis(groups, cost), ylabel=found.metric)
            _by_unit(axes, cost)

        end = budgets[-1]
        ends = {group.label: _mean(found.within(cost, end, run) for run in group.drawn) for group in groups.groups}
        order = sorted(ends, key=lambda label: -found.sign * ends[label] if not math.isnan(ends[label]) else math.inf)
        ranked = ", ".join(f"{label} {ends[label]:.4g}" for label in order[:_RANKED])
        caption = f"Up to what every run has spent, {_amount(cost, end)}. There: {ranked}.{groups.band}"
        title = f"{found.metric.capitalize()} within a budget"
        yield picture(f"{found.metric}-within-{cost.replace('_', '-')}", title, caption, draw)


# --- cost of a target -------------------------------------------------------------------------------------------------


def _targets(found: _Found) -> Iterator[Picture]:
    groups = found.groups
    first = _mean(points[0].value for points in found.points.values())
    last = [_mean(found.points[run.id][-1].value for run in group.drawn) for group in groups.groups]
    best = found.sign * max((found.sign * value for value in last if not math.isnan(value)), default=math.nan)
    if not found.sign * (best - first) > 0:
        return
    levels = _LEVELS if len(groups) <= _FEW else _LEVELS[1:2]
    targets = [first + level * (best - first) for level in levels]
    for cost in found.spent:
        rows = [(target, group) for target in targets for group in groups.groups]
        spent = [[_until(found, cost, target, run) for run in group.drawn] for target, group in rows]

        def draw(axes: Axes, cost: str = cost, rows: Any = rows, spent: Any = spent) -> None:
            for row, ((target, group), of_runs) in enumerate(zip(rows, spent, strict=True)):
                mean, reached = _mean(amount for amount, _ in of_runs), sum(hit for _, hit in of_runs)
                censored = reached < len(of_runs)
                look: Any = {"hatch": "///", "alpha": 0.6} if censored else {}
                axes.barh(row, mean, 0.42, color=style.colour(group.place), edgecolor=style.INK[0], linewidth=0, **look)
                above, told = ("> ", f" ({reached} of {len(of_runs)} reached)") if censored else ("", "")
                label = f"{found.metric} {target:.3g}, {group.label}: {above}{_amount(cost, mean)}{told}"
                axes.text(0, row - 0.28, label, va="bottom", fontsize=8.5)
            axes.set(xlabel=_axis(groups, cost), yticks=[], ylim=(len(rows) - 0.6, -0.85))
            axes.spines["left"].set_visible(False)
            _by_unit(axes, cost)

        caption = "Mean until an evaluation is first as good. Hatched: some runs never are, so it is a lower bound."
        title = f"What a target of {found.metric} costs"
        height = 0.9 + _ROW * len(rows)
        yield picture(f"{found.metric}-target-by-{cost.replace('_', '-')}", title, caption, draw, height)


def _until(found: _Found, cost: str, target: float, run: Run) -> tuple[float, bool]:
    """Returns what a run spent until it reached the target, or by its end, and whether it has."""
    spent = found.spent[cost][run.id]
    for point, amount in zip(found.points[run.id], spent, strict=True):
        if found.sign * (point.value - target) >= 0:
            return amount, True
    return spent[-1], False


# --- robustness -------------------------------------------------------------------------------------------------------


def _robustness(found: _Found) -> Iterator[Picture]:
    """Yields a figure for each key of the world that differs as a number between groups: alpha, delay, dropout or the
    number of clients."""
    groups = found.groups
    cost = next(iter(found.spent))
    budget = found.common(cost)
    for key in filter(_WORLDS.fullmatch, groups.keys):
        of_key = {group.place: group.first.keys.get(key) for group in groups.groups}
        if len(set(of_key.values())) < 2 or not all(isinstance(value, int | float) for value in of_key.values()):
            continue
        lines = _lines(groups, key)

        def draw(axes: Axes, key: str = key, lines: Any = lines, of_key: Any = of_key) -> None:
            for label, members in lines:
                ordered = sorted(members, key=lambda group: of_key[group.place])
                values = [[found.within(cost, budget, run) for run in group.drawn] for group in ordered]
                edges = [[float(of_all(of_group)) for of_group in values] for of_all in (np.mean, np.min, np.max)]
                where = [of_key[group.place] for group in ordered]
                band(axes, members[0].place, label if len(lines) > 1 else None, where, *edges)
            axes.set(xlabel=key, ylabel=found.metric)
            axes.xaxis.set_major_locator(MaxNLocator(6))

        caption = f"Last evaluation by {_COSTS[cost].split(',')[0]} {_amount(cost, budget)}, which every run has spent."
        name = f"{found.metric}-by-{key.replace('.', '-')}"
        yield picture(name, f"{found.metric.capitalize()} over {short_names([key])[key]}", caption, draw)


def _lines(groups: Groups, key: str) -> list[tuple[str, list[Any]]]:
    """Returns the groups that differ in a key alone, as lines with their labels."""
    others = [other for other in groups.keys if other != key]
    alike: dict[tuple[Value, ...], list[Any]] = {}
    for group in groups.groups:
        alike.setdefault(tuple(group.first.keys.get(other) for other in others), []).append(group)
    named = labels(others, list(alike), [members[0].first.keys for members in alike.values()])
    return list(zip(named, alike.values(), strict=True))


# --- numbers ----------------------------------------------------------------------------------------------------------


def _mean(values: Any) -> float:
    return float(np.mean([*values]))


def _axis(groups: Groups, cost: str) -> str:
    return _COSTS[cost] + (groups.unit if cost == "virtual_time" else "")


def _by_unit(axes: Axes, cost: str) -> None:
    if cost in _UNITS:
        axes.xaxis.set_major_formatter(EngFormatter(unit=_UNITS[cost], sep=" "))
        axes.xaxis.set_major_locator(MaxNLocator(5))


def _amount(cost: str, number: float) -> str:
    return EngFormatter(unit=_UNITS[cost], places=2, sep=" ")(number) if cost in _UNITS else f"{number:.4g}"
