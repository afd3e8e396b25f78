"""Images in Parquet files, in the layout of the Hugging Face hub."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.columns import plain, read_table, require
from raysim.data.sources.images import Images
from raysim.data.sources.labels import labels_of
from raysim.data.sources.pixels import decode_all
from raysim.data.sources.reading import matching
from raysim.parts.errors import BadValue

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
    """Column of the labels: integers or texts."""
    columns: tuple[str, ...] = ()
    """Further columns that a partition may use. The training files must have them; with `local_test: test`, so must the
    test files."""

    def reads(self) -> list[str]:
        return [path for pattern in (*self.train, *self.test) for path in matching(pattern)]

    def load(self) -> Dataset:
        """Loads uint8 images (n, height, width, channels): one channel if all images are grey, else three.

        Raises FileNotFoundError if a path matches nothing, and ValueError if the files do not hold what they must.
        """
        needed = (self.image, self.label)
        wanted = (*needed, *self.columns)
        train, test = (
            read_table(key, patterns, wanted, ".parquet")
            for key, patterns in (("train", self.train), ("test", self.test))
        )
        require(train, self.train[0], wanted)
        of_test = [name for name in self.columns if name in test.column_names]
        require(test, self.test[0], (*needed, *of_test))
        contents = [content for table in (train, test) for content in encoded(table, self.image)]
        x = decode_all(contents, self.size, [f"row {row} of {self.image}" for row in range(len(contents))])
        labels, test_labels = plain(train, self.label), plain(test, self.label)
        y, classes, meaning = labels_of(labels, test_labels, "classes", x)
        n = train.num_rows
        dataset = self.dataset(
            Split(x[:n], y[:n], {name: np.array(train[name].to_pylist()) for name in self.columns}),
            Split(x[n:], y[n:], {name: np.array(test[name].to_pylist()) for name in of_test}),
            classes,
        )
        return replace(dataset, notes=meaning.notes)


def encoded(table: "pa.Table", name: str) -> list[bytes]:
    """Returns the bytes of each image file in a column of struct<bytes, path>."""
    kind = table.schema.field(name).type
    if not str(kind).startswith("struct<bytes: binary"):
        raise BadValue(f"column {name!r} must hold struct<bytes, path>, got {kind}")
    contents: Any = table[name].combine_chunks()
    files = contents.field("bytes")
    if files.null_count:
        raise BadValue(f"column {name!r} must hold the images themselves, got only paths of some")
    return list(files.to_pylist())
