"""What the tables of a run hold: one Arrow schema a table, with a description of every table and column.

Units are in the names: `_s` seconds, `_bytes` bytes. `virtual_time` is in the unit of the scenario's world, rounds or
seconds. A column whose metadata says `wall: true` is a reading of the stopwatch or of the placement of work: it differs
between two runs of one scenario, so it is no part of a run's digest.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_TEXT = pa.dictionary(pa.int32(), pa.string())


def _column(name: str, kind: pa.DataType, description: str, *, null: bool = False, wall: bool = False) -> pa.Field[Any]:
    metadata = {"description": description} | ({"wall": "true"} if wall else {})
    return pa.field(name, kind, nullable=null, metadata=metadata)


def _table(description: str, *columns: pa.Field[Any]) -> pa.Schema:
    return pa.schema(columns, metadata={"description": description})


_RUN = _column("run", _TEXT, "id of the run")
_WHEN = (
    _RUN,
    _column("step", pa.int32(), "server steps done so far when the row's event counted: the model's version"),
    _column("round", pa.int32(), "round in which the row's event counted"),
    _column("virtual_time", pa.float64(), "simulated time, in the unit of the scenario's world"),
)

TABLES: dict[str, pa.Schema] = {
    "steps": _table(
        "a server step, or a round of peers",
        *_WHEN,
        _column("used", pa.int32(), "updates that the step used"),
        _column("discarded", pa.int32(), "updates discarded for being late since the step before"),
        _column("in_flight", pa.int32(), "dispatches under way after the step"),
        _column(
            "staleness_mean",
            pa.float64(),
            "mean staleness of the updates used, or of the messages mixed; null where none was",
            null=True,
        ),
        _column(
            "staleness_max",
            pa.float64(),
            "largest staleness of the updates used, or of the messages mixed; null where none was",
            null=True,
        ),
        _column("up_bytes", pa.int64(), "bytes of the updates that the step used, or that peers sent", null=True),
        _column(
            "down_bytes",
            pa.int64(),
            "bytes of the messages that they answer, or of those of peers that were not lost",
            null=True,
        ),
        _column("samples", pa.int64(), "training samples held by the clients whose updates were used"),
        _column(
            "server_flops",
            pa.float64(),
            "floating-point operations of the server: passes through the network, and vectors summed; null of peers",
            null=True,
        ),
        _column(
            "cache_bytes",
            pa.int64(),
            "what the server keeps: the model, frozen parameters included, what its method needs, and a full buffer",
            null=True,
        ),
        _column(
            "similarity",
            pa.float64(),
            "cosine between the gradients of coefficients, where a search starts, of the server's data and of "
            "in-domain reference samples; null without those",
            null=True,
        ),
        _column("seconds", pa.float64(), "wall seconds of the step itself", null=True, wall=True),
        _column("elapsed_s", pa.float64(), "wall seconds since the first task was handed out", null=True, wall=True),
    ),
    "updates": _table(
        "a dispatch that ended, or a peer's training and the mix after it",
        *_WHEN,
        _column("client", pa.int32(), "the client that trained, or would have"),
        _column("dispatch", pa.int32(), "serial number of the dispatch in the run"),
        _column(
            "status",
            _TEXT,
            "used; discarded, for being late; dropped, never reported; unfinished, still under way as the run ended",
        ),
        _column("dispatched_at", pa.float64(), "virtual time of the dispatch"),
        _column("arrived_at", pa.float64(), "virtual time of the arrival; null where there was none", null=True),
        _column(
            "version",
            pa.int32(),
            "version of the model that the client started from; how often the peer had mixed before",
        ),
        _column(
            "staleness",
            pa.float64(),
            "between dispatch and arrival, or the end, in the unit that the world names; of peers that do not wait: "
            "mean virtual time since the messages that one mixes were sent",
        ),
        _column(
            "weight", pa.float64(), "weight in the server's sum; null where the server took no weighted sum", null=True
        ),
        _column("samples", pa.int64(), "training samples that the client holds"),
        _column("local_steps", pa.int32(), "optimiser steps done; null where nothing was trained", null=True),
        _column("samples_seen", pa.int64(), "samples whose gradients were taken, repeats counted", null=True),
        _column("loss_before", pa.float64(), "mini-batch loss where training started", null=True),
        _column("loss_after", pa.float64(), "loss of the last mini-batch", null=True),
        _column(
            "residual",
            pa.float64(),
            "norm of the local subproblem's gradient when last measured; null without a tolerance",
            null=True,
        ),
        _column(
            "tolerance", pa.float64(), "residual at which training was to stop; null where there was none", null=True
        ),
        _column("penalty", pa.float64(), "penalty beta of the client in ADMM; null in other algorithms", null=True),
        _column(
            "solver_iterations",
            pa.float64(),
            "iterations of a solve in deep equilibrium layers, a mean over samples and mini-batches; null without any",
            null=True,
        ),
        _column("solver_residual", pa.float64(), "largest relative residual that a solve left", null=True),
        _column("unconverged", pa.int64(), "solves, one a sample, that left more than the tolerance", null=True),
        _column("up_bytes", pa.int64(), "bytes of the update, or of the messages to all neighbours", null=True),
        _column("down_bytes", pa.int64(), "bytes of the message that the client received", null=True),
        _column("seconds", pa.float64(), "wall seconds of the training", null=True, wall=True),
        _column("worker", _TEXT, "the worker that trained", null=True, wall=True),
    ),
    "evaluations": _table(
        "a metric of a subject",
        *_WHEN,
        _column(
            "subject",
            _TEXT,
            "what was evaluated: global; client, or unseen: one that never took part, after it has adapted to the last "
            "model; peer, or peers: all that were, together",
        ),
        _column("member", pa.int32(), "the client or peer; null for the global model, and for all peers", null=True),
        _column("split", _TEXT, "the data it was evaluated on"),
        _column(
            "metric",
            _TEXT,
            "accuracy, a fraction; loss, a mean over samples; of deep equilibrium layers iterations, a mean "
            "over solves, and unconverged, the fraction of them that left more than the tolerance; and others",
        ),
        _column("value", pa.float64(), "value of the metric"),
        _column("samples", pa.int64(), "samples evaluated"),
    ),
    "tasks": _table(
        "a task of a worker: a chunk of clients trained, a server step, a shard of an evaluation",
        *_WHEN,
        _column("task", _TEXT, "what was done: train, step or evaluate; by peers: mix, evaluate, compare or consensus"),
        _column("worker", _TEXT, "the worker that did it", wall=True),
        _column("started_s", pa.float64(), "wall seconds from the first task to this one's start", wall=True),
        _column("seconds", pa.float64(), "wall seconds that it took", wall=True),
    ),
    "exchanges": _table(
        "a message on an edge between peers",
        *_WHEN,
        _column("source", pa.int32(), "the peer that sent"),
        _column("target", pa.int32(), "the peer that received"),
        _column("bytes", pa.int64(), "bytes of the message; null in a dry run", null=True),
        _column("arrived_at", pa.float64(), "virtual time of the arrival; null where it was lost", null=True),
    ),
    "coefficients": _table(
        "an anchor in a server's search for coefficients",
        *_WHEN,
        _column("anchor", pa.int32(), "the anchor's place in the atlas"),
        _column("client", pa.int32(), "the client whose update the anchor is"),
        _column("arrived", pa.int32(), "server step in which that update arrived"),
        _column("coefficient", pa.float64(), "coefficient that the search found, of the normalised anchor"),
        _column("fallback", pa.float64(), "coefficient that the search starts from and is drawn back to"),
        _column("norm", pa.float64(), "Euclidean norm of the anchor"),
    ),
    "partition": _table(
        "how many samples of a label a client holds",
        _RUN,
        _column("client", pa.int32(), "the client"),
        _column("split", _TEXT, "train or test"),
        _column("label", pa.int32(), "the label; 0 where the data have none"),
        _column("samples", pa.int64(), "samples of that label"),
    ),
}


def is_wall(column: pa.Field[Any]) -> bool:
    """Whether a column is a reading of the stopwatch or of the placement of work."""
    return b"wall" in (column.metadata or {})


def require(table: str) -> pa.Schema:
    """The schema of a table. ValueError where there is no such table."""
    if table not in TABLES:
        raise ValueError(f"table: must be one of {', '.join(TABLES)}, got {table!r}")
    return TABLES[table]
