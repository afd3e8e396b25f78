"""What inputs and labels mean: the keys of a file say it, or a named data set knows it. run.json holds it.

Inputs are one array, or several by name, which is told apart here only: the rest of raysim takes rows of both alike, by
`x[rows]`, `len(x)` and `x.split(n)`, or calls a function below. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from raysim.parts.errors import BadValue
from raysim.parts.part import as_tuples
from raysim.terms import Inputs
from results.texts import count

Shape = tuple[int, ...] | dict[str, tuple[int, ...]]  # of one input, or of each array of it
_EACH = {"images": "channel", "volumes": "channel", "series": "sensor", "features": "feature"}  # scaled by itself


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


@dataclass(frozen=True)
class InputMeaning:
    """What inputs are, as a model gets them.

    shape: of one input, images with the channels first. names: of the features, in their order. mean, std: by feature,
    sensor or channel, over the training inputs: a model gets (x - mean) / std, where bytes of images are divided by 255
    first. Both are empty where x is used as it is. words: what else is to be said. columns: of a table, in the order of
    their features. kinds: the values of each categorical column, of which each is a feature.
    """

    kind: Inputs | Literal["numbers"]
    shape: Shape
    dtype: str
    names: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    words: str = ""
    columns: tuple[str, ...] = ()
    kinds: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, x: Any, mean: tuple[float, ...] = (), std: tuple[float, ...] = (), kind: str | None = None) -> Any:
        """Returns what inputs, as `Split` holds them, are. kind: None where their type and axes tell it."""
        shape, dtype = shape_of(x), ", ".join(dict.fromkeys(str(one.dtype) for one in by_name(x).values()))
        if isinstance(shape, dict):
            return cls("named", shape, dtype)
        if dtype == "uint8":
            shape = (shape[-1], *shape[:-1])
        kinds = {"uint8": "images", "int16": "text", "int32": "text"}
        return cls(kind or kinds.get(dtype, "features" if len(shape) == 1 else "numbers"), shape, dtype, (), mean, std)  # type: ignore[arg-type]

    def __str__(self) -> str:
        if self.words:
            return self.words
        names = f" ({listed(self.names)})" if self.names else ""
        scaled = f", each {_EACH[self.kind]} with mean 0 and deviation 1" if self.mean else ""
        if self.dtype == "uint8" and not any(self.mean):
            scaled = ", from 0 to 1"
        return f"{self.kind} {shape_text(self.shape)}{names} of {self.dtype}{scaled}"


@dataclass(frozen=True)
class LabelMeaning:
    """What is predicted.

    outputs: number of classes, targets or labels. names: of the classes, in the order of their numbers; empty if they
    are 0 to outputs - 1. places: the axes of the labels of one sample, such as (height, width); () where it has one.
    """

    task: Literal["classes", "regression", "multi_label", "none"]
    outputs: int
    names: tuple[str | int | float | bool, ...] = ()
    places: tuple[int, ...] = ()

    def __str__(self) -> str:
        words = {"classes": f"{self.outputs} classes", "regression": count(self.outputs, "target"), "none": "nothing"}
        names = f" ({listed(self.names)})" if self.names else ""
        places = f", one at each of {' x '.join(map(str, self.places))} places" if self.places else ""
        return words.get(self.task, f"{count(self.outputs, 'label')} of 0 or 1") + names + places


@dataclass(frozen=True)
class Meaning:
    """What the samples of a data set are.

    columns: by what else a partition may divide them, and how many values that has. unused: what is beside the samples,
    such as further arrays, and neither trains nor tests. files: what a run keeps beside its model, such as a tokenizer,
    by path.
    """

    inputs: InputMeaning
    labels: LabelMeaning
    columns: Mapping[str, int] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Meaning:
        """Returns what `plain` gave. Raises KeyError, TypeError or ValueError if a part is missing or does not fit."""
        found: Any = as_tuples(dict(plain))
        inputs, labels = InputMeaning(**found["inputs"]), LabelMeaning(**found["labels"])
        shape, names = inputs.shape, len(inputs.names or inputs.mean)
        if len(inputs.mean) != len(inputs.std) or len(inputs.mean) not in (0, names):
            raise ValueError(f"{len(inputs.mean)} means and {len(inputs.std)} deviations of {names} features")
        if inputs.mean and names not in tuple(shape):
            raise ValueError(f"{names} means of inputs of shape {shape_text(shape)}")
        return cls(inputs, labels, found.get("columns", {}), found.get("unused", ()))

    @property
    def lines(self) -> tuple[str, ...]:
        """What `raysim check --data` prints."""
        columns = ", ".join(f"{name} ({count(values, 'value')})" for name, values in self.columns.items())
        found = {"x": str(self.inputs), "y": str(self.labels), "columns": columns, "not used": listed(self.unused)}
        return tuple(f"{name}: {text}" for name, text in found.items() if text)

    @property
    def plain(self) -> dict[str, Any]:
        """What run.json holds."""
        return {key: value for key, value in asdict(self).items() if key != "files"}


class Open(NamedTuple):
    """A question that a file leaves open. text: what was found. answers: lines of YAML, each with what it says. cure:
    what else to do, such as "correct the cell, or "."""

    key: str
    text: str
    answers: Mapping[str, str]
    cure: str = ""


def require_answered(questions: Iterable[Open]) -> None:
    """Raises one ValueError for all open questions, with the lines between which to choose; none if there are none."""
    found = list(questions)
    if not found:
        return
    texts = []
    for one in found:
        width = max(map(len, one.answers))
        lines = "".join(f"\n    {line:{width}}  # {says}" for line, says in one.answers.items())
        texts.append(f"{one.text}; {one.cure}add one of these lines to `data`:{lines}")
    raise BadValue("\n".join(texts), found[0].key if len(found) == 1 else "")


def listed(names: Iterable[Any], most: int = 20) -> str:
    """Returns the first of some names or values in words. most: how many are shown."""
    found = [str(name) for name in names]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
