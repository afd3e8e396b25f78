"""Arrays that a user brings, in an .npz file or in memory."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, field_serializer, model_validator

from raysim.data.dataset import Dataset
from raysim.data.named import NamedArrays
from raysim.data.sources.in_memory import InMemory, contents
from raysim.data.sources.raw_samples import Raw, RawSamples
from raysim.data.sources.reading import load_npz
from raysim.parts.errors import BadValue

_NO_ROWS = "are not used, as they do not have a row for each sample"


class Arrays(RawSamples):
    """Arrays in an .npz file, or in memory: x_train, y_train, x_test and y_test; or x and y, of which a share tests.

    An array with another name is a column that a partition may use, such as `user_train` and `user_test`, or `user`
    beside x and y, if it has a row for each sample.

    `inputs` and `task` say what x and y mean. A y of shape (n, 1) is taken for one of shape (n,). Where `inputs` names
    arrays, such as [input_ids, mask], these are in the place of x.
    """

    name: str = "arrays"
    path: Annotated[str | None, Field(examples=["samples.npz"])] = None
    """An .npz file, as numpy.savez writes it."""
    arrays: dict[str, InMemory] | None = None
    """The arrays themselves, by name, instead of a file; from Python only. run.json keeps their shapes and hashes."""

    @classmethod
    def of(cls, arrays: Mapping[str, Any], **keys: Any) -> Self:
        """Makes the data of arrays, tensors or series in memory. keys: the others, those of `Federated` among them."""
        return cls(arrays={name: InMemory.of(values) for name, values in arrays.items()}, **keys)

    @field_serializer("arrays")
    def _describe(self, arrays: dict[str, InMemory] | None) -> dict[str, Any] | None:
        return None if arrays is None else {name: array.described for name, array in arrays.items()}

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.path is None) == (self.arrays is None):
            raise ValueError("must have exactly one of `path` and `arrays`; give the file, or arrays from Python")
        return self

    def reads(self) -> Iterable[str | Path]:
        return () if self.path is None else (self.path,)

    def load(self) -> Dataset:
        """Makes the data set of the arrays. Raises FileNotFoundError if the file is missing, ValueError if not fit."""
        arrays, names = self._content(), self.inputs if isinstance(self.inputs, tuple) else None
        wanted = (*(names or ("x",)), "y")
        if set(wanted) <= arrays.keys():
            parts = [name for name in arrays if re.search("_(train|test|val|valid|validation|dev)$", name)]
            whole = {name: array for name, array in arrays.items() if name not in parts}
            text = f"are not used, as {' and '.join(wanted)} are all samples; call these {wanted[0]}_train and y_train"
            raw, others = _raw(whole, "", names)
            dataset = self._noting(self.made_of(raw, None), parts, f"{text} if they are not")
            return self._noting(dataset, others, _NO_ROWS)
        for key in (f"{name}_{split}" for split in ("train", "test") for name in wanted):
            if key not in arrays:
                of_splits = [f"{name}_{split}" for split in ("train", "test") for name in wanted]
                must = f"{', '.join(of_splits[:-1])} and {of_splits[-1]}, or {', '.join(wanted[:-1])} and y"
                other = next((name for name in arrays if name.lower() == key), None)
                cure = f", or call {other!r} so" if other else ", or call what it is so"
                raise BadValue(f"must hold {must}, of which a share tests, got {sorted(arrays)!r}; add {key!r}{cure}")
        unused = [name for name in arrays if not name.endswith(("_train", "_test"))]
        (train, others), (test, more) = _raw(arrays, "_train", names), _raw(arrays, "_test", names)
        dataset = self._noting(self.made_of(train, test), unused, "of the arrays are not used")
        return self._noting(dataset, [*others, *more], _NO_ROWS)

    def _noting(self, dataset: Dataset, unused: list[str], text: str) -> Dataset:
        """Adds a note of arrays that are not used, if there are any."""
        key = "arrays" if self.path is None else "path"
        note = f"data.{key}: {', '.join(map(repr, unused))} {text}"
        return replace(dataset, notes=(*dataset.notes, note)) if unused else dataset

    def _content(self) -> dict[str, np.ndarray]:
        if self.path is not None:
            return load_npz(self.path)
        assert self.arrays is not None
        return contents(self.arrays, "arrays")


def _raw(arrays: dict[str, np.ndarray], suffix: str, names: tuple[str, ...] | None) -> tuple[Raw, list[str]]:
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
    return Raw(x, y, columns), [name + suffix for name in of_split if name not in columns]
