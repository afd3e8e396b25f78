"""Sums up a run from its tables and run.json alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from results.ending import Ending, Status, at, ending
from results.metrics import directions
from results.reader import Run
from results.readings import MOMENT, WHAT, over_members
from results.schemas import TABLES

STATUSES = ("used", "discarded", "dropped", "unfinished")


@dataclass(frozen=True)
class Score:
    """A metric over a run's evaluations: the last value and the best. For clients or peers, a value is their mean in
    an evaluation."""

    subject: str  # as in the table `evaluations`
    split: str
    metric: str
    first: float | None  # None where the metric is not defined
    best: float | None  # None where it is not known whether larger is better, or where all values are NaN
    best_step: int | None  # the step of the best value
    last: float | None  # None where the metric is not defined
    # The last evaluation's members; None for the subjects global and peers.
    members: int | None  # how many there are
    lowest: float | None  # the lowest value of a member, without NaN
    highest: float | None  # the highest value of a member, without NaN


@dataclass(frozen=True)
class Summary:
    """A run's outcome. A field is None if run.json does not say it yet, or if the run has no such thing."""

    run: str
    name: str | None
    status: Status
    note: str | None  # on a run that is under way or was killed
    history: str | None  # which run it is a fork of, and from which checkpoints it was resumed
    ended_early: str | None  # the reason if the run ended early
    ended_by: str | None  # the key of `run` that ended it, and its value; None if something else did
    diverged: str | None  # what was not finite first, and when, if anything was
    cure: str | None  # what mostly helps where something was not finite
    error: str | None
    left: str | None  # which model a run that ended early has left
    best: str | None  # the evaluation whose model is kept as the best
    notes: tuple[str, ...]  # what was done otherwise than the scenario asks, and what changed where the run went on
    algorithm: str | None
    data: str | None
    model: str | None
    seed: int | None
    clients: int | None
    topology: str | None  # None with a server
    rounds: int  # that are over; before run.json says how many these are, with the round of the last row
    steps: int
    updates: dict[str, int]  # number of dispatches, by status
    messages: int | None  # number of messages that peers sent
    lost: int | None  # how many of them were lost
    staleness_mean: float | None  # over the updates used
    staleness_max: float | None  # over the updates used
    solver_iterations: float | None  # iterations of a solve in deep equilibrium layers, mean over the updates used
    unconverged: int | None  # number of these solves that did not reach the tolerance
    up_bytes: int | None
    down_bytes: int | None
    virtual_time: float
    unit: str | None  # unit of the virtual time
    wall_s: float | None  # real time, in seconds
    scores: tuple[Score, ...]
    digest: str | None


def summary(run: Run) -> Summary:
    """Sums up a run, also one that is under way or was killed. Raises NotARun for a folder that is not a run's."""
    info, ended = run.info, ending(run)
    for name in TABLES:
        run.require_rows(name)
    steps = run.table("steps", ["round", "virtual_time", "up_bytes", "down_bytes", "elapsed_s"])
    evaluations = run.table("evaluations", [*WHAT, *MOMENT, "value"])
    updates = run.table("updates", ["status", "staleness", "solver_iterations", "unconverged"])
    statuses = pc.value_counts(updates["status"].cast(pa.string())).to_pylist()
    counts = {status["values"]: status["counts"] for status in statuses}
    used = updates.filter(pc.field("status") == "used")
    scores = tuple(_scores(evaluations, run.info))
    return Summary(
        run=info.get("run", run.folder.name),
        name=info.get("name"),
        status=ended.status,
        note=ended.note,
        history=ended.history,
        ended_early=ended.ended_early,
        ended_by=ended.ended_by,
        diverged=ended.diverged,
        cure=ended.cure if ended.diverged else None,
        error=info.get("error"),
        left=_left(info, ended),
        best=_best(info),
        notes=tuple(map(str, info.get("notes") or ())),
        algorithm=at(info, "scenario", "algorithm", "name"),
        data=at(info, "scenario", "data", "name"),
        model=at(info, "scenario", "model", "name"),
        seed=info.get("seed"),
        clients=_clients(run),
        topology=at(info, "scenario", "topology", "name"),
        rounds=_rounds(run, steps, evaluations),
        steps=steps.num_rows,
        updates={status: counts.get(status, 0) for status in STATUSES},
        messages=at(info, "totals", "sent"),
        lost=at(info, "totals", "lost"),
        staleness_mean=pc.mean(used["staleness"]).as_py(),
        staleness_max=pc.max(used["staleness"]).as_py(),
        solver_iterations=pc.mean(used["solver_iterations"]).as_py(),
        unconverged=pc.sum(used["unconverged"]).as_py(),
        up_bytes=pc.sum(steps["up_bytes"]).as_py(),
        down_bytes=pc.sum(steps["down_bytes"]).as_py(),
        virtual_time=at(info, "totals", "virtual_time")
        or _largest(steps["virtual_time"], evaluations["virtual_time"])
        or 0.0,
        unit=at(info, "scenario", "world", "delay", "unit"),
        wall_s=at(info, "seconds", "total") or _largest(steps["elapsed_s"]),
        scores=scores,
        digest=at(info, "digest", "run"),
    )


