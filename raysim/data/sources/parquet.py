"""Images in Parquet files, in the layout of the Hugging Face hub."""

from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.decoded import decoded
from raysim.data.sources.images import Images
from raysim.data.sources.pixels import decode, stack
from raysim.data.sources.reading import all_matching, matching, reading
from results.location import location
from results.store import in_arrow

if TYPE_CHECKING:
    import pyarrow as pa

Paths = Annotated[tuple[str, ...], Field(min_length=1)]


class Parquet(Images):
    """Encoded images and their labels in Parquet files, as the Hugging Face hub has them."""

    name: str = "parquet"
    train: Annotated[Paths, Field(examples=[["data/train.parquet"]])]
    """Files of the training set, or patterns such as data/train-*.parquet."""
    test: Annotated[Paths, Field(examples=[["data/test.parquet"]])]
    """Files of the test set, or patterns such as data/test-*.parquet."""
    image: Annotated[str, Field(examples=["image"])]
    """Column of the images, such as `img`; its type is struct<bytes, path>."""
    label: str = "label"
    """Column of the labels, which are integers from 0."""
    columns: tuple[str, ...] = ()
    """Further columns that a partition may use. The training files must have them; with `local_test: test`, so must the
    test files."""

    def reads(self) -> list[str]:
        return [path for pattern in (*self.train, *self.test) for path in matching(pattern)]

    def load(self) -> Dataset:
        """Loads uint8 images (n, height, width, channels): one channel if all images are grey, else three.

        Raises FileNotFoundError if a path matches nothing, and ValueError if the files do not hold what they must.
        """
        train = read_columns("train", self.train, (self.image, self.label, *self.columns))
        test = read_columns("test", self.test, (self.image, self.label), self.columns)
        of_test = [name for name in self.columns if name in test.column_names]
        contents = [encoded(table, self.image) for table in (train, test)]

        def pixels() -> np.ndarray:
            named = [(content, f"row {row} of {self.image}") for of in contents for row, content in enumerate(of)]
            return stack([decode(content, self.size, where) for content, where in named])

        x = decoded(chain.from_iterable(contents), self.size, pixels)
        y = np.concatenate([integers(table, self.label) for table in (train, test)])
        n = train.num_rows
        if len(strangers := np.setdiff1d(y[n:], y[:n])):
            raise ValueError(
                f"data parquet: labels of test samples must be labels of training samples, got {strangers[0]} in test "
                "samples only; correct the labels, or leave these out"
            )
        return self.dataset(
            Split(x[:n], y[:n], {name: np.array(train[name].to_pylist()) for name in self.columns}),
            Split(x[n:], y[n:], {name: np.array(test[name].to_pylist()) for name in of_test}),
            num_classes=int(y.max()) + 1,
        )


def read_columns(
    key: str, patterns: tuple[str, ...], columns: tuple[str, ...], others: tuple[str, ...] = ()
) -> "pa.Table":
    """Reads these columns of all files that match, the files of a pattern in order of their names.

    key: the key that holds the patterns, for errors. others: columns that are read if the first file has them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables: list[pa.Table] = []
    what = "a whole Parquet file"
    paths = all_matching("parquet", key, patterns)
    for path in paths:
        with reading(path, what):
            name, system = in_arrow(location(path))
            present = pq.read_schema(name, filesystem=system).names
        if not tables:
            columns += tuple(name for name in others if name in present)
        absent = [name for name in columns if name not in present]
        if absent:
            raise ValueError(f"data parquet: {path!r} must have a column {absent[0]!r}, got {present!r}")
        with reading(path, what):
            tables.append(pq.read_table(name, columns=list(dict.fromkeys(columns)), filesystem=system))
        if not tables[-1].schema.equals(tables[0].schema):
            raise ValueError(
                f"data parquet: files must hold columns of the same types, got {tables[-1].schema.types!r} in {path!r} "
                f"and {tables[0].schema.types!r} in {paths[0]!r}; make them alike"
            )
    table = pa.concat_tables(tables)
    if table.num_rows == 0:
        raise ValueError(f"data parquet: `{key}` must match files with rows, got none in {paths[0]!r}")
    empty = [name for name in columns if table[name].null_count]
    if empty:
        raise ValueError(f"data parquet: column {empty[0]!r} must have a value in every row, got nulls; fill them")
    return table


def encoded(table: "pa.Table", name: str) -> list[bytes]:
    """Returns the bytes of each image file in a column of struct<bytes, path>."""
    kind = table.schema.field(name).type
    if not str(kind).startswith("struct<bytes: binary"):
        raise ValueError(f"data parquet: column {name!r} must hold struct<bytes, path>, got {kind}")
    contents: Any = table[name].combine_chunks()
    files = contents.field("bytes")
    if files.null_count:
        raise ValueError(f"data parquet: column {name!r} must hold the images themselves, got only paths of some")
    return list(files.to_pylist())


def integers(table: "pa.Table", name: str) -> np.ndarray:
    """Returns a column of labels as int64."""
    values: np.ndarray = table[name].to_numpy()
    if values.dtype.kind not in "iu" or values.min() < 0:
        bad = values.argmin() if values.dtype.kind in "iu" else 0
        raise ValueError(
            f"data parquet: column {name!r} must hold integers from 0, got {table.schema.field(name).type} "
            f"such as {values[bad]!r} in row {bad}; encode the labels as numbers from 0"
        )
    return values.astype(np.int64)
