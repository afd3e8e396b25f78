"""Tables that a user brings: Parquet or CSV files with named columns of features and labels."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.columns import is_index, numbers, plain, read_table, require
from raysim.data.sources.meaning import labels_of
from raysim.data.sources.raw_samples import standardised
from raysim.data.sources.reading import matching
from raysim.data.sources.source import Share, Source
from raysim.data.sources.subset import balanced, tested
from raysim.parts.errors import BadValue
from raysim.parts.part import Count
from raysim.terms import Inputs

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
    """Columns that are the inputs, in this order; they hold numbers or booleans. null: all other columns, except an
    index, which is a column without a name, with one that pandas gives, or that only numbers the rows."""
    label: Annotated[str, Field(examples=["label"])]
    """Column of the labels."""
    task: Literal["classes", "regression"] | None = None
    """What is predicted. classes: labels, which are whole numbers, booleans or texts. regression: numbers, with the
    squared error as the loss. null: a regression for floats, and classes for all others."""
    client: str | None = None
    """Column with the name of each sample's owner, by which `partition: natural` divides. null: there is none."""
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
        tables = [read_table("path", (self.path,))]
        if self.test_path is not None:
            tables.append(read_table("test_path", (self.test_path,)))
        features, notes = self._features(tables[0])
        sides = [name for name in (self.client, *self.columns) if name is not None]
        for path, table in zip((self.path, self.test_path), tables, strict=False):
            require(table, str(path), (*features, self.label, *sides))
        inputs = [np.stack([numbers(table, name) for name in features], axis=1) for table in tables]
        train_y, *test_y = (plain(table, self.label) for table in tables)
        y, classes, told = labels_of(train_y, test_y[0] if test_y else None, self.task, inputs[0])
        splits, start = [], 0
        for table, x in zip(tables, inputs, strict=True):
            columns = {name: plain(table, name) for name in sides}
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
            raise BadValue(f"must name a column, got none beside {table.column_names!r}", "features")
        rows = [name for name in others if is_index(table, name)]
        found = tuple(name for name in others if name not in rows)
        text = "is left out; name all inputs in data.features if it is meant" if found else "is an input all the same"
        notes = tuple(f"data.features: column {name!r} is an index of the rows, and {text}" for name in rows)
        return found or tuple(others), notes
