"""Rows of the tables that only runs with a server have: from what happened on the timeline and what jobs returned."""

from __future__ import annotations

from raysim.engine.rows import Row, when
from raysim.world.server_happening import Dispatched, Ended, Stepped


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
        row["samples"], row["weight"] = arrival.samples, weights[place] if weights else None
        rows.append(row)
    return rows


def coefficient_rows(stepped: Stepped, columns: dict[str, list[float]], own: dict[str, list[float]]) -> list[Row]:
    """Returns a row for each anchor of a search. columns, own: lists with an element for each anchor, own ones for
    columns of the algorithm's own; {} for no search."""
    rows = []
    for place, anchor in enumerate(zip(*columns.values(), strict=True)):
        of_own = {name: values[place] for name, values in own.items()}
        rows.append({**when(stepped), **dict(zip(columns, anchor, strict=True)), "own": of_own})
    return rows


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
