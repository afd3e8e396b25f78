"""Makes columns of a run's tables, of runs with a server and of peers, from its timeline and from results of jobs."""

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from raysim.workers.replies import Measured
from raysim.world.peers_happening import Exchanged
from raysim.world.server_happening import Dispatched

Columns: TypeAlias = "dict[str, list[Any]]"  # some columns of rows of one table, each with a value for each row


class Happened(Protocol):
    """What rows need to know of a happening on a timeline: its version, round and virtual time."""

    @property
    def version(self) -> int:
        """Server steps done by then; with peers, rounds."""

    @property
    def round(self) -> int: ...

    @property
    def time(self) -> float: ...


def when(happened: Happened) -> dict[str, Any]:
    return {"step": happened.version, "round": happened.round, "virtual_time": happened.time}


def measured_columns(numbers: Sequence[Measured]) -> Columns:
    """Returns the columns of the table `updates` that are measured and logged, but for the algorithm's own."""
    names = dict.fromkeys(name for one in numbers for name in one.columns)
    return {name: [one.columns.get(name) for one in numbers] for name in names}


def of_dispatches(
    happened: Happened,
    of: Sequence[Dispatched],
    status: str,
    staleness: list[float],
    samples: list[int],
    weights: list[float] | None = None,
    *,
    levels: bool = False,
) -> Columns:
    """Returns the rows of dispatches that ended, without what training fills. levels: whether clients have levels."""
    of_fields: list[Sequence[Any]] = [*zip(*of, strict=True)] or [()] * len(Dispatched._fields)
    fields = dict(zip(Dispatched._fields, map(list, of_fields), strict=True))
    arrived = fields["arrives"]
    if status != "used":
        arrived = [d.arrives if d.reports and d.arrives <= happened.time else None for d in of]
    return {
        **_columns_of(happened, len(of)),
        "virtual_time": [happened.time] * len(of),
        "client": fields["client"],
        "dispatch": fields["serial"],
        "status": [status] * len(of),
        "dispatched_at": fields["time"],
        "arrived_at": arrived,
        "version": fields["version"],
        "staleness": staleness,
        "samples": samples,
        **({} if weights is None else {"weight": weights}),
        **({"level": fields["level"]} if levels else {}),
    }


def of_mixes(exchanged: Exchanged, samples: list[int]) -> Columns:
    """Returns the rows of a round's mixes and of the training before each, without what training fills.

    samples: of each mix.
    """
    mixed = exchanged.mixed
    ages = [[heard.age for heard in mix.inbox] for mix in mixed]
    return {
        **_columns_of(exchanged, len(mixed)),
        "virtual_time": [mix.time for mix in mixed],
        "client": [mix.peer for mix in mixed],
        "dispatch": [mix.serial for mix in mixed],
        "status": ["used"] * len(mixed),
        "dispatched_at": [mix.began for mix in mixed],
        "arrived_at": [mix.trained for mix in mixed],
        "version": [mix.number for mix in mixed],
        "staleness": [sum(of_mix) / len(of_mix) if of_mix else 0.0 for of_mix in ages],
        "samples": samples,
    }


def _columns_of(happened: Happened, rows: int) -> Columns:
    return {"step": [happened.version] * rows, "round": [happened.round] * rows}


def of_messages(exchanged: Exchanged, sizes: Sequence[int]) -> Columns:
    """Returns the rows of the messages that were sent before a round's mixes.

    sizes: bytes of a message for each mix; () in a dry run that does not know them.
    """
    sent = [message for mix in exchanged.mixed for message in mix.sent]
    of_sizes = [size for size, mix in zip(sizes, exchanged.mixed, strict=False) for _ in mix.sent]
    return {
        **_columns_of(exchanged, len(sent)),
        "virtual_time": [message.time for message in sent],
        "source": [message.source for message in sent],
        "target": [message.target for message in sent],
        "arrived_at": [message.arrives for message in sent],
        **({"bytes": of_sizes} if sizes else {}),
    }


def numbers(values: dict[str, float | None]) -> dict[str, float]:
    """Returns the values of metrics for those who watch a run, with NaN where one is not defined."""
    return {metric: math.nan if value is None else value for metric, value in values.items()}


def times(passes: float, flops: float | None) -> float | None:
    """Returns the operations of so many forward passes. flops: those of one; None if they cannot be counted."""
    return None if flops is None else passes * flops
