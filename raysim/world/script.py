"""Dispatches that are given, by a file or by the tables of another run, instead of drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raysim.parts.part import as_tuples
from raysim.world.trace_file import read_trace
from results import open_run
from results.location import location


class Fates(NamedTuple):
    """What becomes of each dispatch of a script."""

    arrives: NDArray[np.float64]  # when its update arrives, or would have; infinite if that is after the record's end
    reports: NDArray[np.bool_]  # False: the update is lost


class Script(NamedTuple):
    """Dispatches in order. Arrays are (dispatches,)."""

    source: str  # where they are from, for messages
    clients: NDArray[np.int64]
    times: NDArray[np.float64] | None  # when each is dispatched; None: when the world wants a client
    fates: Fates | None  # None: the world's delay and dropout decide
    over: str  # the reason that a run gives when no dispatch is left
    by_round: bool = False  # whether each round must dispatch its clients at once

    def check(self, clients: int) -> None:
        """Raises ValueError if it names a client that is not one of so many."""
        if (largest := int(self.clients.max(initial=-1))) >= clients:
            raise ValueError(f"{self.source}: must name clients 0 to {clients - 1}, got {largest}")


def read_order(path: str, *, timed: bool) -> Script:
    """Reads dispatches from a file, with columns `client` and, if timed, `dispatched_at`.

    Raises ValueError if the file does not hold what it must.
    """
    trace = read_trace(path)
    trace.require("client", *(["dispatched_at"] if timed else []))
    clients, times = np.array(trace.clients()), None
    if timed:
        times = trace.numbers("dispatched_at")
        if (early := np.diff(times) < 0).any():
            raise trace.error(int(early.argmax()) + 1, "dispatched_at", "no earlier than in the row before")
    return Script(path, clients, times, None, "no dispatch is left in world.dispatch.order")


def picked_by_round(picks: Sequence[Sequence[int]]) -> Script:
    """Returns the dispatches of clients that are listed for each round."""
    clients = np.array([client for of_round in picks for client in of_round], dtype=np.int64)
    return Script("world.dispatch.picks", clients, None, None, "no client is left to pick", by_round=True)


# --- another run ------------------------------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """The part of another run that a replay needs."""

    script: Script
    world: dict[str, Any]  # the block `world` of its scenario
    rounds: int  # number of rounds that it finished
    clients: int | None  # number of clients in its data; None if its scenario does not say
    seed: int | None  # None if its scenario does not say


def recorded_world(folder: str) -> dict[str, Any]:
    """Returns the block `world` of a run's scenario. Raises ValueError if the folder holds no run with a server."""
    world = open_run(folder).info["scenario"].get("world")
    dispatch = (world.get("dispatch") or {}) if isinstance(world, dict) else {}
    if not any(dispatch.get(key) for key in ("per_round", "probability", "concurrency", "per_tier", "picks", "order")):
        raise ValueError(f"replay: must be the folder of a run with a server, got {folder}, which has none")
    return {key: as_tuples(value) for key, value in world.items()}


def read_recorded(folder: str) -> Recorded:
    """Reads who was dispatched when in a run, and what became of it. Raises ValueError if the run is not complete."""
    run = open_run(folder)
    if run.status not in ("finished", "dry"):
        raise ValueError(f"replay: must be a run that has finished, or a dry run, got {folder}, which is {run.status}")
    if not run.files("updates"):
        raise ValueError(f"replay: must be a run that dispatched clients, got {run.folder}, without a table updates")
    table = run.table("updates", ["dispatch", "client", "status", "dispatched_at", "arrived_at", "virtual_time"])
    columns = {name: table[name].to_numpy() for name in table.column_names}
    serials = columns["dispatch"]
    order = np.argsort(serials)
    if len(order) == 0 or not np.array_equal(serials[order], np.arange(len(order))):
        raise ValueError(f"replay: the table updates of {folder} must hold every dispatch once, and does not")
    status, ended = columns["status"][order], columns["virtual_time"][order]
    dropped = status == "dropped"
    arrived = columns["arrived_at"][order]  # NaN if it did not arrive
    arrives = np.where(dropped, ended, np.where(np.isnan(arrived), np.inf, arrived))
    over = f"the replayed run, {run.id}, tells nothing of later dispatches"
    fates = Fates(arrives, ~dropped)
    script = Script(folder, columns["client"][order], columns["dispatched_at"][order], fates, over)
    scenario = run.info["scenario"]
    rounds, clients = run.info["totals"]["rounds"], scenario["data"].get("clients")
    return Recorded(script, recorded_world(folder), rounds, clients, scenario.get("seed"))


def run_files(folder: str) -> list[Path]:
    """Returns the files of a run that a replay reads."""
    return [location(folder) / "run.json", *open_run(folder).files("updates")]
