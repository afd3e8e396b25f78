"""The section on settings: a metric over the values of a key that differs, and over those of two."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from results import style
from results.drawing import band
from results.groups import Groups, Look, RunGroup, labels, telling
from results.keys import Value
from results.picture import Picture, grid, picture
from results.report.section import Section
from results.report.standings import Standings, mean, standings
from results.texts import cut, short_names, written

_WORLDS = re.compile(r"data\.(partition\.alpha|clients)|world\.(delay|edge_delay|dropout|dispatch)\.\w+|world\.loss")
_WIDE = 20  # the largest value is so many times the smallest: the axis is then logarithmic
_FEW = 8  # values that each have a tick
_LARGEST = 12  # values of a key in a grid
_GRIDS = 9  # small multiples
_FULL = 0.5  # share of a grid's cells that must have runs
_STRONGEST = 0.5  # of the ink that fills the best cell, so that its number can be read


def settings(groups: Groups) -> Section | None:
    """Returns the section; None if no run is over, or neither a number of the world that runs are in differs between
    groups, nor two or three keys of which most combinations ran."""
    found = standings(groups) if len(groups) > 1 else None
    pictures = [*_lines(found), *_grids(found)] if found else []
    if not found or not pictures:
        return None
    text = (
        f"How {found.name} {found.where}, which every run that is over has reached, depends on settings. Over a key of "
        f"the world that runs are in: a line for each method, over what else is the same.{groups.band} In a grid: the "
        "mean over runs; the stronger a cell, the better its number, and the best one has a frame."
    )
    return Section("settings", "Settings", text, pictures)


def _values(groups: Sequence[RunGroup], key: str) -> list[Value]:
    """Returns the values of a key in rising order; texts in order of appearance."""
    found = list(dict.fromkeys(group.first.keys.get(key) for group in groups))
    if all(type(value) in (int, float) for value in found):
        return sorted(found)  # type: ignore[type-var]
    return found


# --- over a key -------------------------------------------------------------------------------------------------------


def _lines(found: Standings) -> Iterator[Picture]:
    for key in filter(_WORLDS.fullmatch, found.groups.keys):
        values = _values(found.counting, key)
        if len(values) > 1 and all(type(value) in (int, float) for value in values):
            yield _over(found, key, [float(value) for value in values if value is not None])


def _over(found: Standings, key: str, values: Sequence[float]) -> Picture:
    budget = found.common(found.cost)
    others = [other for other in found.groups.keys if other != key]
    alike: dict[tuple[Value, ...], list[RunGroup]] = {}
    for group in found.counting:
        alike.setdefault(tuple(group.first.keys.get(other) for other in others), []).append(group)
    named = labels(others, list(alike), [members[0].first.keys for members in alike.values()])
    hues = [members[0].look.hue for members in alike.values()]
    looks = [Look(hue, place if len(set(hues)) < len(hues) else hue) for place, hue in enumerate(hues)]

    def draw(axes: Axes) -> None:
        for label, look, members in zip(named, looks, alike.values(), strict=True):
            ordered = sorted(members, key=lambda group: float(group.first.keys[key] or 0))
            of_runs = [found.values(group, found.cost, budget) for group in ordered]
            edges = [[float(of_all(of_group)) for of_group in of_runs] for of_all in (np.mean, np.min, np.max)]
            at = [float(group.first.keys[key] or 0) for group in ordered]
            band(axes, look, label if len(alike) > 1 else None, at, *edges)
        axes.set(xlabel=key, ylabel=found.name)
        if values[0] > 0 and values[-1] >= _WIDE * values[0]:
            axes.set_xscale("log")
        if len(values) <= _FEW:
            axes.xaxis.set_major_locator(FixedLocator([*values]))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xticklabels([written(value) for value in values])

    title = f"{found.name.capitalize()} over {short_names([key])[key].replace('_', ' ')}"
    return picture(f"{found.metric}-by-{key.replace('.', '-')}", title, "", draw)


# --- over two keys ----------------------------------------------------------------------------------------------------


def _grids(found: Standings) -> Iterator[Picture]:
    """Yields a grid of two keys; of three keys, one for each value of the one with the fewest values."""
    groups = found.groups
    values = [tuple(group.first.keys.get(key) for key in groups.keys) for group in groups.groups]
    keys = telling(groups.keys, values) if len(groups) > 3 else []
    keys = sorted(keys, key=lambda key: -len(_values(found.counting, key)))
    sizes = [len(_values(found.counting, key)) for key in keys]
    few = len(keys) not in (2, 3) or min(sizes) < 2
    if few or max(sizes) > _LARGEST or np.prod(sizes) * _FULL > len(found.counting):
        return
    across, down, *others = keys
    if not others:
        yield _grid(found, found.counting, across, down, "ablation", "")
        return
    (third,) = others
    for place, value in enumerate(_values(found.counting, third)[:_GRIDS]):
        some = [group for group in found.counting if group.first.keys.get(third) == value]
        which = f", {short_names([third])[third]}={written(value)}"
        yield _grid(found, some, across, down, f"ablation-{place}", which)


def _grid(found: Standings, groups: Sequence[RunGroup], across: str, down: str, name: str, which: str) -> Picture:
    """Draws a grid of some groups. Its colours are those of the best and the worst of all that count."""
    of_all = [mean(found.by_seed(group).values()) for group in found.counting]
    known = [number for number in of_all if np.isfinite(number)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    columns, rows = _values(found.counting, across), _values(found.counting, down)
    cells = np.full((len(rows), len(columns)), np.nan)
    for group in groups:
        row, column = rows.index(group.first.keys.get(down)), columns.index(group.first.keys.get(across))
        cells[row, column] = mean(found.by_seed(group).values())

    def draw(axes: Axes) -> None:
        for (row, column), number in np.ndenumerate(cells):
            if not np.isfinite(number):
                continue
            share = (number - low) / (high - low) if high > low else 0.5
            strength = 0.04 + (_STRONGEST - 0.04) * (share if found.larger else 1 - share)
            best = number == (high if found.larger else low)
            frame: Any = {"edgecolor": style.INK[0] if best else "none", "linewidth": 1.6 if best else 0.0}
            colour, at = to_rgba(style.MUTED[0], strength), (column - 0.48, row - 0.48)
            axes.add_patch(Rectangle(at, 0.96, 0.96, facecolor=colour, **frame))
            text = f"{number:.3f}" if abs(number) < 10 else f"{number:.4g}"
            axes.text(column, row, text, ha="center", va="center")
        heads = [[f"{key}={written(value)}" for value in of] for key, of in ((across, columns), (down, rows))]
        grid(axes, heads[0], heads[1], cells, found.name)
        short = short_names([across, down])
        axes.grid(False)
        ends: Any = {"xlim": (-0.5, len(columns) - 0.5), "ylim": (len(rows) - 0.5, -0.5)}
        axes.set(xlabel=short[across], ylabel=short[down], **ends)
        axes.set_xticks(range(len(columns)), [cut(written(value), 16) for value in columns])
        axes.set_yticks(range(len(rows)), [cut(written(value), 16) for value in rows])
        axes.tick_params(length=0)
        axes.spines[["left", "bottom"]].set_visible(False)

    return picture(name, f"{found.name.capitalize()}{which}", "", draw, 0.7 + 0.42 * len(rows))
