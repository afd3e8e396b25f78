"""The tables of a run: the classes of their other rows, and an Arrow schema made of the class of each."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from results.columns import Column, Int, Long, Number, Text, column, described, optional, schema
from results.rows import TIME, EvaluationRow, Row, StepRow, TimedRow, UpdateRow


@dataclass(slots=True, kw_only=True)
class TaskRow(TimedRow):
    """One row for each job of a worker on the timeline, such as training a chunk of clients, a server step, or an
    evaluation. Ray calls jobs tasks."""

    task: Text = column(
        "What was done: train, step, evaluate, or metrics, which computes those of run.metrics of all outputs of "
        "the global model; without a server mix, evaluate, compare or consensus."
    )
    worker: Text = column("The worker that did it.", "wall")
    node: Text = column("The address of that worker's node; without Ray, the name of the machine.", "wall")
    pid: Int = column(
        "The worker's process on that node. run.json has host and GPU of each process under workers.", "wall"
    )
    started_s: Number = column(
        "Real time from when the first job was handed out until this one started.", "wall", unit="s"
    )
    seconds: Number = column("Real time that the job took.", "wall", unit="s")


@dataclass(slots=True, kw_only=True)
class ExchangeRow(TimedRow):
    """One row for each message from one peer to another."""

    source: Int = column("The peer that sent it.")
    target: Int = column("The peer that it was sent to.")
    bytes: Long | None = optional("Size of the message; null in a dry run.", unit="bytes")
    arrived_at: Number | None = optional("When the message arrived; null if it was lost.", unit=TIME)


@dataclass(slots=True, kw_only=True)
class CoefficientRow(TimedRow):
    """One row for each anchor, a client update that Feddle's server keeps, in each search for coefficients."""

    anchor: Int = column("The anchor's place in the atlas.")
    client: Int = column("The client whose update the anchor is.")
    arrived: Int = column("The server step in which that update arrived.")
    coefficient: Number = column("The coefficient that the search found for the normalised anchor.")
    fallback: Number = column("The coefficient that the search started from and was pulled back to.")
    norm: Number = column("The anchor's Euclidean norm, before it is normalised.")


@dataclass(slots=True, kw_only=True)
class PrivacyRow(Row):
    """One row for each client that could take part, at the end of a run with `privacy`: how exposed it is, and why."""

    client: Int = column("The client.", "sparse")
    uses: Int = column(
        "How many server steps used updates of it; for the unit sample, how many steps of its training could show any "
        "one of its samples.",
        "sparse",
    )
    squared_weights: Number = column(
        "Square of how far it could have moved all that the steps show, where an update of the largest weight moves "
        "one step's sum by 1: with independent noise, the sum over steps of its squared weights by the largest one.",
        "sparse",
    )
    epsilon: Number | None = optional("Its epsilon; null where there was no noise.", "sparse")


@dataclass(slots=True, kw_only=True)
class PartitionRow(Row):
    """One row for each label that a client holds samples of."""

    client: Int = column("The client or peer.")
    split: Text = column(
        "Whether it trains on these samples, tests its own model on them, or sets them aside: train, test or "
        "validation."
    )
    label: Int = column("The label; 0 in data without labels.")
    samples: Long = column("How many samples of the label the client holds.")


ROWS: dict[str, type[Row]] = {
    "steps": StepRow,
    "updates": UpdateRow,
    "evaluations": EvaluationRow,
    "tasks": TaskRow,
    "exchanges": ExchangeRow,
    "coefficients": CoefficientRow,
    "partition": PartitionRow,
    "privacy": PrivacyRow,
}
"""The class of the rows of each table."""

TABLES: dict[str, pa.Schema] = {table: schema(row) for table, row in ROWS.items()}

OWN = ("steps", "updates", "coefficients")
"""The tables that may have own columns: numbers that an algorithm adds, after the columns of the schema."""


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


def with_own(table: str, names: Iterable[str]) -> pa.Schema:
    """Returns the schema of a table with own columns of these names after the others."""
    described = {"description": "A custom column of the algorithm."}
    fields = [pa.field(name, pa.float64(), metadata=described) for name in names]
    return pa.schema([*TABLES[table], *fields], metadata=TABLES[table].metadata)


def own_names(table: str, found: pa.Schema) -> tuple[str, ...]:
    """Returns the names of the own columns in the schema of a file; unknown columns that are not numbers are left
    out."""
    known = set(TABLES[table].names)
    return tuple(c.name for c in found if table in OWN and c.name not in known and c.type == pa.float64())
