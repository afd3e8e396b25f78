"""The groups of runs that figures and lists show: each has a label, and its place gives its colour."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from results.counted import Values, alike, key_axes, once_a_seed
from results.keys import Value
from results.reader import Run
from results.run_set import RunSet
from results.texts import short_names, written

if TYPE_CHECKING:
    import pandas as pd

_LETTERS = 40  # a value in a label is cut after so many letters
_METHOD = "algorithm.name"
SHOWN = 6  # a section that shows single runs takes one from each of so many groups, at most


@dataclass(frozen=True)
class RunGroup:
    """Runs that are one line, or series, of a figure."""

    place: int
    """Its place among the groups, which gives its colour."""
    label: str
    runs: tuple[Run, ...]
    drawn: tuple[Run, ...]
    """The runs to draw: one for each seed, finished rather than not, and the newest."""
    notes: tuple[str, ...]
    """A line for each run that is not drawn."""

    @property
    def evaluated_by(self) -> str:
        """The column by which evaluations of its runs are one point: virtual_time, where all were at equal times, or
        round."""
        timed = all("run.evaluate_every.virtual_time" in run.keys for run in self.drawn)
        return "virtual_time" if timed else "round"

    @property
    def first(self) -> Run:
        """The run that stands for the group in sections that show single runs."""
        return min(self.drawn, key=lambda run: run.info.get("seed") or 0)


class Groups:
    """The groups of a report's runs, in order of appearance. keys: the scenario keys that tell them apart."""

    def __init__(self, runs: RunSet, keys: Sequence[str], groups: Sequence[RunGroup]) -> None:
        self.runs, self.keys, self.groups = runs, tuple(keys), tuple(groups)
        self.drawn = runs.only(run for group in groups for run in group.drawn)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def shown(self) -> tuple[RunGroup, ...]:
        """The groups from which sections show one run each."""
        return self.groups[:SHOWN]

    def label(self, place: int) -> str | None:
        """Returns a group's label for a legend; None if there is only one group."""
        return self.groups[place].label if len(self) > 1 else None

    @cached_property
    def methods(self) -> list[str]:
        """For each group, what it is but for its privacy, such as `fedbuff`; all are alike if nothing else differs."""
        keys = [key for key in self.keys if not key.startswith(("privacy", "release"))]
        scenarios = [group.first.keys for group in self.groups]
        return labels(keys, [tuple(map(scenario.get, keys)) for scenario in scenarios], scenarios)

    def frame(self, table: str, columns: Sequence[str], filter: pc.Expression | None = None) -> pd.DataFrame:
        """Returns a table's rows of all runs to draw, with these columns, `run`, and `group`, the group's place."""
        return self.placed(self.drawn.pandas(table, ["run", *columns], filter, keys=[]))

    def placed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Returns rows of runs to draw with `group`, the place of the run's group."""
        return frame.assign(group=frame["run"].map(self._places).astype("int64"))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {run.id: group.place for group in self.groups for run in group.drawn}

    @property
    def timed(self) -> bool:
        """Whether virtual time, and not rounds, is the first axis: where all of it is in seconds, rounds last
        differently."""
        return all(run.keys.get("world.delay.unit") == "seconds" for run in self.runs.runs)

    @property
    def axis(self) -> str:
        """The first axis: the column `virtual_time`, or `round`."""
        return "virtual_time" if self.timed else "round"

    @cached_property
    def unit(self) -> str:
        """The unit of virtual time in brackets, to follow a label; empty if the runs have different units."""
        units = {run.keys.get("world.delay.unit") for run in self.runs.runs}
        return f" ({units.pop()})" if len(units) == 1 and None not in units else ""

    @property
    def band(self) -> str:
        """A sentence on what lines and bands are, for captions; empty if each group is one run."""
        if all(len(group.drawn) == 1 for group in self.groups):
            return ""
        return (
            " Line: mean over the runs of a group that went so far. Band: from their smallest to their largest value."
        )


def grouped(runs: RunSet, by: Iterable[str] | None = None, *, named: bool = True) -> Groups:
    """Groups runs by the values of keys; by default of all keys that differ and change numbers, except the seed.

    named: whether labels are names of scenarios where fewer words then tell groups apart.

    Raises UnknownKey for a key that no run has, and NotComparable where runs of a group differ in more than their seed.
    """
    keys, _ = key_axes(runs, by, ())
    of_values = alike(runs, keys)
    scenarios = [of_group.scenarios[0] for of_group in of_values.values()]
    chosen = keys if by else telling(keys, list(of_values))
    if named and not by and not any("name" in group.varying for group in of_values.values()):
        with_names = [(one.get("name"), *values) for one, values in zip(scenarios, of_values, strict=True)]
        chosen = min(chosen, telling(["name", *keys], with_names), key=len)
    texts = _labels(chosen, scenarios)
    if len(of_values) == 1 and not by:
        texts = [str(runs[0].info.get("name") or runs[0].id)]
    found = []
    for place, (label, of_group) in enumerate(zip(texts, of_values.values(), strict=True)):
        drawn, notes = once_a_seed(of_group)
        found.append(RunGroup(place, label, of_group.runs, tuple(drawn), tuple(notes)))
    return Groups(runs, keys, found)


