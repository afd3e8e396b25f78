"""What trackers are sent of a round: one number for each metric, made of the rows of tables."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from results.columns import is_wall
from results.readings import WHAT, over_members
from results.schemas import TABLES, columns_of

FROM = ("evaluations", "steps")  # the tables that points are made of
_KEY = {"evaluations": ("subject", "member", "split", "metric"), "steps": ("step",)}  # tells a round's rows apart
_PLURAL = {"client": "clients", "peer": "peers", "unseen": "unseen"}  # by subject, of those with several members
_EVALUATED = pa.schema([TABLES["evaluations"].field(name) for name in (*WHAT, "value")])
_OF_ROUND = ("used", "discarded", "samples")  # columns of `steps` whose sum over the round is sent
_LAST = ("in_flight", "cache_bytes")  # those whose last value is sent
# Those whose sum since the run began is sent: bytes and operations. Of all others, it is the mean.
_SO_FAR = {c.name for c in columns_of("steps") if c.unit in ("bytes", "floating-point operations")} - {*_LAST}
_NO_METRIC = {"run", "step", "round", "virtual_time", *(c.name for c in TABLES["steps"] if is_wall(c))}

Row = Mapping[str, Any]


class RoundPoint(NamedTuple):
    """The metrics of a round, by name."""

    round: int  # counted from 0, as in the tables
    virtual_time: float  # of the last of the round's rows
    metrics: dict[str, float]


class Points:
    """Takes rows, and makes a point of each round that is over.

    Metrics of the global model are named as `test/accuracy`; those of clients as `clients/test/accuracy`, their
    unweighted mean, with `_min` and `_max` for the extremes; columns of the table `steps` as `steps/used`. What is null
    is left out, and so is real time. Rows that come again, because a run goes on from a checkpoint, count once.
    """

    def __init__(self) -> None:
        self._rows: dict[int, dict[str, dict[Any, Row]]] = {}  # by round, table and key
        self._so_far: dict[str, float] = defaultdict(float)
        self._done = -1  # the last round that became a point

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Takes rows of a table, by column, in the order of the table."""
        for row in rows:
            if row["round"] > self._done:
                of_round = self._rows.setdefault(row["round"], {name: {} for name in FROM})
                of_round[table][tuple(row.get(name) for name in _KEY[table])] = row

    def take(self, until: int | None) -> Iterator[RoundPoint]:
        """Yields the points of the rounds before `until`, or of all rounds, that were not yielded before."""
        for round in sorted(self._rows):
            if until is None or round < until:
                self._done, of_round = round, self._rows.pop(round)
                evaluated, stepped = (list(of_round[table].values()) for table in FROM)
                time = max(row["virtual_time"] for row in (*evaluated, *stepped))
                yield RoundPoint(round, time, dict([*_evaluated(evaluated), *self._stepped(stepped)]))

    def _stepped(self, rows: list[Row]) -> Iterator[tuple[str, float]]:
        """Yields the metrics of a round's server steps, or of a round of peers."""
        for column in dict.fromkeys(name for row in rows for name in row if name not in _NO_METRIC):
            values = [row[column] for row in rows if row.get(column) is not None]
            if not values:
                continue
            if column in _SO_FAR:
                value = self._so_far[column] = self._so_far[column] + sum(values)
            elif column in _OF_ROUND:
                value = sum(values)
            elif column in _LAST:
                value = values[-1]
            else:
                value = max(values) if column.endswith("_max") else math.fsum(values) / len(values)
            yield f"steps/{column}", float(value)


def _evaluated(rows: list[Row]) -> Iterator[tuple[str, float]]:
    """Yields the metrics of a round's evaluations."""
    for row in over_members(pa.Table.from_pylist([*map(dict, rows)], _EVALUATED)).to_pylist():
        subject, name = row["subject"], f"{row['split']}/{row['metric']}"
        if row["value"] is None:
            continue
        # Of peers together, extremes are metrics of their own.
        yield name if subject == "global" else f"{_PLURAL.get(subject, subject)}/{name}", row["value"]
        if subject in _PLURAL:
            yield f"{_PLURAL[subject]}/{name}_min", row["lowest"]
            yield f"{_PLURAL[subject]}/{name}_max", row["highest"]
