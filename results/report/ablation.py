"""The section on what settings of two keys do together: a metric in a grid of their values."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from results.groups import Groups, RunGroup, telling
from results.keys import Value
from results.report import style
from results.report.picture import Picture, picture
from results.report.section import Section
from results.report.standings import Standings, mean, standings
from results.report.values import grid
from results.texts import cut, short_names, written

_LARGEST = 12  # values of a key in a grid
_GRIDS = 9  # small multiples
_FULL = 0.5  # share of a grid's cells that must have runs
_STRONGEST = 0.5  # of the ink that fills the best cell, so that its number can be read


def ablation(groups: Groups) -> Section | None:
    """Returns the section; None unless two or three keys tell groups apart, and most of their combinations ran."""
    found = standings(groups) if len(groups) > 3 else None
    if found is None:
        return None
    values = [tuple(group.first.keys.get(key) for key in groups.keys) for group in groups.groups]
    keys = telling(groups.keys, values)
    keys = sorted(keys, key=lambda key: -len(_values(found.counting, key)))
    sizes = [len(_values(found.counting, key)) for key in keys]
    few = len(keys) not in (2, 3) or min(sizes) < 2
    if few or max(sizes) > _LARGEST or np.prod(sizes) * _FULL > len(found.counting):
        return None
    pictures = list(_pictures(found, keys))
    text = (
        f"{found.name.capitalize()} {found.where}, as the mean over runs, where {' and '.join(keys)} differ. The "
        "stronger a cell, the better its number; the best one has a frame."
    )
    return Section("ablation", "Grid of settings", text, pictures) if pictures else None


def _pictures(found: Standings, keys: Sequence[str]) -> Iterator[Picture]:
    across, down, *others = keys
    groups = found.counting
    numbers = {group.place: mean(found.of(group).values()) for group in groups}
    if not others:
        yield _grid(found, numbers, groups, across, down, "ablation", "")
        return
    (third,) = others
    for place, value in enumerate(_values(groups, third)[:_GRIDS]):
        of = [group for group in groups if group.first.keys.get(third) == value]
        yield _grid(
            found, numbers, of, across, down, f"ablation-{place}", f"{short_names([third])[third]}={written(value)}"
        )


def _grid(
    found: Standings, numbers: dict[int, float], groups: Sequence[RunGroup], across: str, down: str, name: str, of: str
) -> Picture:
    columns, rows = _values(found.counting, across), _values(found.counting, down)
    known = [number for number in numbers.values() if np.isfinite(number)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    short = short_names([across, down])

    def draw(axes: Axes) -> None:
        for group in groups:
            number = numbers[group.place]
            x, y = columns.index(group.first.keys.get(across)), rows.index(group.first.keys.get(down))
            share = (number - low) / (high - low) if high > low else 0.5
            share = share if found.larger else 1 - share
            strength = 0.04 + (_STRONGEST - 0.04) * share if np.isfinite(number) else 0.0
            best = number == (high if found.larger else low)
            frame: Any = {"edgecolor": style.INK[0] if best else "none", "linewidth": 1.6 if best else 0.0}
            at = (x - 0.48, y - 0.48)
            axes.add_patch(Rectangle(at, 0.96, 0.96, facecolor=to_rgba(style.MUTED[0], strength), **frame))
            axes.text(x, y, f"{number:.3f}" if abs(number) < 10 else f"{number:.4g}", ha="center", va="center")
        values = {(group.first.keys.get(down), group.first.keys.get(across)): numbers[group.place] for group in groups}
        cells = [[values.get((row, column)) for column in columns] for row in rows]
        names = [[f"{key}={written(value)}" for value in of_key] for key, of_key in ((across, columns), (down, rows))]
        grid(axes, names[0], names[1], np.array(cells, float), found.name)
        axes.grid(False)
        axes.set(
            xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), xlabel=short[across], ylabel=short[down]
        )
        axes.set_xticks(range(len(columns)), [cut(written(value), 16) for value in columns])
        axes.set_yticks(range(len(rows)), [cut(written(value), 16) for value in rows])
        axes.tick_params(length=0)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)

    title = f"{found.name.capitalize()}{f', {of}' if of else ''}"
    return picture(name, title, "", draw, 0.7 + 0.42 * len(rows))


def _values(groups: Sequence[RunGroup], key: str) -> list[Value]:
    """Returns the values of a key in rising order; texts in order of appearance."""
    found = list(dict.fromkeys(group.first.keys.get(key) for group in groups))
    if all(type(value) in (int, float) for value in found):
        return sorted(found)  # type: ignore[type-var]
    return found
