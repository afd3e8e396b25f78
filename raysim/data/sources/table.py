"""Tables that a user brings: Parquet or CSV files with named columns of features and labels."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, field_serializer, model_validator

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.columns import counts_rows, is_index, numbers, plain, read_table, require, table_of
from raysim.data.sources.in_memory import InMemory, as_columns, contents
from raysim.data.sources.joined import Rows
from raysim.data.sources.labels import labels_of
from raysim.data.sources.leaks import told_by
from raysim.data.sources.meaning import counted
from raysim.data.sources.raw_samples import standardised
from raysim.data.sources.reading import matching
from raysim.data.sources.source import Share, Source
from raysim.data.sources.subset import balanced, tested
from raysim.parts.errors import BadValue
from raysim.parts.part import Count
from raysim.terms import Inputs

if TYPE_CHECKING:
    import pyarrow as pa


_OWNER = "client|user|writer|owner|speaker|author|subject|patient|participant|person|device|site|hospital|institution"
_SELDOM = {  # names of columns that are seldom inputs, and what they have
    r"(is_)?(train|test|val|valid|validation)|split|(\w+_)?fold|subset": "the name of what divides samples into splits",
    rf"({_OWNER})s?([_ ]?(id|idx|no|nr|number|code))?": "the name of whose samples they are, which `client` says",
    r"(sample|case|row|survey)[_ ]?weights?|weights|fnlwgt": "the name of weights of samples",
}


class Table(Source):
    """A table in Parquet or CSV files, or in memory, with columns of numbers as features and a column of labels.

    Labels may be texts, integers or booleans, which are numbered in sorted order over both splits. Every cell that is
    used must have a value; in a CSV file, a cell that is empty, or holds NA or null, has none.
    """

    name: str = "table"
    path: Annotated[str | None, Field(examples=["samples.csv"])] = None
    """A .parquet, .csv, .csv.gz or .tsv file, or a pattern such as data/train-*.csv. Between cells of CSV is what its
    line of names has: commas, semicolons, tabs or bars. Where it is no comma, numbers may have decimal commas. Several
    files have the same columns, in any order."""
    test_path: str | None = None
    """The file, or a pattern, of the test samples. null: a share of the samples is the test set."""
    frame: Annotated[dict[str, InMemory], BeforeValidator(as_columns)] | None = None
    """The table itself, such as a pandas data frame, instead of a file; from Python only. run.json keeps the shapes and
    hashes of its columns."""
    test_frame: Annotated[dict[str, InMemory], BeforeValidator(as_columns)] | None = None
    """The table of the test samples itself, beside `frame`. null: a share of the samples is the test set."""
    test_share: Share = 0.2
    """Share of the samples that is the test set, equally many of each label; used only without samples to test on. It
    is the same for every seed of a scenario."""
    features: tuple[str, ...] | None = None
    """Columns that are the inputs, in this order; they hold numbers or booleans. null: all other columns, except an
    index, which is a column without a name, one that pandas saved as an index, one that only numbers the rows, all of
    them or those of a part, or one with a name such as id whose whole numbers all differ."""
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

    @classmethod
    def of(cls, frame: Any, test: Any = None, **keys: Any) -> Self:
        """Makes the data of a data frame, and of one of test samples. keys: the others, such as label="kind"."""
        return cls(frame=frame, test_frame=test, **keys)

    @field_serializer("frame", "test_frame")
    def _describe(self, frame: dict[str, InMemory] | None) -> dict[str, Any] | None:
        return None if frame is None else {name: column.described for name, column in frame.items()}

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.path is None) == (self.frame is None):
            raise ValueError("must have exactly one of `path` and `frame`; give the file, or a data frame from Python")
        if (self.path is None and self.test_path) or (self.frame is None and self.test_frame):
            raise ValueError(
                "must have its test samples where the others are: `test_path` beside `path`, `test_frame` "
                "beside `frame`; give the same kind of both"
            )
        return self

    def whole(self) -> Self:
        return self if self.train_samples is None else self.model_copy(update={"train_samples": None})

    def reads(self) -> Iterable[str | Path]:
        patterns = [pattern for pattern in (self.path, self.test_path) if pattern is not None]
        return [path for pattern in patterns for path in matching(pattern)]

    def load(self) -> Dataset:
        """Loads the table. x: float32 (n, features). Raises FileNotFoundError or ValueError, saying what to do."""
        rows = [*self._rows()]
        features, notes = self._features(rows[0].table)
        sides = [name for name in (self.client, *self.columns) if name is not None]
        for some in rows:
            require(some, (*features, self.label, *sides))
        inputs = [np.stack([numbers(some, name) for name in features], axis=1) for some in rows]
        tables = [some.table for some in rows]
        train_y, *test_y = (plain(table, self.label) for table in tables)
        y, classes, told = labels_of(train_y, test_y[0] if test_y else None, self.task, inputs[0])
        splits, start = [], 0
        for table, x in zip(tables, inputs, strict=True):
            columns = {name: plain(table, name) for name in sides}
            if self.client is not None:
                columns["user"] = columns[self.client]  # where `partition: natural` looks
            stored = x if self.standardise else x.astype(np.float32)
            if not start:
                notes += tuple(
                    f"data.features: column {features[place]!r} says no more than {self.label!r}, and may be it in "
                    "other numbers; name all other inputs in data.features unless it is meant"
                    for place in told_by(x, y[: len(x)])
                )
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
                f"x: {counted(len(features), 'feature')}: {', '.join(map(repr, features))}",
                f"y: {self.label!r}, {told.text}",
            ),
            notes=(*notes, *told.notes),
        )

    def _rows(self) -> Iterator[Rows]:
        """Yields the rows of all samples, or those of the training samples and then, if apart, of the test samples."""
        if self.path is not None:
            for key, path in (("path", self.path), ("test_path", self.test_path)):
                if path is not None:
                    yield read_table(key, (path,))
            return
        for key, frame in (("frame", self.frame), ("test_frame", self.test_frame)):
            if frame is not None:
                yield table_of(key, contents(frame, key))

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
        cure = "name all other inputs in data.features unless it is meant"
        for name in found:
            what = next((what for pattern, what in _SELDOM.items() if re.fullmatch(pattern, name.lower())), None)
            if what is None and counts_rows(table, name):
                what = "whole numbers that may number rows of a larger table"
            notes += (f"data.features: column {name!r} is an input, and has {what}; {cure}",) if what else ()
        return found or tuple(others), notes
