"""What runs have spent by an evaluation: rounds, virtual time, updates, bytes, operations and energy."""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from results.reader import Run
from results.run_set import RunSet

COSTS = ("rounds", "virtual_time", "updates", "bytes", "flops", "energy")
"""What can be spent. bytes: up and down. flops: those of clients. energy: in joules, of clients with the power that
the scenario says, from their dispatch to their arrival, whether or not the update was used."""

_COUNTED = {"updates": ("used",), "bytes": ("up_bytes", "down_bytes"), "flops": ("client_flops",)}  # columns of steps


class Point(NamedTuple):
    """An evaluation."""

    round: int
    step: int
    virtual_time: float
    value: float


class _Spent(NamedTuple):
    """What a run spent, one thing after another."""

    when: NDArray[np.float64]  # steps, or virtual times, ascending
    sums: NDArray[np.float64]  # what was spent by then; NaN where it is not known

    def by(self, when: float) -> float:
        place = int(np.searchsorted(self.when, when, side="right"))
        return float(self.sums[place - 1]) if place else 0.0


class Costs:
    """What runs have spent. Tables are read when they are first needed, those of all runs at once."""

    def __init__(self, runs: RunSet) -> None:
        self._runs = runs

    def by(self, run: Run, point: Point, name: str) -> float | None:
        """Returns what a run had spent by an evaluation; None where its tables or its scenario do not say."""
        if name == "rounds":
            return point.round + 1.0  # rounds are counted from 0
        if name == "virtual_time":
            return point.virtual_time
        if name == "energy":
            spent = self._energy.get(run.id)
            return None if spent is None else spent.by(point.virtual_time)
        found = self._counted.get((run.id, name))
        number = math.nan if found is None else found.by(point.step)
        return None if math.isnan(number) else number

    @cached_property
    def _counted(self) -> dict[tuple[str, str], _Spent]:
        columns = sorted({column for of_cost in _COUNTED.values() for column in of_cost})
        found: dict[tuple[str, str], _Spent] = {}
        for run, rows in _by_run(self._runs, "steps", ["step", *columns]):
            for name, summed in _COUNTED.items():
                total = sum((rows[column] for column in summed), np.zeros(len(rows["step"])))
                found[run, name] = _Spent(rows["step"], np.cumsum(total))
        return found

    @cached_property
    def _energy(self) -> dict[str, _Spent]:
        watts = {run: power for run in self._runs.runs if (power := _watts(run)) is not None}
        powers = {run.id: power for run, power in watts.items()}
        found: dict[str, _Spent] = {}
        for run, rows in _by_run(self._runs.only(watts), "updates", ["client", "dispatched_at", "arrived_at"]):
            power = powers[run][rows["client"].astype(int)] if powers[run].ndim else powers[run]
            order = np.argsort(rows["arrived_at"], kind="stable")
            joules = power * (rows["arrived_at"] - rows["dispatched_at"])
            found[run] = _Spent(rows["arrived_at"][order], np.cumsum(joules[order]))
        return found


def _watts(run: Run) -> NDArray[np.float64] | None:
    """Returns the power of each client, (clients,), or of any, (); None if the run does not say."""
    watts = run.info.get("watts")
    return None if watts is None else np.asarray(watts, float)


def _by_run(runs: RunSet, table: str, columns: list[str]) -> Iterator[tuple[str, dict[str, NDArray[np.float64]]]]:
    """Yields each run that has rows of a table, by its id, with columns of it as floats; null is NaN. Updates that have
    not arrived are left out."""
    arrived = pc.is_valid(pc.field("arrived_at")) if "arrived_at" in columns else None
    rows = runs.table(table, ["run", *columns], arrived, keys=[])
    arrays = {column: rows[column].cast(pa.float64()).to_numpy() for column in columns}
    ids = pc.run_end_encode(rows["run"].cast(pa.string()).combine_chunks())  # rows come run by run
    first = 0
    for run, last in zip(ids.values.to_pylist(), ids.run_ends.to_pylist(), strict=True):
        yield run, {column: array[first:last] for column, array in arrays.items()}
        first = last
