"""Inputs of several arrays: a sample is a row of each, such as its tokens and their mask. Nothing here loads torch.

What the inputs of a data set are, one array or several by name, is told apart here only: the rest of raysim takes rows
of both alike, by `x[rows]`, `len(x)` and `x.split(n)`, or calls a function below.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, KeysView, Mapping, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...] | dict[str, tuple[int, ...]]  # of one input, or of each array of it


class NamedArrays:
    """Arrays, or tensors, by name, each with a row for every sample. A module gets them as keyword arguments.

    `named["mask"]` is one of them; `named[rows]` has these rows of each, and `**named` gives all of them. None is ever
    replaced.
    """

    __slots__ = ("_arrays",)

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        """Raises ValueError if there are none, or if their lengths differ."""
        self._arrays = dict(arrays)
        lengths = {name: len(array) for name, array in self._arrays.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"named inputs must have a row for each sample in every array, got lengths {lengths!r}")

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values())))

    def __getitem__(self, at: Any) -> Any:
        return self._arrays[at] if isinstance(at, str) else self.map(lambda array: array[at])

    def __repr__(self) -> str:
        each = (f"{name}: {array.dtype} {tuple(array.shape)}" for name, array in self.items())
        return f"NamedArrays({', '.join(each)})"

    def keys(self) -> KeysView[str]:
        return self._arrays.keys()

    def items(self) -> ItemsView[str, Any]:
        return self._arrays.items()

    def map(self, function: Callable[[Any], Any]) -> NamedArrays:
        """Returns what a function makes of each array."""
        return NamedArrays({name: function(array) for name, array in self.items()})

    def split(self, size: int) -> list[NamedArrays]:
        """Returns pieces of so many rows, as `Tensor.split` does."""
        return [self[first : first + size] for first in range(0, len(self), size)]

    def tensor_split(self, number: int) -> list[NamedArrays]:
        """Returns so many pieces, as `Tensor.tensor_split` does."""
        cut = {name: array.tensor_split(number) for name, array in self.items()}
        return [NamedArrays(dict(zip(cut, pieces, strict=True))) for pieces in zip(*cut.values(), strict=True)]

    @property
    def device(self) -> Any:
        """Where the tensors are."""
        return next(iter(self._arrays.values())).device


def by_name(x: Any, name: str = "x") -> dict[str, Any]:
    """Returns all arrays of inputs, for looking at each: `x`, or `x.mask` and the like."""
    return {f"{name}.{key}": array for key, array in x.items()} if isinstance(x, NamedArrays) else {name: x}


def shape_of(x: Any) -> Shape:
    """Returns the shape of one input."""
    if isinstance(x, NamedArrays):
        return {name: tuple(array.shape[1:]) for name, array in x.items()}
    return tuple(x.shape[1:])


def in_pieces(x: Any, size: int) -> list[Any]:
    """Returns pieces of inputs, tensors on a device, with so many rows each."""
    return list(x.split(size))


def together(x: Any, others: Any) -> Any:
    """Returns the rows of both, one after the other."""
    if isinstance(x, NamedArrays):
        return NamedArrays({name: np.concatenate([array, others[name]]) for name, array in x.items()})
    return np.concatenate([x, others])


def are_pixels(x: Any) -> bool:
    """Whether inputs are images of bytes, (n, height, width, channels)."""
    return isinstance(x, np.ndarray) and x.dtype == np.uint8


def shape_text(shape: Shape | Sequence[int]) -> str:
    """Says what shape inputs have."""
    return ", ".join(f"{name} {one}" for name, one in shape.items()) if isinstance(shape, dict) else str(tuple(shape))