def _left(info: Mapping[str, Any], ended: Ending) -> str | None:
    left = info.get("left")
    model = f"the model of step {left['step']}, virtual time {left['virtual_time']:g}" if left else None
    return ", ".join(filter(None, (model, ended.declared_over))) or None


def _best(info: Mapping[str, Any]) -> str | None:
    if not (best := info.get("best")):
        return None
    return f"{best['split']} {best['metric']} {best['value']:.4g} at step {best['step']}, in best.safetensors"


def _largest(*columns: pa.ChunkedArray[Any]) -> Any:
    """Returns the largest value of all columns, or None where they are empty."""
    return max((top for column in columns if (top := pc.max(column).as_py()) is not None), default=None)


def _rounds(run: Run, steps: pa.Table, evaluations: pa.Table) -> int:
    rounds: int | None = at(run.info, "totals", "rounds")
    last = _largest(steps["round"], evaluations["round"])  # rounds are counted from 0
    return rounds if rounds is not None else 0 if last is None else last + 1


def _clients(run: Run) -> int | None:
    clients: int | None = at(run.info, "scenario", "data", "clients")
    return clients or pc.count_distinct(run.table("partition", ["client"])["client"]).as_py() or None


def _scores(evaluations: pa.Table, info: Mapping[str, Any]) -> Iterator[Score]:
    larger = directions(info)
    rows = over_members(evaluations).to_pylist()
    for key, of_score in groupby(sorted(rows, key=_key), _key):
        subject, metric = key[1], key[3]
        if subject != "peers" or metric.startswith("consensus"):  # the scores of subject peer have the others, too
            yield _score(key[1:], list(of_score), larger.get(metric))


def _key(row: dict[str, Any]) -> tuple[bool, str, str, str]:
    """Returns the key by which scores are sorted: the global model comes first."""
    return row["subject"] != "global", row["subject"], row["split"], row["metric"]


def _score(key: tuple[str, str, str], rows: list[dict[str, Any]], larger: bool | None) -> Score:
    subject, split, metric = key
    end, alone = rows[-1], subject in ("global", "peers")
    numbers = [row for row in rows if row["value"] is not None and not math.isnan(row["value"])]
    best: dict[str, Any] = {}
    if numbers and larger is not None:
        best = (max if larger else min)(numbers, key=lambda row: row["value"])
    return Score(
        subject=subject,
        split=split,
        metric=metric,
        first=rows[0]["value"],
        best=best.get("value"),
        best_step=best.get("step"),
        last=end["value"],
        members=None if alone else end["members"],
        lowest=None if alone else end["lowest"],
        highest=None if alone else end["highest"],
    )
