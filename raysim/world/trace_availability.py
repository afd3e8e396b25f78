"""Availability that follows a trace of when clients were there."""

import heapq
import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.parts.part import Positive, Unit
from raysim.parts.rng import Stream
from raysim.world.availability import Availability, Presence, times_over
from raysim.world.trace_file import Assign, Owners, read_trace
from results.location import location, require_file, why


class Timetable(NamedTuple):
    """When one client of a trace is there, over and over."""

    bounds: tuple[float, ...]  # in order: the client comes at the first, goes at the second, comes at the third ...
    period: float  # time after which it begins anew

    def there(self, time: float) -> bool:
        """Returns whether it is there: from when it comes until just before it goes."""
        return self._passed(time)[1] % 2 == 1

    def next_change(self, time: float) -> float:
        """Returns when it next comes or goes."""
        number, passed = self._passed(time)
        if passed == len(self.bounds):
            number, passed = number + 1, 0
        return number * self.period + self.bounds[passed]

    def _passed(self, time: float) -> tuple[int, int]:
        """Returns how many periods are over, and how many of the bounds in the current period have passed."""
        number = times_over(self.period, time)
        # Bounds are compared as the floats that `next_change` returns, so that time always moves forward.
        return number, bisect_right(self.bounds, time, key=lambda bound: number * self.period + bound)


class TraceAvailability(Availability):
    """Clients are there in the intervals of a trace, which begins anew when it is over.

    The file has a row for each interval, with the columns `client`, `on` and `off`: the client is there from `on`
    until just before `off`, in seconds. Intervals of a client must not overlap. JSON is read in the form of FedScale's
    trace of availability: `{"1": {"active": [10, 50], "inactive": [30, 60], "finish_time": 100}}` is there from 10 to
    30 and from 50 to 60 of every 100 seconds; further keys are not read. A client that goes while it trains still
    reports, as with all availabilities.

    Source of the form: Lai et al., FedScale: benchmarking model and system performance of federated learning at scale,
    ICML 2022.
    """

    name: str = "trace"
    path: Annotated[str, Field(examples=["charging.csv"])]
    """File of the intervals: CSV, Parquet with a name that ends in .parquet, or JSON with one that ends in .json."""
    period: Annotated[Positive, Unit("s")] | None = None
    """Seconds after which the trace begins anew. null: a client's finish_time in JSON, else the last `off` of all."""
    assign: Assign = "client"
    """Which intervals a client has. client: those of its number. in_order: client 0 has those of the client that the
    file names first, and so on. drawn: those of a client of the file at random, each as likely as the others."""

    def reads(self) -> tuple[str, ...]:
        return (self.path,)

    def check(self, clients: int) -> None:
        self._owners.check(self.path, "an interval", clients)

    @cached_property
    def timetables(self) -> dict[int, Timetable]:
        """What the file holds, by its clients. It is read once, and travels with the scenario to the timeline."""
        return read_timetables(self.path, self.period)

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        return np.array([table.there(time) for table in self._tables(seed, clients)])

    def next_change(self, time: float) -> float:
        return min(table.next_change(time) for table in self.timetables.values())

    def presence(self, seed: int, clients: int) -> Presence:
        return TracePresence(self._tables(seed, clients))

    @property
    def _owners(self) -> Owners:
        return Owners.by(self.assign, self.timetables)

    def _tables(self, seed: int, clients: int) -> list[Timetable]:
        """Returns the timetable of each client."""
        owners, tables, stream = self._owners, [*self.timetables.values()], Stream(seed, "availability")
        return [tables[owners.entry(client, stream)] for client in range(clients)]