def labels(keys: Sequence[str], values: Sequence[Values], scenarios: Sequence[dict[str, Value]]) -> list[str]:
    """Returns a label for each group, of as many keys as tell them apart. values: of the keys in each group."""
    return _labels(telling(keys, values), scenarios)


def telling(keys: Sequence[str], values: Sequence[Values]) -> list[str]:
    """Returns enough keys to tell the groups apart. Names are preferred to parameters."""
    chosen: list[int] = []
    for place in sorted(range(len(keys)), key=lambda place: not _is_name(keys[place])):
        if _distinct(values, [*chosen, place]) > _distinct(values, chosen):
            chosen.append(place)
    return [keys[place] for place in chosen]


def _distinct(values: Sequence[Values], places: Sequence[int]) -> int:
    return len({tuple(of_group[place] for place in places) for of_group in values})


def _is_name(key: str) -> bool:
    return key == "name" or key.endswith(".name")


def _labels(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> list[str]:
    """Returns a label for each scenario from its values of the keys, such as `fedbuff, buffer=10`. What a scenario does
    not have, such as a delay that is `none`, is left out, as long as the label says anything."""
    scenarios = with_names_of_parts(keys, scenarios)
    absent = {key: {repr(one.get(key)) for one in scenarios if is_absent(one.get(key))} for key in keys}
    some = [
        {key: one[key] for key in keys if key in one and (len(absent[key]) > 1 or not is_absent(one[key]))}
        for one in scenarios
    ]
    brief, whole = _texts(keys, some), _texts(keys, scenarios)
    nothing = f"no {', '.join(short_names(keys).values())}"
    return [found or every or nothing for found, every in zip(brief, whole, strict=True)]


def is_absent(value: Value) -> bool:
    """Whether a value says that there is nothing: what a scenario does not have."""
    return value is None or value is False or value in ("[]", "none")


def described(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> tuple[list[str], str]:
    """Returns the values of keys in which each scenario differs from most others, and those that more than half have.

    The algorithm comes first, whatever others have. What a scenario does not have is said if more than half have it.
    """
    keys, scenarios = sorted(keys, key=lambda key: key != _METHOD), with_names_of_parts(keys, scenarios)
    most = {key: Counter(one.get(key) for one in scenarios).most_common(1)[0] for key in keys if key != _METHOD}
    usual = {key: value for key, (value, times) in most.items() if 2 * times > len(scenarios) and not is_absent(value)}
    some = [
        {
            key: one[key]
            for key in keys
            if key in one and one[key] != usual.get(key) and (key in usual or not is_absent(one[key]))
        }
        for one in scenarios
    ]
    *rows, shared = _texts(keys, [*some, usual])
    return [row or whole for row, whole in zip(rows, _texts(keys, scenarios), strict=True)], shared


def _texts(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> list[str]:
    """Returns those keys that each scenario has, with their values, as a text."""
    short = short_names(keys)
    return [", ".join(_text(key, short[key], one[key]) for key in keys if key in one) for one in scenarios]


def with_names_of_parts(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> list[dict[str, Value]]:
    """Returns scenarios with the names of parts, such as top_k+quantise, for lists of them, where these tell them
    apart."""
    found = [*scenarios]
    for key in keys:
        values = [str(scenario.get(key)) for scenario in scenarios]
        if not any(value.startswith('[{"name"') for value in values):
            continue
        brief = {
            value: "+".join(one["name"] for one in json.loads(value)) or "none"
            for value in values
            if value == "[]" or value.startswith('[{"name"')
        }
        if len(set(brief.values())) == len(set(values)):
            found = [{**of, key: brief[value]} for of, value in zip(found, values, strict=True)]
    return found


def _text(key: str, short: str, value: Value) -> str:
    written = text(value)
    written = written if len(written) <= _LETTERS else f"{written[:_LETTERS]}..."  # such as a list of picks
    return written if _is_name(key) and written != "none" else f"{short}={written}"


def text(value: Value) -> str:
    """Returns a scenario's value as YAML writes it."""
    return "null" if value is None else written(value)
