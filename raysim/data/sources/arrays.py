"""Arrays that a user brings, in an .npz file or in memory."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, field_serializer, model_validator

from raysim.data.dataset import Dataset, Split
from raysim.data.named import NamedArrays
from raysim.data.sources.in_memory import InMemory, contents
from raysim.data.sources.raw_samples import RawSamples
from raysim.data.sources.reading import load_npz
from raysim.parts.errors import BadValue


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
    arrays: dict[str, InMemory] | None = None
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
                raise BadValue(f"{text}; call these {' and '.join(of_splits[: len(wanted)])}, or take one of both away")
            split, unused = _split(arrays, "", names)
            return self.made_of(split, None, unused)
        for key in of_splits:
            if key not in arrays:
                must = f"{', '.join(of_splits[:-1])} and {of_splits[-1]}, or {', '.join(wanted[:-1])} and y"
                other = next((name for name in arrays if name.lower() == key), "what it is")
                text = f"must hold {must}, of which a share tests, got {sorted(arrays)!r}"
                raise BadValue(f"{text}; add {key!r}, or call {other!r} so")
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
