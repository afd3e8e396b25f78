"""What inputs and labels mean: the keys of a file say it, or a named data set knows it. run.json holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from raysim.data.named import Shape, by_name, shape_of, shape_text
from raysim.parts.errors import BadValue
from raysim.parts.part import as_tuples
from raysim.terms import Inputs
from results.texts import count

_SHOWN = 20  # names that a line shows
_EACH = {"images": "channel", "volumes": "channel", "series": "sensor", "features": "feature"}  # scaled by itself


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
        names = f" ({_listed(self.names)})" if self.names else ""
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
        names = f" ({_listed(self.names)})" if self.names else ""
        places = f", one at each of {self.places} places" if self.places else ""
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
        found = {"x": str(self.inputs), "y": str(self.labels), "columns": columns, "not used": _listed(self.unused)}
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


def shown(values: np.ndarray | list[Any]) -> str:
    """Returns the first of some values in words."""
    return ", ".join(str(value) for value in values[:5]) + (", ..." if len(values) > 5 else "")


def _listed(names: Iterable[Any]) -> str:
    found = [str(name) for name in names]
    return ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
