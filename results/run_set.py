"""Many runs together: their tables as one, with the keys of their scenarios as further columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from results.info import NotARun, directions
from results.keys import Value, column, spell_out, varying
from results.reader import Run
from results.schemas import dictionary, require, with_own
from results.tables import again, check_schema

if TYPE_CHECKING:
    import pandas as pd

READERS = 16  # threads that read small files


class RunSet:
    """Several runs, in the order in which they were given. Tables are read when they are asked for."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        first: dict[str, Run] = {}
        for run in self.runs:
            if (other := first.setdefault(run.id, run)) is not run:
                text = f"holds the run {run.id!r}, which {other.folder} holds too; give one of them"
                raise NotARun(f"{run.folder}: {text}")

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, place: int) -> Run:
        return self.runs[place]

    def only(self, runs: Iterable[Run]) -> Self:
        """Returns some of the runs, in the given order."""
        return type(self)(list(runs))

    @property
    def subject(self) -> str:
        """Whose models are compared by default: those of peers if no run has a server, else the global one."""
        return "peer" if all("topology.name" in scenario for scenario in self.scenarios) else "global"

    @cached_property
    def scenarios(self) -> tuple[dict[str, Value], ...]:
        """The values of each run's scenario, by dotted path of their keys; for a fork, also its origin."""
        return tuple(run.keys for run in self.runs)

    @cached_property
    def known(self) -> set[str]:
        """The keys that any of the scenarios has."""
        return {key for scenario in self.scenarios for key in scenario}

    @cached_property
    def varying(self) -> list[str]:
        """The scenario keys whose values differ between the runs."""
        return varying(self.scenarios)

    @property
    def directions(self) -> dict[str, bool]:
        """Whether larger is better, by metric. Metrics whose direction is not known are left out."""
        return directions(*(run.info for run in self.runs))

    def keys(self, names: Iterable[str] | None = None) -> dict[str, pa.Array[Any]]:
        """Returns the values, shape (runs,), of scenario keys by whole path.

        By default it is those of the keys that differ.
        Raises UnknownKey for a key that no run has.
        """
        wanted = self.varying if names is None else [spell_out(name, self.known) for name in names]
        return {key: column([scenario.get(key) for scenario in self.scenarios]) for key in wanted}

    def info(self, keys: Iterable[str] | None = None) -> pd.DataFrame:
        """Returns one row for each run: its id, name, status, seed and folder, and the keys as in `table`."""
        about: dict[str, Any] = {
            "run": [run.id for run in self.runs],
            "name": [run.info.get("name") for run in self.runs],
            "status": [run.status for run in self.runs],
            "seed": [run.info.get("seed") for run in self.runs],
            "folder": [str(run.folder) for run in self.runs],
        }
        frame: pd.DataFrame = pa.table({**self.keys(keys), **about}).to_pandas()
        return frame[[*about, *(key for key in frame if key not in about)]]

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        keys: Iterable[str] | None = None,
    ) -> pa.Table:
        """Returns a table's rows of all runs, run by run, with scenario keys as further columns.

        columns, filter: the table's columns to read, and the rows, as in `Run.table`; nothing else is read from the
        files. keys: scenario keys to add, such as ["algorithm", "world.delay.sigma"]; by default those that differ
        between the runs.

        Raises ValueError for an unknown table, column or key, and NotARun where a file's columns are not this
        version's.
        """
        values, schema = self.keys(keys), self.schema(name)
        wanted = schema.names if columns is None else list(columns)

        def read(place: int) -> pa.Table:
            rows = self.runs[place].table(name, wanted, filter, schema)
            for key, of_runs in values.items():
                rows = rows.append_column(key, pa.repeat(of_runs[place], len(rows)))
            return rows

        with ThreadPoolExecutor(READERS) as readers:
            found = list(readers.map(read, range(len(self))))
        return pa.concat_tables(found or [schema.empty_table().select(wanted)]).unify_dictionaries()

    def pandas(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        keys: Iterable[str] | None = None,
    ) -> pd.DataFrame:
        """Returns `table` as a pandas data frame, with texts as categories, and `attrs` like those of `Run.pandas`."""
        frame: pd.DataFrame = self.table(name, columns, filter, keys).to_pandas()
        frame.attrs = dictionary(name)
        return frame

    def schema(self, name: str) -> pa.Schema:
        """Returns the columns of a table: those of every run, and after them those of algorithms' own in any run.

        Raises ValueError for an unknown table, and NotARun where a file's columns are not this version's.
        """
        require(name)

        def own(run: Run) -> list[str]:
            return again(lambda: [column for file in run.files(name) for column in check_schema(file, name)])

        with ThreadPoolExecutor(READERS) as readers:
            return with_own(name, dict.fromkeys(column for names in readers.map(own, self.runs) for column in names))