class TracePresence:
    """Who is there at times that never decrease: it looks only at clients that come or go."""

    def __init__(self, tables: Sequence[Timetable]) -> None:
        self._tables = tables
        self._there = np.array([table.there(0.0) for table in tables])
        self._changes = [(table.next_change(0.0), client) for client, table in enumerate(tables)]
        heapq.heapify(self._changes)

    def mask(self, time: float) -> NDArray[np.bool_]:
        self._go_on(time)
        return self._there.copy()

    def next_change(self, time: float) -> float:
        self._go_on(time)
        return self._changes[0][0]

    def _go_on(self, time: float) -> None:
        while self._changes[0][0] <= time:
            _, client = self._changes[0]
            table = self._tables[client]
            self._there[client] = table.there(time)
            heapq.heapreplace(self._changes, (table.next_change(time), client))


# --- files ------------------------------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """One time that a client is there, with where the file says so."""

    on: float
    off: float
    where: str


def read_timetables(path: str, period: float | None) -> dict[int, Timetable]:
    """Returns each client's timetable, in the order of the file. Raises ValueError if the file is wrong."""
    if Path(path).suffix == ".json":
        found, periods = _from_json(path)
    else:
        found = _from_table(path)
        periods = dict.fromkeys(found, max(interval.off for rows in found.values() for interval in rows))
    return {client: _timetable(path, client, rows, period or periods[client]) for client, rows in found.items()}


def _from_table(path: str) -> dict[int, list[Interval]]:
    trace = read_trace(path)
    trace.require("client", "on", "off")
    found: dict[int, list[Interval]] = {}
    rows = zip(trace.clients(), trace.numbers("on").tolist(), trace.numbers("off").tolist(), strict=True)
    for row, (client, on, off) in enumerate(rows):
        found.setdefault(client, []).append(Interval(on, off, trace.where(row)))
    return found


def _from_json(path: str) -> tuple[dict[int, list[Interval]], dict[int, float]]:
    """Returns clients' intervals and periods, from a file as FedScale has them."""
    try:
        raw = json.loads(require_file(location(path).expanduser()).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {why(error)}; correct the path") from error
    except ValueError as error:
        raise ValueError(f"{path}: must be JSON: {error}") from error
    if not isinstance(raw, dict) or not raw:
        raise ValueError(f"{path}: must hold an object with a key for each client, got {type(raw).__name__}")
    must = "must be a client's number, with `active` and `inactive`, lists of as many times, and `finish_time`, above 0"
    found, periods = {}, {}
    for key, value in raw.items():
        try:
            times = [(float(on), float(off)) for on, off in zip(value["active"], value["inactive"], strict=True)]
            period = float(value["finish_time"])
            if not key.isdecimal() or not times or not 0 < period < math.inf:
                raise ValueError
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"{path}: the entry {key!r} {must}, got {str(value)[:80]}") from error
        found[int(key)] = [Interval(*each, f"interval {number} of {key!r}") for number, each in enumerate(times)]
        periods[int(key)] = period
    return found, periods


def _timetable(path: str, client: int, rows: list[Interval], period: float) -> Timetable:
    """Returns a client's timetable.

    Raises ValueError where an interval is reversed, overlaps, or ends too late, and if the client is never there.
    """
    rows = sorted(rows)
    before = Interval(0.0, 0.0, "")
    for interval in rows:
        on, off, where = interval
        if not 0 <= on <= off:
            text = f"must come before it goes, got `on` {on:g} and `off` {off:g}; swap them"
        elif on < before.off:
            text = f"must have gone before it comes again, got {on:g} while {before.where} lasts until {before.off:g}"
        elif off > period:
            text = f"must have gone by the end of the period, {period:g}, got {off:g}; raise `period`, or cut it"
        else:
            before = interval
            continue
        raise ValueError(f"{path}, {where}: client {client} {text}")
    if all(interval.on == interval.off for interval in rows):
        text = f"client {client} must be there at some time, got only intervals that end as they begin"
        raise ValueError(f"{path}, {rows[0].where}: {text}; correct `off`, or leave the client out")
    return Timetable(tuple(time for interval in rows for time in interval[:2]), period)
