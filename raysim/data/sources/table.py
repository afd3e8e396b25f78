"""Tables that a user brings: CSV, Parquet or JSON files with named columns of features and labels."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, field_serializer, model_validator

from raysim.data.dataset import LOSSES, Dataset
from raysim.data.meaning import InputMeaning, Meaning, Open, require_answered
from raysim.data.sources.columns import encoded, is_numeric, owners, plain, require, require_plain, table_of
from raysim.data.sources.in_memory import AnArray, InMemory, as_columns, contents
from raysim.data.sources.labels import EXACT, Said, labels_of, questions
from raysim.data.sources.raw_samples import splits_of
from raysim.data.sources.reading import matching
from raysim.data.sources.rows import Cells, Rows, first_text, is_number, read_files
from raysim.data.sources.source import Share, Source
from raysim.parts.errors import BadValue, nearest
from raysim.terms import Inputs

if TYPE_CHECKING:
    import pyarrow as pa

NAMELESS = re.compile(r"|Unnamed: \d+(\.\d+)?|__index_level_\d+__")  # what pandas writes in place of no name


class Table(Source):
    """A table in CSV, Parquet or JSON files, or in memory: columns of features, and one of labels.

    Every column is a feature that is neither the label nor what clients are divided by, unless `features` or `exclude`
    says otherwise.
    Every cell that is used must have a value; in a CSV file, a cell that is empty, or holds NA or null, has none.
    """

    name: str = "table"
    path: Annotated[str | None, Field(examples=["samples.csv"])] = None
    """A .csv, .csv.gz, .tsv, .parquet or .jsonl file, or a pattern such as data/train-*.csv. Several files have the
    same columns, in any order."""
    test_path: str | None = None
    """The file, or a pattern, of the test samples. null: a share of the samples is the test set."""
    delimiter: Annotated[str | None, Field(min_length=1, max_length=1)] = None
    """What is between the cells of CSV files, such as ";". null: a comma or, in .tsv files, a tab."""
    decimal: Literal[".", ","] = "."
    """The decimal point of CSV files: "," reads 5,123 as a number between 5 and 6."""
    frame: Annotated[dict[str, AnArray], BeforeValidator(as_columns)] | None = None
    """The table itself, such as a pandas data frame, instead of a file; from Python only. run.json keeps the shapes and
    hashes of its columns."""
    test_frame: Annotated[dict[str, AnArray], BeforeValidator(as_columns)] | None = None
    """The table of the test samples itself, with `frame`. null: a share of the samples is the test set."""
    test_share: Share = 0.2
    """Share of the samples that is the test set, equally many of each label; used only without samples to test on. It
    is the same for every seed of a scenario."""
    features: tuple[str, ...] | None = None
    """Columns that are the inputs, in this order; they hold numbers or booleans. null: all columns but the label, that
    by which samples are divided, and `exclude`."""
    exclude: tuple[str, ...] = ()
    """Columns that are no features, such as an index that pandas saved, which has the name "". Samples may be divided
    by them."""
    categorical: tuple[str, ...] | Literal["all"] = ()
    """Features whose values are kinds, such as texts: each value becomes a feature of 0 or 1, in sorted order. all:
    those that hold texts."""
    label: Annotated[str, Field(examples=["label"])]
    """Column of the labels."""
    task: Literal["classes", "regression"] | None = None
    """What is predicted. classes: whole numbers, booleans or texts, which are numbered in sorted order. regression:
    numbers, with the squared error as the loss. null: classes for texts, booleans, and whole numbers that are 0 to
    C - 1 without gaps, at most 100; all others must be said."""
    standardise: bool = True
    """Whether each feature is shifted and scaled to mean 0 and deviation 1 over the training samples."""

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
            text = "must have its test samples where the others are: `test_path` beside `path`, `test_frame`"
            raise ValueError(f"{text} beside `frame`; give the same kind of both")
        if self.features is not None and self.exclude:
            raise ValueError("must have one of `features` and `exclude`, which is for all other columns; leave one out")
        return self

    def reads(self) -> Sequence[str | Path]:
        patterns = [pattern for pattern in (self.path, self.test_path) if pattern is not None]
        return [path for pattern in patterns for path in matching(pattern)]

    def load(self) -> Dataset:
        """Loads the table. x: float32 (n, features). Raises FileNotFoundError or ValueError, saying what to do."""
        rows = [*self._rows()]
        features = self.features or self._others(rows[0].table)
        for some in rows:
            for names, key in ((features, "features"), ((self.label,), "label"), (self.sides, "partition.by")):
                require(some, names, key)
        if self.categorical != "all" and (unknown := [name for name in self.categorical if name not in features]):
            must = f"must name features, got {unknown[0]!r}{nearest(unknown[0], features)}"
            raise BadValue(f"{must}, which are {', '.join(map(repr, features[:20]))}; correct the name", "categorical")
        ys, said = [plain(some.table, self.label) for some in rows], Said(self.task)
        asked = [*self._asked(rows, features), *self._asked_of_label(rows)]
        for one in questions(ys, said):
            asked.append(one._replace(answers={line: says for line, says in one.answers.items() if "task" in line}))
        require_answered(asked)
        kinds = self._kinds(rows, features)
        x = [encoded(some, features, kinds, np.float64 if self.standardise else np.float32) for some in rows]
        y, labels = labels_of(ys, said)
        splits = splits_of(
            x, y, [{name: self._exact(some, name) for name in self.sides} for some in rows], self.test_share
        )
        names = tuple(
            one for name in features for one in ([f"{name}={v}" for v in kinds[name]] if name in kinds else [name])
        )
        known = {name: tuple(values.tolist()) for name, values in kinds.items()}
        inputs = InputMeaning("features", (len(names),), "float32", names, columns=features, kinds=known)
        meaning, loss = Meaning(inputs, labels), LOSSES[labels.task]
        return Dataset(*splits, labels.outputs, loss=loss, meaning=meaning, standardise=self.standardise)

    def _rows(self) -> Iterator[Rows]:
        """Yields the rows of all samples, or those of the training samples and then, if apart, of the test samples."""
        for key, path, frame in (("path", self.path, "frame"), ("test_path", self.test_path, "test_frame")):
            if path is not None:
                cells = Cells(self.delimiter, self.decimal, self.sides)  # of whose values 1 and 01 are two
                yield read_files(key, (path,), cells).with_places(self.sides)
            elif (columns := getattr(self, frame)) is not None:
                yield table_of(frame, contents(columns, frame))

    def _others(self, table: "pa.Table") -> tuple[str, ...]:
        """Returns all columns that are features where they are not named."""
        if unknown := {*self.exclude} - {*table.column_names}:
            text = f"must name columns, got {sorted(unknown)[0]!r}, which is none of {table.column_names[:20]!r}"
            raise BadValue(f"{text}; correct the name", "exclude")
        no_features = {self.label, *self.sides, *self.exclude}
        if not (found := tuple(name for name in table.column_names if name not in no_features)):
            raise BadValue(f"must name a column, got none beside {table.column_names!r}", "features")
        return found

    def _nameless(self, table: "pa.Table") -> list[str]:
        """Returns the columns that would be features, and have no name or were saved by pandas as an index."""
        if self.features is not None:
            return []
        of_pandas = (table.schema.pandas_metadata or {}).get("index_columns", ())
        return [name for name in self._others(table) if NAMELESS.fullmatch(name) or name in of_pandas]

    def _asked(self, rows: list[Rows], features: tuple[str, ...]) -> Iterator[Open]:
        """Asks what columns are that are an index, or hold other things than numbers."""
        nameless = self._nameless(rows[0].table)
        if nameless:
            text = f"must have a name for each feature, got {nameless[0]!r}, which pandas writes for an index"
            answers = {
                f"exclude: {_yaml([*self.exclude, *nameless])}": "it is an index of the rows",
                f"features: {_yaml(features)}": "it is a feature",
            }
            yield Open("features", text, answers)
        if self.categorical == "all":
            return
        known = {*self.categorical, *nameless}
        texts = {
            name: some for some in rows for name in features if name not in known and not is_numeric(some.table, name)
        }
        if not texts:
            return
        name, some = next(iter(texts.items()))
        require_plain(some.table, name)
        row, cell = first_text(some.table[name], self.decimal) or (0, str(some.table[name][0].as_py()))
        text = f"features must be numbers, got {cell!r} in column {name!r}, {some.place(row)}"
        others = [one for one in features if one not in texts]
        all_left_out = f"exclude: {_yaml([*self.exclude, *nameless, *texts])}"
        categorical = f"categorical: {_yaml([*self.categorical, *texts])}"
        answers = {
            categorical: "each value becomes a feature of 0 or 1",
            f"features: {_yaml(others)}" if self.features else all_left_out: "they are not features",
        }
        if not {*others} - {*nameless}:  # nothing would be left
            answers = {categorical: answers[categorical]}
        yield Open("features", text, {**answers, **self._commas(cell)}, "correct the cell, or ")

    def _asked_of_label(self, rows: list[Rows]) -> Iterator[Open]:
        """Asks what a label is that is a text where it should be a number, or where other cells of a CSV file are."""
        for some in rows:
            column = some.table[self.label]
            if self.task == "classes" or (found := first_text(column, self.decimal)) is None:
                continue
            row, cell = found
            texts = column.to_pylist() if self._of_csv else []
            if self.task == "regression" or any(is_number(text) or is_number(text, ",") for text in texts):
                must = "numbers for regression" if self.task else "all numbers or all texts"
                text = f"labels must be {must}, got {cell!r} in {some.place(row)}, which is not a number"
                answers = {"task: classes": "each text is a class", **self._commas(cell)}
                yield Open("task", text, answers, "correct the cell, or ")
                return

    @property
    def _of_csv(self) -> bool:
        return self.path is not None and bool({".csv", ".tsv"} & {*Path(self.path.lower()).suffixes})

    def _commas(self, cell: str) -> dict[str, str]:
        """Returns the line that reads the commas of a cell as decimal points, if they may be."""
        if not self._of_csv or self.decimal == "," or not is_number(cell, ","):
            return {}
        number = float(cell.replace(",", "."))
        return {'decimal: ","': f"{cell} is {number:g}; for thousands, write the file without commas"}

    def _kinds(self, rows: list[Rows], features: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Returns the sorted values of each categorical feature, in the order of features."""
        chosen: Iterable[str] = self.categorical
        if chosen == "all":
            chosen = {name for name in features for some in rows if not is_numeric(some.table, name)}
        held = {name: [plain(some.table, name) for some in rows] for name in features if name in chosen}
        return {name: np.unique(np.concatenate(values)) for name, values in held.items()}

    def inputs_of(self, given: Any, inputs: InputMeaning, folder: Path) -> Any:
        """Takes a data frame, a table of Arrow or a dict of columns, with the features' columns, in any order."""
        columns = as_columns(given)
        if not isinstance(columns, Mapping):
            raise BadValue(f"inputs must be a data frame, or a dict of columns, got {type(given).__name__}")
        if lacking := [name for name in inputs.columns if name not in columns]:
            raise BadValue(f"inputs must have a column {lacking[0]!r}, got {[*columns][:20]!r}; correct the name")
        used = dict[str, InMemory]()
        for name in inputs.columns:
            try:
                used[name] = InMemory.of(columns[name])
            except ValueError as error:
                raise BadValue(f"column {name!r} of the inputs: {error}") from error
        rows = table_of("inputs", contents(used, "inputs"))
        require(rows, inputs.columns)
        kinds = {name: np.array(values) for name, values in inputs.kinds.items()}
        return encoded(rows, inputs.columns, kinds, np.float64)

    def _exact(self, rows: Rows, name: str) -> np.ndarray:
        """Returns a column whose values must be told apart."""
        values = plain(rows.table, name)
        values = owners(values) if self._of_csv else values
        if values.dtype.kind == "f" and len(large := np.flatnonzero(np.abs(values) >= EXACT)):
            row = int(large[0])
            text = f"must hold texts, or numbers below 2**53, got {values[row]} in {rows.place(row)}"
            raise BadValue(f"column {name!r} {text}, which others equal when rounded; put a letter before each")
        return values


def _yaml(names: Iterable[str]) -> str:
    return json.dumps([*names], ensure_ascii=False)
