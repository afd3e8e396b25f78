"""Images in Parquet files, in the layout of the Hugging Face hub."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.meaning import InputMeaning, Meaning
from raysim.data.sources.columns import plain, require
from raysim.data.sources.images import Images
from raysim.data.sources.labels import Said, labels_of
from raysim.data.sources.pixels import decode_all
from raysim.data.sources.reading import matching
from raysim.data.sources.rows import read_files
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
    """Column of the images, such as `img`: of struct<bytes, path>, or of bytes alone."""
    label: str = "label"
    """Column of the labels: integers or texts, which are numbered in sorted order."""

    def reads(self) -> list[str]:
        return [path for pattern in (*self.train, *self.test) for path in matching(pattern)]

    def load(self) -> Dataset:
        """Loads uint8 images (n, height, width, channels): one channel if all images are grey, else three.

        Raises FileNotFoundError if a path matches nothing, and ValueError if the files do not hold what they must.
        """
        needed = (self.image, self.label)
        wanted = (*needed, *self.sides)
        train, test = (
            read_files(key, patterns, columns=wanted, suffix=".parquet").with_places(self.sides)
            for key, patterns in (("train", self.train), ("test", self.test))
        )
        require(train, wanted)
        of_test = [name for name in self.sides if name in test.table.column_names]
        require(test, (*needed, *of_test))
        contents = [content for rows in (train, test) for content in encoded(rows.table, self.image)]
        n = train.table.num_rows
        names = [rows.place(row) for rows in (train, test) for row in range(rows.table.num_rows)]
        x = decode_all(contents, self.size, names)
        y, meant = labels_of([plain(rows.table, self.label) for rows in (train, test)], Said("classes"))
        dataset = self.dataset(
            Split(x[:n], y[:n], {name: np.array(train.table[name].to_pylist()) for name in self.sides}),
            Split(x[n:], y[n:], {name: np.array(test.table[name].to_pylist()) for name in of_test}),
            meant.outputs,
        )
        return replace(dataset, meaning=Meaning(InputMeaning.of(dataset.train.x, dataset.mean, dataset.std), meant))


def encoded(table: "pa.Table", name: str) -> list[bytes]:
    """Returns the bytes of each image file in a column of struct<bytes, path>, or of bytes."""
    import pyarrow.compute as pc
    import pyarrow.types as types

    files: Any = table[name]
    if types.is_struct(files.type) and "bytes" in [field.name for field in files.type.fields]:
        files = pc.struct_field(files, "bytes")
    if not (types.is_binary(files.type) or types.is_large_binary(files.type)):
        kind = table.schema.field(name).type
        raise BadValue(f"column {name!r} must hold the bytes of images, or struct<bytes, path>, got {kind}; convert it")
    if files.null_count:
        text = "must hold the images themselves, got only paths of some; write their bytes"
        raise BadValue(f"column {name!r} {text}")
    return list(files.to_pylist())
