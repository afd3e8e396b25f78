"""Data sets of the Hugging Face library `datasets`, saved in a folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.meaning import NamedArrays
from raysim.data.sources.columns import plain, require
from raysim.data.sources.images import Images, decode_all
from raysim.data.sources.labels import Said, labels_of
from raysim.data.sources.raw_samples import RawSamples
from raysim.data.sources.reading import matching, reading
from raysim.data.sources.rows import read_files
from raysim.parts.errors import BadValue, MissingFile
from results.location import location
from results.texts import extra

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

Paths = Annotated[tuple[str, ...], Field(min_length=1)]


class HuggingFace(RawSamples):
    """A data set of the Hugging Face library `datasets`, in a folder of `save_to_disk`.

    It needs the package `datasets` (`pip install "raysim-fl[huggingface]"`). Inputs are a column of images, or of lists
    or arrays of numbers that all have one shape; labels are integers, class labels or texts.
    """

    name: str = "huggingface"
    path: Annotated[str, Field(examples=["data/saved"])]
    """Folder that `save_to_disk` wrote, with one split or several."""
    train: str = "train"
    """Split of the training samples; not used if the folder holds a single split."""
    test: str | None = "test"
    """Split of the test samples. null, or if there is a single split: a share of the training samples is the test set.
    """
    input: str = "image"
    """Column of the inputs; not used where `inputs` names several."""
    label: str = "label"
    """Column of the labels."""

    def load(self) -> Dataset:
        """Loads the splits. Raises FileNotFoundError or ValueError, saying what to do, if they are not as said."""
        splits = read_splits(self.path)
        wanted = {"train": self.train} | ({} if self.test is None else {"test": self.test})
        wanted = {"train": next(iter(splits))} if len(splits) == 1 else wanted
        for key, name in wanted.items():
            if name not in splits:
                cure = "name it, or say null to test on a share" if key == "test" else "name it"
                raise BadValue(f"must be one of the splits {sorted(splits)!r}, got {name!r}; {cure}", key)
        train, *test = (self._samples(splits[name], f" of split {name}") for name in wanted.values())
        names = [tuple(getattr(splits[one].features[self.label], "names", ())) for one in wanted.values()]
        if names[-1] != names[0]:
            must = f"class labels of {self.test!r} must have the names of those of {self.train!r}"
            raise BadValue(f"{must}, {[*names[0]]!r}, got {[*names[-1]]!r}; cast both to one ClassLabel")
        unused = [f"split {name!r}" for name in splits if name not in wanted.values()]
        return self.made_of(train, test[0] if test else None, unused, names[0])

    def _samples(self, split: "datasets.Dataset", where: str) -> Split:
        names = self.inputs if isinstance(self.inputs, tuple) else (self.input,)
        for name in (*names, self.label, *self.sides):
            if name not in split.column_names:
                text = f"a column {name!r} must be there, got {split.column_names!r}"
                raise BadValue(f"{text}; name the right ones, by `input` and `label`")
            if missing := split.select_columns([name]).with_format("arrow")[:][name].null_count:
                raise BadValue(f"column {name!r} must have a value in every row, got {missing} without; leave them out")
        found = {name: self._inputs(split, name, where) for name in names}
        labels, *sides = (np.asarray(_values(split, name)) for name in (self.label, *self.sides))
        labels = labels if labels.dtype.kind != "O" else labels.astype(np.str_)
        x = NamedArrays(found) if isinstance(self.inputs, tuple) else found[names[0]]
        return Split(x, labels, dict(zip(self.sides, sides, strict=True)))

    def _inputs(self, split: "datasets.Dataset", name: str, where: str) -> np.ndarray:
        import datasets

        if not isinstance(split.features[name], datasets.Image):
            values = _values(split, name)
            if len(shapes := {np.shape(value) for value in values}) > 1:
                text = f"got {len(shapes)} shapes such as {sorted(shapes)[:2]!r}; pad or cut them"
                raise BadValue(f"values of column {name!r} must have one shape, {text}")
            array = np.asarray(values)  # with bytes as int64
            return array.astype(np.uint8) if _dtype(split.features[name]) == "uint8" else array
        images = split.select_columns([name]).cast_column(name, datasets.Image(decode=False))[:][name]
        contents = [Path(image["path"]).read_bytes() if image["bytes"] is None else image["bytes"] for image in images]
        return decode_all(contents, self.size, [f"row {place} of {name}{where}" for place in range(len(images))])


def _dtype(feature: Any) -> str | None:
    """Returns the type of the numbers in a column of lists or arrays."""
    while hasattr(feature, "feature"):
        feature = feature.feature
    return getattr(feature, "dtype", None)


def _values(split: "datasets.Dataset", name: str) -> Any:
    """Returns a column's values, as numpy has them."""
    return split.select_columns([name]).with_format("numpy")[:][name]


def read_splits(path: str) -> dict[str, "datasets.Dataset"]:
    """Returns the splits by name. A folder of a single split has one named `all`."""
    try:
        import datasets
    except ImportError as error:
        raise BadValue(f"needs the package `datasets`, which is not installed; {extra('huggingface')}") from error
    folder = location(path).expanduser()
    if not folder.is_dir():
        cure = "save the data set there: load_dataset(...).save_to_disk(path)"
        raise MissingFile(f"must be a folder of `save_to_disk`, got {path!r}, where there is none; {cure}", "path")
    cure = "save it again, or read Parquet files with data of the name `parquet`, `table` or `text`"
    with reading(folder, "a whole folder of `save_to_disk`", cure):
        loaded = datasets.load_from_disk(str(folder))
    return dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"all": loaded}


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
        return self.dataset(
            Split(x[:n], y[:n], {name: np.array(train.table[name].to_pylist()) for name in self.sides}),
            Split(x[n:], y[n:], {name: np.array(test.table[name].to_pylist()) for name in of_test}),
            meant,
        )


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
