"""The section on how robust methods are: a metric where alpha, delays, dropout or the number of clients differ."""

import re
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from results.groups import Groups, Look, RunGroup, labels
from results.keys import Value
from results.report.draw import band
from results.report.picture import Picture, picture
from results.report.section import Section
from results.report.standings import Standings, standings
from results.texts import short_names, written

_WORLDS = re.compile(r"data\.(partition\.alpha|clients)|world\.(delay|edge_delay|dropout|dispatch)\.\w+|world\.loss")
_WIDE = 20  # the largest value is so many times the smallest: the axis is then logarithmic


def robustness(groups: Groups) -> Section | None:
    """Returns the section; None if no such key differs between groups as a number, or no run is over."""
    found = standings(groups) if len(groups) > 1 else None
    pictures = list(_pictures(found)) if found else []
    if not found or not pictures:
        return None
    text = (
        f"How {found.name} {found.where}, which every run that is over has reached, depends on the world that runs are "
        f"in: a line for each method, over what else is the same.{groups.band}"
    )
    return Section("robustness", "Robustness", text, pictures)


def _pictures(found: Standings) -> Iterator[Picture]:
    for key in filter(_WORLDS.fullmatch, found.groups.keys):
        values = {group.place: group.first.keys.get(key) for group in found.counting}
        numbers = {place: float(value) for place, value in values.items() if type(value) in (int, float)}  # type: ignore[arg-type]
        if len(set(numbers.values())) > 1 and len(numbers) == len(values):
            yield _picture(found, key, numbers)


def _picture(found: Standings, key: str, at: dict[int, float]) -> Picture:
    budget = found.common(found.cost)
    lines = _lines(found, key)

    def draw(axes: Axes) -> None:
        for label, look, members in lines:
            ordered = sorted(members, key=lambda group: at[group.place])
            values = [found.values(group, found.cost, budget) for group in ordered]
            edges = [[float(of_all(of_group)) for of_group in values] for of_all in (np.mean, np.min, np.max)]
            band(axes, look, label if len(lines) > 1 else None, [at[group.place] for group in ordered], *edges)
        axes.set(xlabel=key, ylabel=found.name)
        _ticks(axes, sorted(set(at.values())))

    short = short_names([key])[key]
    title = f"{found.name.capitalize()} over {short.replace('_', ' ')}"
    return picture(f"{found.metric}-by-{key.replace('.', '-')}", title, "", draw)


def _lines(found: Standings, key: str) -> list[tuple[str, Look, list[RunGroup]]]:
    """Returns the groups that differ in a key alone, with the label and the look of their line."""
    others = [other for other in found.groups.keys if other != key]
    alike: dict[tuple[Value, ...], list[RunGroup]] = {}
    for group in found.counting:
        alike.setdefault(tuple(group.first.keys.get(other) for other in others), []).append(group)
    named = labels(others, list(alike), [members[0].first.keys for members in alike.values()])
    hues = [members[0].look.hue for members in alike.values()]
    looks = [Look(hue, place if len(set(hues)) < len(hues) else hue) for place, hue in enumerate(hues)]
    return list(zip(named, looks, alike.values(), strict=True))


def _ticks(axes: Axes, values: list[float]) -> None:
    """Puts a tick at each value where they are few, on a logarithmic axis where they differ much."""
    if values[0] > 0 and values[-1] >= _WIDE * values[0]:
        axes.set_xscale("log")
    if len(values) <= 8:
        axes.xaxis.set_major_locator(FixedLocator(values))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticklabels([written(value) for value in values])
