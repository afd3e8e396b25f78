"""Samples that a user brings from Python or in an .npz file: arrays, or a map-style data set of torch."""

from collections.abc import Mapping
from inspect import isfunction
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, field_serializer, model_validator

from raysim.data.dataset import Dataset, Split
from raysim.data.meaning import NamedArrays
from raysim.data.sources.in_memory import AnArray, InMemory, as_array, contents
from raysim.data.sources.inputs import require_same_kind
from raysim.data.sources.raw_samples import RawSamples
from raysim.data.sources.reading import load_npz
from raysim.parts.errors import BadValue
from raysim.parts.own import WrongClass, import_class
from raysim.parts.own_function import ImportPath


class Arrays(RawSamples):
    """Arrays in an .npz file, or in memory: x_train, y_train, x_test and y_test; or x and y, of which a share tests.

    An array with another name is a column that a partition may use, such as `user_train` and `user_test`, or `user`
    beside x and y, if it has a row for each sample.

    A y of shape (n, 1) is one of shape (n,). Where `inputs` names arrays, such as [input_ids, mask], these are in the
    place of x. Other arrays are not used.
    """

    name: str = "arrays"
    path: Annotated[str | None, Field(examples=["samples.npz"])] = None
    """An .npz file, as numpy.savez writes it."""
    arrays: dict[str, AnArray] | None = None
    """The arrays themselves, by name, instead of a file; from Python only. run.json keeps their shapes and hashes."""

    @classmethod
    def of(cls, arrays: Mapping[str, Any], **keys: Any) -> Self:
        """Makes the data of arrays, tensors or series in memory. keys: the others, such as clients=10."""
        return cls(arrays={name: InMemory.of(values) for name, values in arrays.items()}, **keys)

    @field_serializer("arrays")
    def _describe(self, arrays: dict[str, InMemory] | None) -> dict[str, Any] | None:
        return None if arrays is None else {name: array.described for name, array in arrays.items()}

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.path is None) == (self.arrays is None):
            raise ValueError("must have exactly one of `path` and `arrays`; give the file, or arrays from Python")
        return self

    def load(self) -> Dataset:
        """Makes the data set of the arrays. Raises FileNotFoundError if the file is missing, ValueError if not fit."""
        arrays, names = self._content(), self.inputs if isinstance(self.inputs, tuple) else None
        wanted = (*(names or ("x",)), "y")
        of_splits = [f"{name}_{split}" for split in ("train", "test") for name in wanted]
        if set(wanted) <= arrays.keys():
            if both := [name for name in of_splits if name in arrays]:
                text = f"must hold {' and '.join(wanted)}, or those of the splits, got {both[0]!r} beside y"
                raise BadValue(f"{text}; call these {' and '.join(of_splits[: len(wanted)])}, or remove one of them")
            split, unused = _split(arrays, "", names)
            return self.made_of(split, None, unused)
        for key in of_splits:
            if key not in arrays:
                must = f"{', '.join(of_splits[:-1])} and {of_splits[-1]}, or {', '.join(wanted[:-1])} and y"
                other = next((name for name in arrays if name.lower() == key), "the array")
                text = f"must hold {must}, of which a share tests, got {sorted(arrays)!r}"
                raise BadValue(f"{text}; add {key!r}, or rename {other} to that")
        (train, others), (test, more) = _split(arrays, "_train", names), _split(arrays, "_test", names)
        unused = [name for name in arrays if not name.endswith(("_train", "_test"))]
        return self.made_of(train, test, [*unused, *others, *more])

    def _content(self) -> dict[str, np.ndarray]:
        if self.path is not None:
            return load_npz(self.path)
        assert self.arrays is not None
        return contents(self.arrays, "arrays")


def _split(arrays: dict[str, np.ndarray], suffix: str, names: tuple[str, ...] | None) -> tuple[Split, list[str]]:
    """Returns the samples of a split, and the names of its arrays that are no columns.

    suffix: that of its arrays' names. names: those of the inputs; None: x.
    """
    of_split = {name.removesuffix(suffix): array for name, array in arrays.items() if name.endswith(suffix)}
    samples = {name: of_split.pop(name) for name in (*(names or ("x",)), "y")}
    shapes = {name + suffix: array.shape for name, array in samples.items()}
    if () in shapes.values() or len({shape[0] for shape in shapes.values()}) > 1:
        raise BadValue(f"arrays of a split must have a row for each sample, got shapes {shapes!r}; make them alike")
    y = samples.pop("y")
    columns = {name: array for name, array in of_split.items() if array.shape[:1] == y.shape[:1]}
    x = NamedArrays(samples) if names else samples["x"]
    return Split(x, y, columns), [name + suffix for name in of_split if name not in columns]


