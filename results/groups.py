"""Groups of runs: by default runs that differ in their seed alone. Each group has a colour and a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from results.compare import tells
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
    """Its place among the groups, which also chooses its colour."""
    label: str
    runs: tuple[Run, ...]
    drawn: tuple[Run, ...]
    """The runs to draw: one for each scenario and seed, finished rather than not, and the newest."""

    @property
    def first(self) -> Run:
        """The run that stands for the group in sections that show single runs."""
        return self.drawn[0]


class Groups:
    """The groups of a report's runs, in order of appearance.

    keys: the scenario keys that tell them apart. picked: whether clients are left out until they have taken part.
    """

    def __init__(self, runs: RunSet, keys: Sequence[str], groups: Sequence[RunGroup], picked: bool = False) -> None:
        self.runs, self.keys, self.groups, self.picked = runs, tuple(keys), tuple(groups), picked
        self.drawn = runs.only(run for group in groups for run in group.drawn)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def shown(self) -> tuple[RunGroup, ...]:
        """The groups from which sections show one run each."""
        return self.groups[:SHOWN]

    @property
    def representatives(self) -> str:
        """A sentence on which runs are shown, for sections that show single runs; empty if all are."""
        if len(self) > SHOWN:
            return f"Shown is the first run of each of the first {SHOWN} groups, of {len(self)}. "
        return "Shown is the first run of each group. " if len(self.runs) > len(self) else ""

    def label(self, place: int) -> str | None:
        """Returns a group's label for a legend; None if there is only one group."""
        return self.groups[place].label if len(self) > 1 else None

    def frame(self, table: str, columns: Sequence[str], filter: pc.Expression | None = None) -> pd.DataFrame:
        """Returns a table's rows of all runs to draw, with these columns, `run`, and `group`, the group's place."""
        frame = self.drawn.pandas(table, ["run", *columns], filter, keys=[])
        places = np.array([self._places[run] for run in frame["run"].cat.categories], np.int64)
        return frame.assign(group=places[frame["run"].cat.codes])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {run.id: group.place for group in self.groups for run in group.drawn}

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


def grouped(runs: RunSet, by: Iterable[str] | None = None, picked: bool = False) -> Groups:
    """Groups runs by the values of keys; by default of all keys that differ and change numbers, except the seed.

    picked: whether clients are left out until they have taken part. Raises UnknownKey for a key that no run has.
    """
    keys = list(runs.keys(by)) if by else [key for key in runs.varying if tells(key)]
    values = [column.to_pylist() for column in runs.keys(keys).values()]
    members: dict[tuple[Value, ...], list[int]] = {}
    for place in range(len(runs)):
        members.setdefault(tuple(column[place] for column in values), []).append(place)
    scenarios = [runs.scenarios[places[0]] for places in members.values()]
    named = _labels(keys, scenarios) if by else labels(keys, list(members), scenarios)
    if len(members) == 1 and not by:
        named = [str(runs[0].info.get("name") or runs[0].id)]
    found = []
    for place, (label, places) in enumerate(zip(named, members.values(), strict=True)):
        of_group = tuple(runs[place] for place in places)
        found.append(RunGroup(place, label, of_group, _once(of_group)))
    return Groups(runs, keys, found, picked)


def _once(runs: Sequence[Run]) -> tuple[Run, ...]:
    best: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: (run.status == "finished", run.last_written)):
        best[str(run.info.get("scenario_hash", run.id))] = run
    return tuple(run for run in runs if run in best.values())


def labels(
    keys: Sequence[str], values: Sequence[tuple[Value, ...]], scenarios: Sequence[dict[str, Value]]
) -> list[str]:
    """Returns a label for each group, of as many keys as tell them apart. values: of the keys in each group."""
    return _labels(_telling(keys, values), scenarios)


def _telling(keys: Sequence[str], values: Sequence[tuple[Value, ...]]) -> list[str]:
    """Returns enough keys to tell the groups apart. Names of parts are preferred to their parameters."""
    chosen: list[int] = []
    for place in sorted(range(len(keys)), key=lambda place: not keys[place].endswith(".name")):
        if _distinct(values, [*chosen, place]) > _distinct(values, chosen):
            chosen.append(place)
    return [keys[place] for place in chosen]


def _distinct(values: Sequence[tuple[Value, ...]], places: Sequence[int]) -> int:
    return len({tuple(of_group[place] for place in places) for of_group in values})


def _labels(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> list[str]:
    """Returns a label for each scenario from its values of the keys, such as `fedbuff, buffer=10`."""
    short = short_names(keys)
    texts = [[_text(key, short[key], scenario) for key in keys if key in scenario] for scenario in scenarios]
    return [", ".join(found) or f"no {', '.join(short.values())}" for found in texts]


def _text(key: str, short: str, scenario: dict[str, Value]) -> str:
    value = text(scenario[key])
    value = value if len(value) <= _LETTERS else f"{value[:_LETTERS]}..."  # a list of picks is long, for example
    return value if key.endswith(".name") else f"{short}={value}"


def text(value: Value) -> str:
    """Returns a scenario's value as YAML writes it."""
    return "null" if value is None else written(value)
