"""The section on runs at equal cost, by two protocols of EdgeFlowerTune: how good they are within a budget, and what a
target costs."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from results import style
from results.drawing import band, label_above
from results.groups import Groups
from results.picture import Picture, picture
from results.readings import last
from results.report.section import Panel, Section
from results.report.standings import COSTS, Standings, by_unit, mean, standings
from results.score import Censored, spent_until
from results.texts import cut, in_full

_STEPS = 25  # budgets in a figure
_LEVELS = (0.5, 0.8, 0.95)  # targets, as parts of the way from the first evaluations to the best group's last ones
_FEW = 4  # groups for which captions have numbers, and all targets are shown; for more, one target
_LETTERS = 32  # of a group's label beside a bar
_ROW = 0.36  # height of a bar and its label, in inches
_TEXT = (
    "Rounds cost every method something else. Here, runs that are over are compared by what they spend: each counts "
    "with its last evaluation within a budget, and runs that never reach a target count with what they had spent, "
    "which > says."
)


def budgets(groups: Groups) -> Section | None:
    """Returns the section; None for a single group, or if no metric was evaluated in runs that are over."""
    found = standings(groups) if len(groups) > 1 else None
    if found is None or len(found.counting) < 2:
        return None
    panels = (
        Panel("quality within a budget", list(_quality(found))),
        Panel("cost of a target", list(_targets(found))),
    )
    return Section("budgets", "At equal cost", _TEXT + groups.band, tabs=[panel for panel in panels if panel.pictures])


# --- quality within a budget ------------------------------------------------------------------------------------------


def _quality(found: Standings) -> Iterator[Picture]:
    groups = found.groups
    for cost in found.costs:
        budgets = found.common(cost) * (np.arange(1, _STEPS + 1) / _STEPS)  # the last is exact
        within = [found.within(cost, budget) for budget in budgets]

        def draw(axes: Axes, cost: str = cost, budgets: Any = budgets, within: Any = within) -> None:
            for group in found.counting:
                values = np.array([[of_runs[run.id] for run in found.counted[group.place]] for of_runs in within])
                lines = (values.mean(axis=1), values.min(axis=1), values.max(axis=1))
                band(axes, group.look, group.label, budgets, *lines, strength=min(0.18, 0.6 / len(groups)))
            axes.set(xlabel=found.axis(cost), ylabel=found.metric)
            by_unit(axes, cost)

        end = budgets[-1]
        ends = {group.label: mean(found.values(group, cost, end)) for group in found.counting}
        order = sorted(ends, key=lambda label: -found.sign * ends[label] if not math.isnan(ends[label]) else math.inf)
        caption = f"Up to what all runs that are over have spent, {found.amount(cost, end)}"
        caption += f" (compare --at {cost}={in_full(end)})."
        if len(order) <= _FEW:
            caption += f" There, {'; '.join(f'{label}: {ends[label]:.4g}' for label in order)}."
        title = f"{found.metric.capitalize()} within a budget of {COSTS[cost]}"
        yield picture(f"{found.metric}-within-{cost.replace('_', '-')}", title, caption, draw)


# --- cost of a target -------------------------------------------------------------------------------------------------


def _targets(found: Standings) -> Iterator[Picture]:
    groups = found.groups
    first = found.readings.drop_duplicates("run")["value"].mean(skipna=False)
    ends = last(groups.placed(found.readings), "run").groupby("group")["value"]
    best = found.sign * (found.sign * ends.apply(lambda values: values.mean(skipna=False))).max()
    if not found.sign * (best - first) > 0:
        return
    levels = _LEVELS if len(groups) <= _FEW else _LEVELS[1:2]
    targets = [first + level * (best - first) for level in levels]
    for cost in found.costs:
        rows = [(target, group) for target in targets for group in found.counting]
        until = {target: spent_until(found.readings, cost, target, found.larger) for target in targets}
        spent = [[until[target][run.id] for run in found.counted[group.place]] for target, group in rows]

        def draw(axes: Axes, cost: str = cost, rows: Any = rows, spent: Any = spent) -> None:
            for row, ((target, group), of_runs) in enumerate(zip(rows, spent, strict=True)):
                middle, censored = mean(of_runs), sum(isinstance(number, Censored) for number in of_runs)
                look: Any = {"hatch": "///", "alpha": 0.6} if censored else {}
                colours: Any = {"color": style.colour(group.look.hue), "edgecolor": style.INK[0], "linewidth": 0}
                axes.barh(row, middle, 0.42, **colours, **look)
                above, reach = (
                    ("> ", f" ({len(of_runs) - censored} of {len(of_runs)} reached)") if censored else ("", "")
                )
                label = f"{cut(group.label, _LETTERS)}: {above}{found.amount(cost, middle)}{reach}"
                label = label if len(targets) == 1 else f"{found.metric} {target:.3g}, {label}"
                label_above(axes, row, label)
            axes.set(xlabel=found.axis(cost), yticks=[], ylim=(len(rows) - 0.6, -0.85))
            by_unit(axes, cost)

        caption = "Mean until an evaluation is first as good. Hatched: some runs never are, so it is a lower bound."
        which = f"{found.metric} {targets[0]:.3g}" if len(targets) == 1 else f"a target of {found.metric}"
        title = f"What {which} costs, as {COSTS[cost]}"
        height = 0.9 + _ROW * len(rows)
        yield picture(f"{found.metric}-target-by-{cost.replace('_', '-')}", title, caption, draw, height)
