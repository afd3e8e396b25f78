"""The rows of a run's tables, from what happened on its timeline and what its tasks gave."""

from collections.abc import Sequence
from typing import Any, Protocol

from actors import Job
from raysim.world.server_timeline import Dispatched, Ended, Stepped

Row = dict[str, Any]


class Happened(Protocol):
    """Something on a timeline."""

    @property
    def version(self) -> int:
        """Steps done by then."""

    @property
    def round(self) -> int: ...

    @property
    def time(self) -> float: ...


def _when(happened: Happened) -> Row:
    return {"step": happened.version, "round": happened.round, "virtual_time": happened.time}


def update_row(dispatched: Dispatched, status: str, step: int, round: int, time: float, staleness: float) -> Row:
    """A dispatch that ended, without what only a trained update has."""
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
    """An update that no step used."""
    row = update_row(ended.dispatched, ended.status, ended.version, ended.round, ended.time, ended.staleness)
    return {**row, "samples": samples}


def used_rows(stepped: Stepped, weights: list[float] | None) -> list[Row]:
    """The updates that a step used, in order of dispatch."""
    rows = []
    for place, (dispatched, arrival) in enumerate(zip(stepped.members, stepped.arrivals, strict=True)):
        row = update_row(dispatched, "used", stepped.version, stepped.round, stepped.time, arrival.staleness)
        rows.append({**row, "samples": arrival.samples, "weight": weights[place] if weights else None})
    return rows


def coefficient_rows(stepped: Stepped, columns: dict[str, list[float]]) -> list[Row]:
    """A row an anchor. columns: of equal length."""
    anchors = zip(*columns.values(), strict=True)
    return [{**_when(stepped), **dict(zip(columns, anchor, strict=True))} for anchor in anchors]


def step_row(stepped: Stepped, discarded: int) -> Row:
    """A server step, without bytes and seconds. discarded: updates since the step before."""
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
    """One row a metric."""
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
    """Of sums of metrics over `samples`."""
    return {metric: total / sums["samples"] for metric, total in sums.items() if metric != "samples"}


def task_rows(happened: Happened, jobs: Sequence[Job[Any]], began: float) -> list[Row]:
    """A row for each job that was done for it. began: when the first of the run was, seconds since the epoch."""
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
    """A row a cell of clients by labels."""
    columns = [column.tolist() for column in table.values()]
    return [dict(zip(table, cell, strict=True)) for cell in zip(*columns, strict=True)]
