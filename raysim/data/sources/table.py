"""Tables that a user brings: Parquet or CSV files with named columns of features and labels."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.meaning import labels_of, numbers_rows
from raysim.data.sources.raw_samples import standardised
from raysim.data.sources.reading import all_matching, matching, reading
from raysim.data.sources.source import Share, Source
from raysim.data.sources.subset import balanced, tested
from raysim.parts.part import Count
from raysim.terms import Inputs
from results.location import location
from results.store import in_arrow, local_copy

if TYPE_CHECKING:
    import pyarrow as pa


class Table(Source):
    """A table in Parquet or CSV files, with columns of numbers as features and a column of labels.

    Labels may be texts, integers or booleans, which are numbered in sorted order over both splits. Every cell that is
    used must have a value; in a CSV file, a cell that is empty, or holds NA or null, has none.
    """

    name: str = "table"
    path: Annotated[str, Field(examples=["samples.csv"])]
    """A .parquet, .csv or .csv.gz file, or a pattern such as data/train-*.csv."""
    test_path: str | None = None
    """The file, or a pattern, of the test samples. null: a share of the samples is the test set."""
    test_share: Share = 0.2
    """Share of the samples that is the test set, equally many of each label; used only without `test_path`. It is the
    same for every seed of a scenario."""
    features: tuple[str, ...] | None = None
    """Columns that are the inputs, in this order; they hold numbers or booleans. null: all but those below, and but an
    index: a column without a name or with one that pandas gives, or which only numbers the rows."""
    label: Annotated[str, Field(examples=["label"])]
    """Column of the labels."""
    task: Literal["classes", "regression"] | None = None
    """What is predicted. classes: labels, which are whole numbers, booleans or texts. regression: numbers, with the
    squared error as the loss. null: a regression for floats, and classes for all others."""
    client: str | None = None
    """Column that names whose sample it is, by which `partition: natural` divides. null: there is none."""
    columns: tuple[str, ...] = ()
    """Further columns that a partition may use."""
    standardise: bool = True
    """Whether each feature is shifted and scaled to mean 0 and deviation 1 over the training samples."""
    train_samples: Count | None = None
    """Number of training samples to use: the first ones in stored order, equally many of each label. null: all."""
    test_samples: Count | None = None
    """Number of test samples to use: the first ones in stored order, equally many of each label. null: all."""

    holds: ClassVar[tuple[Inputs, ...]] = ("features",)

    def whole(self) -> Self:
        return self if self.train_samples is None else self.model_copy(update={"train_samples": None})

    def reads(self) -> Iterable[str | Path]:
        patterns = [pattern for pattern in (self.path, self.test_path) if pattern is not None]
        return [path for pattern in patterns for path in matching(pattern)]

    def load(self) -> Dataset:
        """Loads the table. x: float32 (n, features). Raises FileNotFoundError or ValueError, saying what to do."""
        tables = [read_table((self.path,), "path")]
        if self.test_path is not None:
            tables.append(read_table((self.test_path,), "test_path"))
        features, notes = self._features(tables[0])
        sides = [name for name in (self.client, *self.columns) if name is not None]
        for path, table in zip((self.path, self.test_path), tables, strict=False):
            _require(table, str(path), (*features, self.label, *sides))
        inputs = [np.stack([numbers(table, name) for name in features], axis=1) for table in tables]
        train_y, *test_y = (_plain(table, self.label) for table in tables)
        y, classes, told = labels_of(train_y, test_y[0] if test_y else None, self.task, "data table", inputs[0])
        splits, start = [], 0
        for table, x in zip(tables, inputs, strict=True):
            columns = {name: _plain(table, name) for name in sides}
            if self.client is not None:
                columns["user"] = columns[self.client]  # where `partition: natural` looks
            stored = x if self.standardise else x.astype(np.float32)
            splits.append(Split(stored, y[start : start + len(x)], columns))
            start += len(x)
        train, test = splits if len(splits) == 2 else tested(splits[0], self.test_share)
        train = balanced(train, self.train_samples, classes, "train_samples")
        test = balanced(test, self.test_samples, classes, "test_samples")
        if self.standardise:
            train, test = standardised(train, test)
        return Dataset(
            train,
            test,
            classes,
            loss="cross_entropy" if y.dtype == np.int64 else "squared_error",
            meaning=(
                f"x: {len(features)} features: {', '.join(map(repr, features))}",
                f"y: {self.label!r}, {told.text}",
            ),
            notes=(*notes, *told.notes),
        )

    def _features(self, table: "pa.Table") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the columns that are the inputs, and a note for each that is left out or seldom meant."""
        if self.features is not None:
            return self.features, ()
        others = [name for name in table.column_names if name not in (self.label, self.client, *self.columns)]
        if not others:
            raise ValueError(f"data table: `features` must name a column, got none beside {table.column_names!r}")
        rows = [name for name in others if is_index(table, name)]
        found = tuple(name for name in others if name not in rows)
        text = "is left out; name all inputs in data.features if it is meant" if found else "is an input all the same"
        notes = tuple(f"data.features: column {name!r} is an index of the rows, and {text}" for name in rows)
        return found or tuple(others), notes