class TorchDataset(RawSamples):
    """A map-style torch `Dataset` of pairs (x, y), by import path. All samples are read once, into arrays.

    x is a tensor, an array or a picture of PIL, or a dict of them; all of one name have one shape. A picture has the
    pixels that it is given with: turn it, with ImageOps.exif_transpose, if a camera's orientation counts. y is a label,
    or a float as the target of a regression. Random transforms are applied once only, and draw what the module's own
    code seeds. Clients are divided by an attribute of the Dataset that has a value for each sample, such as `writers`.
    """

    name: str = "torch"
    train: Annotated[ImportPath, Field(examples=["my_module:train"])]
    """module:name of a Dataset class, or of a function that returns a Dataset: the training samples. In Python, the
    class or the function itself."""
    test: ImportPath | None = None
    """module:name of the test samples; may be the same as `train` where `test_args` differ. null: a share of the
    training samples is the test set."""
    args: dict[str, Any] = Field(default={})
    """Keyword arguments for `train`, and for `test` too unless `test_args` has other values."""
    test_args: dict[str, Any] = Field(default={})
    """Keyword arguments for `test`, in addition to those of `args`."""

    @classmethod
    def of(cls, train: Any, test: Any = None, **keys: Any) -> Arrays:
        """Makes the data of Dataset objects, or of functions that return one, such as lambdas. They are read at once,
        and kept as arrays.

        test: None: a share of the training samples is the test set. keys: as of `Arrays.of`.
        """
        given = {"train": train} if test is None else {"train": train, "test": test}
        arrays: dict[str, Any] = {}
        for name, one in given.items():
            made = one() if isfunction(one) else one
            split, suffix = samples_of(made, type(made).__name__, name), "" if test is None else f"_{name}"
            named = isinstance(split.x, NamedArrays)
            arrays |= {f"{key}{suffix}": x for key, x in (split.x.items() if named else [("x", split.x)])}
            arrays[f"y{suffix}"] = split.y
            keys = {"inputs": tuple(split.x.keys()), **keys} if named else keys
        return Arrays.of(arrays, **keys)

    def load(self) -> Dataset:
        """Reads all samples. Raises ValueError if one of the names is not a Dataset of pairs (x, y)."""
        train = read(self.train, self.args, "train", self.sides)
        test = None if self.test is None else read(self.test, {**self.args, **self.test_args}, "test", self.sides)
        return self.made_of(train, test)


def read(name: str, args: dict[str, Any], key: str, sides: tuple[str, ...] = ()) -> Split:
    """Reads all samples of a Dataset. name: module:name. key: the key that holds the name, for errors. sides: its
    attributes that are columns."""
    try:
        found = import_class(name)
    except WrongClass as error:
        raise BadValue(str(error), key) from error
    return samples_of(found(**args) if callable(found) else found, repr(name), key, sides)


def samples_of(dataset: Any, name: str, key: str, sides: tuple[str, ...] = ()) -> Split:
    """Reads all samples of a Dataset. name: how errors call it. key: its key. sides: names of columns."""
    if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        must = f"must make a map-style Dataset, with a length and items by number, got {type(dataset).__name__}"
        raise BadValue(f"{must} of {name}; a stream of samples has no rows to divide", key)
    inputs, labels = [], []
    for place in range(len(dataset)):
        item = dataset[place]
        if not (isinstance(item, tuple | list) and len(item) == 2):
            text = f"items of `{key}` must be pairs (x, y), got {type(item).__name__} for item {place} of"
            raise BadValue(f"{text} {name}; return (x, y)")
        inputs.append(item[0] if isinstance(item[0], dict) else {"": item[0]})
        labels.append(as_array(item[1]))
    if not inputs:
        raise BadValue(f"must have samples, got none of {name}", key)
    stacked = {one: _stacked([sample.get(one) for sample in inputs], one, key) for one in inputs[0]}
    columns = {side: as_array(getattr(dataset, side, ())) for side in sides}
    for side, values in columns.items():
        if values.shape[:1] != (len(labels),):
            must = f"must have an attribute {side!r} with a value for each of {len(labels)} samples"
            raise BadValue(f"{must}, got shape {values.shape} of {name}; add it", key)
    return Split(stacked[""] if "" in stacked else NamedArrays(stacked), np.stack(labels), columns)


def _stacked(values: list[Any], name: str, key: str) -> np.ndarray:
    """Returns one array of the inputs of all samples. name: theirs, if they have one."""
    # A picture of PIL of mode P has pixels that are places in a palette.
    arrays = [as_array(x.convert("RGB") if getattr(x, "mode", None) == "P" else x) for x in values]
    shapes = {x.shape for x in arrays}
    if len(shapes) != 1:
        modes = ", and convert them to one mode" * (len({getattr(x, "mode", None) for x in values}) > 1)
        text = f"inputs {f'{name!r} ' if name else ''}of `{key}` must have one shape, got {len(shapes)} shapes such as"
        raise BadValue(f"{text} {sorted(shapes)[:2]!r}; resize them in a transform{modes}")
    for place, x in enumerate(arrays):
        require_same_kind(arrays[0][None], x[None], "item 0", f"item {place}")
    return np.stack(arrays)
