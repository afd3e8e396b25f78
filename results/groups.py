"""The groups of runs that figures and lists show: each has a label, and its place gives its colour."""

from __future__ import annotations

import json
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
        """Whether virtual time, and not rounds, is the first axis: where it is in seconds, rounds last differently."""
        return any(run.keys.get("world.delay.unit") == "seconds" for run in self.runs.runs)

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


def grouped(runs: RunSet, by: Iterable[str] | None = None) -> Groups:
    """Groups runs by the values of keys; by default of all keys that differ and change numbers, except the seed.

    Raises UnknownKey for a key that no run has, and NotComparable where runs of a group differ in more than their seed.
    """
    keys, _ = key_axes(runs, by, ())
    of_values = alike(runs, keys)
    scenarios = [of_group.scenarios[0] for of_group in of_values.values()]
    named = _labels(keys, scenarios) if by else labels(keys, list(of_values), scenarios)
    if len(of_values) == 1 and not by:
        named = [str(runs[0].info.get("name") or runs[0].id)]
    found = [
        RunGroup(place, label, of_group.runs, tuple(once_a_seed(of_group)[0]))
        for place, (label, of_group) in enumerate(zip(named, of_values.values(), strict=True))
    ]
    return Groups(runs, keys, found)


def labels(keys: Sequence[str], values: Sequence[Values], scenarios: Sequence[dict[str, Value]]) -> list[str]:
    """Returns a label for each group, of as many keys as tell them apart. values: of the keys in each group."""
    return _labels(telling(keys, values), scenarios)


def telling(keys: Sequence[str], values: Sequence[Values]) -> list[str]:
    """Returns enough keys to tell the groups apart. Names of parts are preferred to their parameters."""
    chosen: list[int] = []
    for place in sorted(range(len(keys)), key=lambda place: not keys[place].endswith(".name")):
        if _distinct(values, [*chosen, place]) > _distinct(values, chosen):
            chosen.append(place)
    return [keys[place] for place in chosen]


def _distinct(values: Sequence[Values], places: Sequence[int]) -> int:
    return len({tuple(of_group[place] for place in places) for of_group in values})


def _labels(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> list[str]:
    """Returns a label for each scenario from its values of the keys, such as `fedbuff, buffer=10`."""
    short = short_names(keys)
    scenarios = [scenario | brief for scenario, brief in zip(scenarios, names_of_parts(keys, scenarios), strict=True)]
    texts = [[_text(key, short[key], scenario) for key in keys if key in scenario] for scenario in scenarios]
    return [", ".join(found) or f"no {', '.join(short.values())}" for found in texts]


def names_of_parts(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> list[dict[str, Value]]:
    """Returns, for each scenario, the lists of parts among its values as their names, such as top_k+quantise, where
    these tell them apart."""
    found: list[dict[str, Value]] = [{} for _ in scenarios]
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


def _text(key: str, short: str, scenario: dict[str, Value]) -> str:
    value = text(scenario[key])
    value = value if len(value) <= _LETTERS else f"{value[:_LETTERS]}..."  # a list of picks is long, for example
    return value if key.endswith(".name") else f"{short}={value}"


def text(value: Value) -> str:
    """Returns a scenario's value as YAML writes it."""
    return "null" if value is None else written(value)
