"""Makes the rows of a run's tables, of runs with a server and of peers, from its timeline and from results of jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from actors import Job
from raysim.workers.replies import Numbers
from raysim.world.peers_timeline import Exchanged, Mixed
from raysim.world.server_happening import Dispatched
from results.schemas import CoefficientRow, EvaluationRow, ExchangeRow, Row, StepRow, TaskRow, UpdateRow

RowT = TypeVar("RowT", bound=Row)


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


def filled(row: RowT, numbers: Numbers, **more: Any) -> tuple[RowT, Numbers]:
    """Returns a row with what was measured and logged in the columns of these names, and the other numbers, which are
    for columns of the algorithm's own."""
    columns, own = _split(type(row), numbers)
    return replace(row, **columns, **more), own


def _split(kind: type[Row], numbers: Numbers) -> tuple[dict[str, Any], Numbers]:
    known = kind.__dataclass_fields__
    columns: dict[str, Any] = {name: number for name, number in numbers.items() if name in known}
    return columns, {name: number for name, number in numbers.items() if name not in known}


# --- updates ----------------------------------------------------------------------------------------------------------


def of_dispatch(
    happened: Happened, of: Dispatched, status: str, staleness: float, samples: int, weight: float | None = None
) -> UpdateRow:
    """Returns the row of a dispatch that ended, without what training fills."""
    return UpdateRow(
        step=happened.version,
        round=happened.round,
        virtual_time=happened.time,
        client=of.client,
        dispatch=of.serial,
        status=status,
        dispatched_at=of.time,
        arrived_at=of.arrives if of.reports and of.arrives <= happened.time else None,
        version=of.version,
        staleness=staleness,
        weight=weight,
        samples=samples,
    )


def of_mix(exchanged: Exchanged, mixed: Mixed, samples: int) -> UpdateRow:
    """Returns the row of a mix and of the training before it, without what training fills."""
    ages = [heard.age for heard in mixed.inbox]
    return UpdateRow(
        step=exchanged.version,
        round=exchanged.round,
        virtual_time=mixed.time,
        client=mixed.peer,
        dispatch=mixed.serial,
        status="used",
        dispatched_at=mixed.began,
        arrived_at=mixed.trained,
        version=mixed.number,
        staleness=sum(ages) / len(ages) if ages else 0.0,
        samples=samples,
    )


# --- other tables -----------------------------------------------------------------------------------------------------


def of_step(
    happened: Happened, staleness: Sequence[float], *, used: int, discarded: int, in_flight: int, samples: int
) -> StepRow:
    """Returns the row of a server step, or of a round of peers, without what only a real one fills.

    staleness: of each update that it used, or the age of each message that was mixed.
    """
    return StepRow(
        step=happened.version,
        round=happened.round,
        virtual_time=happened.time,
        used=used,
        discarded=discarded,
        in_flight=in_flight,
        staleness_mean=sum(staleness) / len(staleness) if staleness else None,
        staleness_max=max(staleness, default=None),
        samples=samples,
    )


def of_messages(exchanged: Exchanged, mixed: Mixed, size: int | None) -> Iterator[ExchangeRow]:
    """Yields a row for each message that was sent before a mix. size: its bytes."""
    for sent in mixed.sent:
        yield ExchangeRow(
            step=exchanged.version,
            round=exchanged.round,
            virtual_time=sent.time,
            source=sent.source,
            target=sent.target,
            bytes=size,
            arrived_at=sent.arrives,
        )


def of_search(happened: Happened, columns: dict[str, list[float]]) -> Iterator[tuple[CoefficientRow, Numbers]]:
    """Yields a row for each anchor of a search, and numbers for columns of the algorithm's own.

    columns: lists with an element for each anchor; {} for no search.
    """
    for values in zip(*columns.values(), strict=True):
        known, own = _split(CoefficientRow, dict(zip(columns, values, strict=True)))
        yield CoefficientRow(**when(happened), **known), own


def of_evaluation(
    happened: Happened,
    subject: str,
    member: int | None,
    split: str,
    values: Mapping[str, float | None],
    samples: int,
    picked: int | None = None,
) -> Iterator[EvaluationRow]:
    """Yields a row for each metric. samples: the number of samples that the metrics are means over."""
    for metric, value in values.items():
        yield EvaluationRow(
            **when(happened),
            subject=subject,
            member=member,
            picked=picked,
            split=split,
            metric=metric,
            value=value,
            samples=samples,
        )


def of_jobs(happened: Happened, jobs: Sequence[Job[Any, Any]], began: float) -> Iterator[TaskRow]:
    """Yields a row for each job of a happening. began: when the timeline began, in seconds since the epoch."""
    for job in jobs:
        yield TaskRow(
            **when(happened),
            task=job.name,
            worker=job.worker,
            node=job.process.node,
            pid=job.process.pid,
            started_s=job.took.started - began,
            seconds=job.took.seconds,
        )


def numbers(values: dict[str, float | None]) -> dict[str, float]:
    """Returns the values of metrics for those who watch a run, with NaN where one is not defined."""
    return {metric: math.nan if value is None else value for metric, value in values.items()}


def times(passes: float, flops: float | None) -> float | None:
    """Returns the operations of so many forward passes. flops: those of one; None if they cannot be counted."""
    return None if flops is None else passes * flops
