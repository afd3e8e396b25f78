"""The tables of a run: an Arrow schema for each, with a description of the table and of every column."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pyarrow as pa

from results.columns import TEXT, Column, column, described

_INTEGER, _LONG, _NUMBER = pa.int32(), pa.int64(), pa.float64()
_TIME = "rounds or seconds, as world.delay.unit says"
_STALENESS = "rounds or server steps, as world.staleness says; virtual time between peers"
_UNUSED = "null if the update was not used, and in a dry run."


def _table(description: str, *columns: pa.Field[Any]) -> pa.Schema:
    return pa.schema(columns, metadata={"description": description})


_RUN = column("run", TEXT, "The run's id.")
_WHEN = (
    _RUN,
    column(
        "step", _INTEGER, "How many server steps, or rounds of peers, were done by then; a step's own rows count it."
    ),
    column("round", _INTEGER, "The round in which it happened, counted from 0."),
    column("virtual_time", _NUMBER, "The simulated time at which it happened.", unit=_TIME),
)

TABLES: dict[str, pa.Schema] = {
    "steps": _table(
        "One row for each server step or, without a server, for each round of peers.",
        *_WHEN,
        column("used", _INTEGER, "How many updates the step used, or how many times peers mixed in the round."),
        column("discarded", _INTEGER, "How many updates were discarded for being late since the step before."),
        column(
            "in_flight", _INTEGER, "How many dispatches were under way after the step, or how many peers were at work."
        ),
        column(
            "staleness_mean",
            _NUMBER,
            "Mean staleness of the updates used, or mean age of the messages mixed; null if there were none.",
            unit=_STALENESS,
            null=True,
        ),
        column(
            "staleness_max",
            _NUMBER,
            "Largest staleness of the updates used, or largest age of the messages mixed; null if there were none.",
            unit=_STALENESS,
            null=True,
        ),
        column(
            "up_bytes",
            _LONG,
            "Size of all updates that the step used, or of all messages that peers sent; null in a dry run.",
            unit="bytes",
            null=True,
        ),
        column(
            "down_bytes",
            _LONG,
            "Size of all messages that the clients of those updates had received, or of the peers' messages that were "
            "not lost; null in a dry run.",
            unit="bytes",
            null=True,
        ),
        column("samples", _LONG, "How many training samples the clients of those updates, or the peers, hold."),
        column(
            "server_flops",
            _NUMBER,
            "What the server computed: passes through the network and sums of vectors; null without a server and in a "
            "dry run.",
            unit="floating-point operations",
            null=True,
        ),
        column(
            "cache_bytes",
            _LONG,
            "What the server keeps: the model with its frozen parameters, what the algorithm needs beside it, and a "
            "full buffer of updates; null without a server and in a dry run.",
            unit="bytes",
            null=True,
        ),
        column(
            "similarity",
            _NUMBER,
            "Where Feddle's search starts, the cosine between the coefficients' gradients on the server's data and on "
            "in-domain reference samples; null without such samples.",
            null=True,
        ),
        column(
            "seconds",
            _NUMBER,
            "Real time of the step, or of all mixing in the round; null in a dry run.",
            unit="s",
            null=True,
            wall=True,
        ),
        column(
            "elapsed_s",
            _NUMBER,
            "Real time from when the first job was handed out until this row was written; null in a dry run.",
            unit="s",
            null=True,
            wall=True,
        ),
    ),
    "updates": _table(
        "One row for each dispatch or, without a server, for each time that a peer trained and mixed.",
        *_WHEN,
        column("client", _INTEGER, "The client or peer."),
        column("dispatch", _INTEGER, "The dispatch's serial number in the run."),
        column(
            "status",
            TEXT,
            "What became of the update: used by a step, discarded for being late, dropped because the client never "
            "reported, or unfinished because the run ended first.",
        ),
        column("dispatched_at", _NUMBER, "When the client received the model, or when the peer began.", unit=_TIME),
        column(
            "arrived_at",
            _NUMBER,
            "When the update arrived, or when the peer had trained; null if it did not arrive.",
            unit=_TIME,
            null=True,
        ),
        column(
            "version",
            _INTEGER,
            "Version of the model that the client received, which is the number of server steps before it. Without a "
            "server: how many times the peer had mixed before.",
        ),
        column(
            "staleness",
            _NUMBER,
            "How old the received model was when the update arrived, or when the dispatch ended without an arrival. "
            "Without a server: the mean age of the messages mixed, 0 if there were none.",
            unit=_STALENESS,
        ),
        column(
            "weight",
            _NUMBER,
            "The update's weight in the server's sum; null if it was not used or the server took no weighted sum.",
            null=True,
        ),
        column("samples", _LONG, "How many training samples the client holds."),
        column("local_steps", _INTEGER, f"How many optimiser steps it took; {_UNUSED}", null=True),
        column(
            "samples_seen",
            _LONG,
            "How many samples it took gradients of, repeats counted; null without a server, if the update was not "
            "used, and in a dry run.",
            null=True,
        ),
        column(
            "loss_before",
            _NUMBER,
            f"Loss of the first mini-batch, before training; {_UNUSED}",
            null=True,
        ),
        column(
            "loss_after",
            _NUMBER,
            "Loss of the last mini-batch, before its step, or of all samples if training stopped at a tolerance; "
            f"{_UNUSED}",
            null=True,
        ),
        column(
            "residual",
            _NUMBER,
            "Norm of the local problem's gradient when last measured; null in algorithms without a tolerance.",
            null=True,
        ),
        column(
            "tolerance",
            _NUMBER,
            "Residual at which training was to stop; null in algorithms without a tolerance.",
            null=True,
        ),
        column("penalty", _NUMBER, "The client's penalty beta_i in ADMM; null in other algorithms.", null=True),
        column(
            "solver_iterations",
            _NUMBER,
            "Mean number of iterations of a solve in deep equilibrium layers; null in models without any.",
            null=True,
        ),
        column(
            "solver_residual",
            _NUMBER,
            "Largest relative residual that a solve left; null in models without deep equilibrium layers.",
            null=True,
        ),
        column(
            "unconverged",
            _LONG,
            "How many solves, one for each sample of a batch, left more than the tolerance; null in models without "
            "deep equilibrium layers.",
            null=True,
        ),
        column(
            "up_bytes",
            _LONG,
            f"Size of the update, or of the peer's messages to all neighbours; {_UNUSED}",
            unit="bytes",
            null=True,
        ),
        column(
            "down_bytes",
            _LONG,
            "Size of the message that the client received; null without a server, if the update was not used, and in a "
            "dry run.",
            unit="bytes",
            null=True,
        ),
        column("seconds", _NUMBER, f"Real time of the training; {_UNUSED}", unit="s", null=True, wall=True),
        column("worker", TEXT, f"The worker that trained; {_UNUSED}", null=True, wall=True),
    ),
    "evaluations": _table(
        "One row for each metric of each model that was evaluated.",
        *_WHEN,
        column(
            "subject",
            TEXT,
            "Whose model was evaluated: global, the server's model; client, what one client predicts with; unseen, "
            "what a client predicts with that took no part and adapted to the last model; peer, one peer's model; "
            "peers, all evaluated peers together.",
        ),
        column("member", _INTEGER, "The client or peer; null for the subjects global and peers.", null=True),
        column(
            "picked",
            _INTEGER,
            "How often the client had taken part by then, which is how many of its updates server steps had used. With "
            "0, it still predicts with what it began with; null for all subjects but client.",
            null=True,
            sparse=True,
        ),
        column("split", TEXT, "The samples it was evaluated on: test, train or validation."),
        column(
            "metric",
            TEXT,
            "accuracy, a fraction, in which predictions of NaN are wrong; loss, a mean over samples; in models with "
            "deep equilibrium layers, iterations, a mean over solves, and unconverged, the fraction of solves that "
            "left more than the tolerance; and those that run.metrics asks for. For the "
            "subject peers, a plain name is the mean over peers, and _min, _max and _gap follow it for the smallest "
            "value, the largest and their difference; consensus is the root mean square distance of the peers' "
            "parameters from their mean, and consensus_outputs that of their predicted probabilities on one input.",
        ),
        column(
            "value",
            _NUMBER,
            "The metric's value; null where it is not defined, such as the area under the ROC curve where all samples "
            "have one label.",
            null=True,
        ),
        column(
            "samples",
            _LONG,
            "How many predictions were evaluated, usually one for each sample; 0 for consensus and consensus_outputs.",
        ),
    ),
    "tasks": _table(
        "One row for each job of a worker on the timeline, such as training a chunk of clients, a server step, or an "
        "evaluation. Ray calls jobs tasks.",
        *_WHEN,
        column(
            "task",
            TEXT,
            "What was done: train, step, evaluate, or metrics, which computes those of run.metrics of all outputs of "
            "the global model; without a server mix, evaluate, compare or consensus.",
        ),
        column("worker", TEXT, "The worker that did it.", wall=True),
        column("node", TEXT, "The address of that worker's node; inline, the name of the machine.", wall=True),
        column(
            "pid",
            _INTEGER,
            "The worker's process on that node. run.json has host and GPU of each process under workers.",
            wall=True,
        ),
        column(
            "started_s",
            _NUMBER,
            "Real time from when the first job was handed out until this one started.",
            unit="s",
            wall=True,
        ),
        column("seconds", _NUMBER, "Real time that the job took.", unit="s", wall=True),
    ),
    "exchanges": _table(
        "One row for each message from one peer to another.",
        *_WHEN,
        column("source", _INTEGER, "The peer that sent it."),
        column("target", _INTEGER, "The peer that it was sent to."),
        column("bytes", _LONG, "Size of the message; null in a dry run.", unit="bytes", null=True),
        column("arrived_at", _NUMBER, "When the message arrived; null if it was lost.", unit=_TIME, null=True),
    ),
    "coefficients": _table(
        "One row for each anchor, a client update that Feddle's server keeps, in each search for coefficients.",
        *_WHEN,
        column("anchor", _INTEGER, "The anchor's place in the atlas."),
        column("client", _INTEGER, "The client whose update the anchor is."),
        column("arrived", _INTEGER, "The server step in which that update arrived."),
        column("coefficient", _NUMBER, "The coefficient that the search found for the normalised anchor."),
        column("fallback", _NUMBER, "The coefficient that the search started from and was pulled back to."),
        column("norm", _NUMBER, "The anchor's Euclidean norm, before it is normalised."),
    ),
    "partition": _table(
        "One row for each label that a client holds samples of.",
        _RUN,
        column("client", _INTEGER, "The client or peer."),
        column(
            "split",
            TEXT,
            "Whether it trains on these samples, tests its own model on them, or sets them aside: train, test or "
            "validation.",
        ),
        column("label", _INTEGER, "The label; 0 in data without labels."),
        column("samples", _LONG, "How many samples of the label the client holds."),
    ),
}


def require(table: str) -> pa.Schema:
    """Returns the schema of a table. Raises ValueError where there is no such table."""
    if table not in TABLES:
        raise ValueError(f"table: must be one of {', '.join(TABLES)}, got {table!r}")
    return TABLES[table]


def description_of(table: str) -> str:
    """Returns what one row of a table is. Raises ValueError where there is no such table."""
    text: bytes = (require(table).metadata or {})[b"description"]
    return text.decode()


def columns_of(table: str) -> tuple[Column, ...]:
    """Returns the columns of a table in order, with their meaning. Raises ValueError where there is no such table."""
    return tuple(described(field) for field in require(table))


def dictionary(table: str) -> dict[Hashable | None, Any]:
    """Returns a table's name, what a row is, and each column's description, and its unit if it has one.

    It is flat, because pandas copies it with every new frame. Raises ValueError where there is no such table.
    """
    columns = columns_of(table)
    return {
        "table": table,
        "description": description_of(table),
        "columns": {column.name: column.description for column in columns},
        "units": {column.name: column.unit for column in columns if column.unit},
    }