def is_index(table: "pa.Table", name: str) -> bool:
    """Whether a column only tells rows apart: pandas saves its index so, without a name or with one of its own."""
    if name == "" or re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name):
        return True
    if table.column_names.count(name) > 1 or table[name].null_count:
        return False
    column = _plain(table, name)
    return numbers_rows(column)


def read_table(patterns: tuple[str, ...], key: str) -> "pa.Table":
    """Reads all files that match, of one kind and with the same columns. key: the key of the patterns, for errors."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    tables, paths = [], all_matching("table", key, patterns)
    for path in paths:
        if path.endswith(".parquet"):
            with reading(path, "a whole Parquet file"):
                name, system = in_arrow(location(path))
                tables.append(pq.read_table(name, filesystem=system))
        elif path.endswith((".csv", ".csv.gz")):
            what = "a whole CSV file with a line of column names"
            options = pa_csv.ConvertOptions(strings_can_be_null=True)  # an empty cell is no label of its own
            with reading(path, what), local_copy(location(path)) as copy:
                tables.append(pa_csv.read_csv(copy, convert_options=options))
        else:
            raise ValueError(f"data table: `{key}` must be a .parquet, .csv or .csv.gz file, got {path!r}")
    different = [path for path, table in zip(paths, tables, strict=True) if table.schema != tables[0].schema]
    if different:
        raise ValueError(
            f"data table: files must have the same columns of the same types, got others in {different[0]!r} than in "
            f"{paths[0]!r}; make them alike"
        )
    table = pa.concat_tables(tables)
    if table.num_rows == 0:
        raise ValueError(f"data table: `{key}` must hold rows, got none in {paths[0]!r}")
    return table


def _require(table: "pa.Table", path: str, names: tuple[str, ...]) -> None:
    if lacking := [name for name in names if name not in table.column_names]:
        raise ValueError(
            f"data table: {path!r} must have a column {lacking[0]!r}, got {table.column_names[:20]!r}; correct the name"
        )
    times = Counter(table.column_names)
    if double := [name for name in names if times[name] > 1]:
        raise ValueError(
            f"data table: {path!r} must have one column of each name used, got {times[double[0]]} columns "
            f"{double[0]!r}; rename or drop the others"
        )
    counts = {name: table[name].null_count for name in names if table[name].null_count}
    if counts:
        text = ", ".join(f"{count} in {name!r}" for name, count in counts.items())
        raise ValueError(
            f"data table: {path!r} must have a value in every row of the columns used, got missing values: {text}; "
            "fill them, or drop the rows or the column"
        )


def numbers(table: "pa.Table", name: str) -> np.ndarray:
    """Returns a column of numbers or booleans, float64 (n,): large numbers differ by less than float32 can tell.

    Raises ValueError for others, and if one is not finite as a float32.
    """
    values = _plain(table, name)
    if values.dtype.kind not in "fiub":
        wrong, others = [row for row, text in enumerate(values.tolist()) if not _is_number(text)], len(values)
        cell = f"{values[wrong[0]].item()!r} in row {wrong[0]}" if wrong else f"{values[0].item()!r}"
        cure = "encode it as numbers, or leave it out of `features`"
        if 0 < len(wrong) <= others // 10:
            cure = f"correct these {len(wrong)} cells, or leave it out of `features`"
        raise ValueError(
            f"data table: features must be numbers, got {table.schema.field(name).type} in column {name!r}, such as "
            f"{cell}; {cure}"
        )
    finite = np.isfinite(values.astype(np.float32))
    if wrong := np.flatnonzero(~finite).tolist():
        raise ValueError(
            f"data table: features must be finite, got {len(wrong)} values in {name!r} that are not, such as "
            f"{values[wrong[0]]} in row {wrong[0]}; fill them, or drop the rows or the column"
        )
    return values.astype(np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(table: "pa.Table", name: str) -> np.ndarray:
    """Returns a column as an array (n,) of numbers, booleans or texts."""
    import pyarrow.types as types

    column = table[name]
    if types.is_nested(column.type) or types.is_binary(column.type):
        raise ValueError(
            f"data table: column {name!r} must hold numbers, booleans or texts in UTF-8, got {column.type}; convert it"
        )
    if types.is_decimal(column.type):
        column = column.cast("float64")
    values: np.ndarray = column.to_numpy()
    return values.astype(np.str_) if values.dtype.kind in "OM" else values
