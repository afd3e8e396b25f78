"""Builds the rows of a run's tables from happenings of its timeline and from results of jobs."""

from collections.abc import Sequence
from typing import Any, Protocol

from actors import Job
from raysim.world.server_timeline import Dispatched, Ended, Stepped

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


def _when(happened: Happened) -> Row:
    return {"step": happened.version, "round": happened.round, "virtual_time": happened.time}


def update_row(dispatched: Dispatched, status: str, step: int, round: int, time: float, staleness: float) -> Row:
    """Returns the row of a dispatch that ended, without the columns that only a trained update has."""
    return {
        "step": step,
        "round": round,
        "virtual_time": time,
        "client": dispatched.client,
        "dispatch": dispatched.serial,
        "status": status,
        "dispatched_at": dispatched.time,
        "arrived_at": dispatched.arrives if dispatched.reports and dispatched.arrives <= time else None,
        "version": dispatched.version,
        "staleness": staleness,
    }


def ended_row(ended: Ended, samples: int) -> Row:
    """Returns the row of an update that no step used. samples: number of samples that the client trains on."""
    row = update_row(ended.dispatched, ended.status, ended.version, ended.round, ended.time, ended.staleness)
    return {**row, "samples": samples}


def used_rows(stepped: Stepped, weights: list[float] | None) -> list[Row]:
    """Returns the rows of the updates that a step used, in order of dispatch. weights: their weights, if summed."""
    rows = []
    for place, (dispatched, arrival) in enumerate(zip(stepped.members, stepped.arrivals, strict=True)):
        row = update_row(dispatched, "used", stepped.version, stepped.round, stepped.time, arrival.staleness)
        rows.append({**row, "samples": arrival.samples, "weight": weights[place] if weights else None})
    return rows


def coefficient_rows(stepped: Stepped, columns: dict[str, list[float]]) -> list[Row]:
    """Returns a row for each anchor of a search. columns: lists with an element for each anchor; {} for no search."""
    anchors = zip(*columns.values(), strict=True)
    return [{**_when(stepped), **dict(zip(columns, anchor, strict=True))} for anchor in anchors]


def step_row(stepped: Stepped, discarded: int) -> Row:
    """Returns the row of a server step, without bytes and seconds. discarded: updates discarded since the last step."""
    staleness = [arrival.staleness for arrival in stepped.arrivals]
    return {
        "step": stepped.version,
        "round": stepped.round,
        "virtual_time": stepped.time,
        "used": len(stepped.members),
        "discarded": discarded,
        "in_flight": stepped.in_flight,
        "staleness_mean": sum(staleness) / len(staleness) if staleness else None,
        "staleness_max": max(staleness, default=None),
        "samples": sum(arrival.samples for arrival in stepped.arrivals),
    }


def evaluation_rows(
    happened: Happened, subject: str, member: int | None, split: str, values: dict[str, float], samples: int
) -> list[Row]:
    """Returns a row for each metric. samples: the number of samples that the metrics are means over."""
    return [
        {
            **_when(happened),
            "subject": subject,
            "member": member,
            "split": split,
            "metric": metric,
            "value": value,
            "samples": samples,
        }
        for metric, value in values.items()
    ]


def means(sums: dict[str, float]) -> dict[str, float]:
    """Returns the mean of each metric, from its sum over samples and their number `samples`."""
    return {metric: total / sums["samples"] for metric, total in sums.items() if metric != "samples"}


def task_rows(happened: Happened, jobs: Sequence[Job[Any]], began: float) -> list[Row]:
    """Returns a row for each job of a happening. began: when the timeline began, in seconds since the epoch."""
    return [
        {
            **_when(happened),
            "task": job.name,
            "worker": job.worker,
            "started_s": job.took.started - began,
            "seconds": job.took.seconds,
        }
        for job in jobs
    ]


def partition_rows(table: dict[str, Any]) -> list[Row]:
    """Returns a row for each pair of a client and a label. table: the columns of the partition, of equal length."""
    columns = [column.tolist() for column in table.values()]
    return [dict(zip(table, cell, strict=True)) for cell in zip(*columns, strict=True)]
