"""Runs in groups: those that differ in seed alone are one group, with a colour and a label of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from results.keys import Value, flatten
from results.reader import Run
from results.runs import Runs
from results.texts import short_names, written

if TYPE_CHECKING:
    import pandas as pd

_LETTERS = 40  # of a value in a label
SHOWN = 6  # groups of which a section shows a run each
_NUMERIC = ("resources.chunk", "resources.threads")  # other resources change no numbers


@dataclass(frozen=True)
class RunGroup:
    """Runs that are one series of a figure."""

    place: int
    """Of its colour."""
    label: str
    runs: tuple[Run, ...]
    drawn: tuple[Run, ...]
    """One of each scenario and seed: finished rather than not, new rather than old."""

    @property
    def first(self) -> Run:
        """The run that stands for the group where runs are shown one by one."""
        return self.drawn[0]


class Groups:
    """The groups of a report's runs, in order of appearance. keys: what tells them apart."""

    def __init__(self, runs: Runs, keys: Sequence[str], groups: Sequence[RunGroup]) -> None:
        self.runs, self.keys, self.groups = runs, tuple(keys), tuple(groups)
        self._drawn = Runs([run for group in groups for run in group.drawn])

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def shown(self) -> tuple[RunGroup, ...]:
        """Those of which one run each is shown."""
        return self.groups[:SHOWN]

    @property
    def representatives(self) -> str:
        """Which runs are shown one by one, for captions: nothing, where all are."""
        if len(self) > SHOWN:
            return f"The first run of the first {SHOWN} of {len(self)} groups. "
        return "The first run of each group. " if len(self.runs) > len(self) else ""

    def label(self, place: int) -> str | None:
        """For a legend; a series that is alone needs none."""
        return self.groups[place].label if len(self) > 1 else None

    def frame(self, table: str, columns: Sequence[str], filter: pc.Expression | None = None) -> pd.DataFrame:
        """The rows of a table of all runs that are drawn: the columns, `run`, and `group`, the group's place."""
        frame = self._drawn.pandas(table, ["run", *columns], filter, keys=[])
        places = np.array([self._places[run] for run in frame["run"].cat.categories], np.int64)
        return frame.assign(group=places[frame["run"].cat.codes])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {run.id: group.place for group in self.groups for run in group.drawn}

    @cached_property
    def unit(self) -> str:
        """Of virtual time, in brackets; nothing where runs do not agree."""
        units = {flatten(run.info.get("scenario") or {}).get("world.delay.unit") for run in self.runs.runs}
        return f" ({units.pop()})" if len(units) == 1 and None not in units else ""

    @property
    def band(self) -> str:
        """What bands over runs are, for captions."""
        if all(len(group.drawn) == 1 for group in self.groups):
            return ""
        return " Line: mean over runs; band: from their smallest to their largest."


def grouped(runs: Runs, by: Iterable[str] | None = None) -> Groups:
    """Groups runs by the values of keys; by default of all that differ and change numbers, but seed. UnknownKey."""
    keys = list(runs.keys(by)) if by else [key for key in runs.varying if _matters(key)]
    values = [column.to_pylist() for column in runs.keys(keys).values()]
    members: dict[tuple[Value, ...], list[int]] = {}
    for place in range(len(runs)):
        members.setdefault(tuple(column[place] for column in values), []).append(place)
    scenarios = [runs.scenarios[places[0]] for places in members.values()]
    labels = _labels(keys if by else _telling(keys, list(members)), scenarios)
    if len(members) == 1 and not by:
        labels = [str(runs[0].info.get("name") or runs[0].id)]
    found = []
    for place, (label, places) in enumerate(zip(labels, members.values(), strict=True)):
        of_group = tuple(runs[place] for place in places)
        found.append(RunGroup(place, label, of_group, _once(of_group)))
    return Groups(runs, keys, found)


def _matters(key: str) -> bool:
    return key not in ("seed", "name") and (not key.startswith("resources.") or key in _NUMERIC)


def _once(runs: Sequence[Run]) -> tuple[Run, ...]:
    best: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: (run.status == "finished", run.last_written)):
        best[str(run.info.get("scenario_hash", run.id))] = run
    return tuple(run for run in runs if run in best.values())


def _telling(keys: Sequence[str], values: Sequence[tuple[Value, ...]]) -> list[str]:
    """Enough of the keys to tell groups apart, names of parts before their parameters."""
    chosen: list[int] = []
    for place in sorted(range(len(keys)), key=lambda place: not keys[place].endswith(".name")):
        if _distinct(values, [*chosen, place]) > _distinct(values, chosen):
            chosen.append(place)
    return [keys[place] for place in chosen]


def _distinct(values: Sequence[tuple[Value, ...]], places: Sequence[int]) -> int:
    return len({tuple(of_group[place] for place in places) for of_group in values})


def _labels(keys: Sequence[str], scenarios: Sequence[dict[str, Value]]) -> list[str]:
    """What keys are in each scenario, such as `fedbuff, buffer=10`."""
    short = short_names(keys)
    texts = [[_text(key, short[key], scenario) for key in keys if key in scenario] for scenario in scenarios]
    return [", ".join(found) or f"no {', '.join(short.values())}" for found in texts]


def _text(key: str, short: str, scenario: dict[str, Value]) -> str:
    value = text(scenario[key])
    value = value if len(value) <= _LETTERS else f"{value[:_LETTERS]}..."  # of a list of picks, for example
    return value if key.endswith(".name") else f"{short}={value}"


def text(value: Value) -> str:
    """A scenario's value as YAML has it."""
    return "null" if value is None else written(value)
