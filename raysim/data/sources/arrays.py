"""Arrays that a user brings, in an .npz file or in memory."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, field_serializer, model_validator

from raysim.data.dataset import Dataset
from raysim.data.sources.brought import Brought, Raw
from raysim.data.sources.in_memory import InMemory
from raysim.data.sources.reading import load_npz


class Arrays(Brought):
    """Arrays in an .npz file, or in memory: x_train, y_train, x_test and y_test; or x and y, of which a share tests.

    An array with another name is a column that a partition may use, such as `user_train` and `user_test`, or `user`
    beside x and y.

    Images are (n, height, width), (n, height, width, channels) or (n, channels, height, width); the channels are the
    first or the last of the three axes, whichever is shorter. Bytes (uint8) are pixels, and kept as bytes. All other
    numbers become float32, with `scale: standard` after they got mean 0 and deviation 1 over the training samples,
    channel by channel or feature by feature. Labels are integers from 0, or texts, which are numbered in sorted order;
    y of floats are targets of a regression.
    """

    name: str = "arrays"
    path: Annotated[str | None, Field(examples=["samples.npz"])] = None
    """An .npz file, as numpy.savez writes it."""
    arrays: dict[str, InMemory] | None = None
    """The arrays themselves, by name, instead of a file; from Python only. run.json keeps their shapes and hashes."""

    @classmethod
    def of(cls, arrays: Mapping[str, Any], **keys: Any) -> Self:
        """Makes the data of arrays, tensors or series in memory. keys: the other keys, such as clients=10."""
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
        arrays = self._content()
        if {"x", "y"} <= arrays.keys():
            return self.made_of(_raw(arrays, ""), None)
        for key in ("x_train", "y_train", "x_test", "y_test"):
            if key not in arrays:
                raise ValueError(
                    f"data arrays: must hold x_train, y_train, x_test and y_test, or x and y, got {sorted(arrays)!r}; "
                    f"add {key!r}"
                )
        return self.made_of(_raw(arrays, "_train"), _raw(arrays, "_test"))

    def _content(self) -> dict[str, np.ndarray]:
        if self.path is not None:
            return load_npz(self.path, "data arrays")
        assert self.arrays is not None
        contents = {name: array.content for name, array in self.arrays.items() if array.content is not None}
        if len(contents) < len(self.arrays):
            raise ValueError(
                "data arrays: `arrays` must be given from Python again, for a run's folder keeps only their shapes and "
                "hashes, got a description; give the arrays, or save them with numpy.savez and set `path`"
            )
        return contents


def _raw(arrays: dict[str, np.ndarray], suffix: str) -> Raw:
    """Returns the samples of a split. suffix: that of its arrays' names."""
    of_split = {name.removesuffix(suffix): array for name, array in arrays.items() if name.endswith(suffix)}
    x, y = of_split.pop("x"), of_split.pop("y")
    lengths = {name + suffix: len(array) for name, array in {"x": x, "y": y, **of_split}.items() if array.ndim}
    if len(set(lengths.values())) > 1 or len(lengths) < 2 + len(of_split):
        raise ValueError(f"data arrays: arrays of a split must have a row for each sample, got lengths {lengths!r}")
    return Raw(x, y, of_split)
