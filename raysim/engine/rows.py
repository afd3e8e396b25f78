"""Builds the rows of a run's tables from happenings of its timeline and from results of jobs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from actors import Job

Row = dict[str, Any]


class Happened(Protocol):
    """What rows need to know of a happening on a timeline: its version, round and virtual time."""

    @property
    def version(self) -> int:
        """Server steps done by then; with peers, rounds."""

    @property
    def round(self) -> int: ...

    @property
    def time(self) -> float: ...


def when(happened: Happened) -> Row:
    return {"step": happened.version, "round": happened.round, "virtual_time": happened.time}


def evaluation_rows(
    happened: Happened, subject: str, member: int | None, split: str, values: Mapping[str, float | None], samples: int
) -> list[Row]:
    """Returns a row for each metric. samples: the number of samples that the metrics are means over."""
    return [
        {
            **when(happened),
            "subject": subject,
            "member": member,
            "split": split,
            "metric": metric,
            "value": value,
            "samples": samples,
        }
        for metric, value in values.items()
    ]


def numbers(values: dict[str, float | None]) -> dict[str, float]:
    """Returns the values of metrics for those who watch a run, with NaN where one is not defined."""
    return {metric: math.nan if value is None else value for metric, value in values.items()}


def job_rows(happened: Happened, jobs: Sequence[Job[Any, Any]], began: float) -> list[Row]:
    """Returns a row for each job of a happening. began: when the timeline began, in seconds since the epoch."""
    return [
        {
            **when(happened),
            "task": job.name,
            "worker": job.worker,
            "node": job.process.node,
            "pid": job.process.pid,
            "started_s": job.took.started - began,
            "seconds": job.took.seconds,
        }
        for job in jobs
    ]
