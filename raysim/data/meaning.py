"""What inputs and labels mean: the keys of a file say it, or a named data set knows it. run.json holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from raysim.data.named import Shape, by_name, shape_of, shape_text
from raysim.parts.errors import BadValue
from raysim.terms import Inputs

_SHOWN = 20  # names that a line shows
_EACH = {"images": "channel", "volumes": "channel", "series": "sensor", "features": "feature"}  # scaled by itself


@dataclass(frozen=True)
class InputMeaning:
    """What inputs are, as a model gets them.

    shape: of one input, images with the channels first. names: of the features, in their order. mean, std: by feature,
    sensor or channel, over the training inputs: a model gets (x - mean) / std, where bytes of images are divided by 255
    first. Both are empty where x is used as it is. words: what else is to be said.
    """

    kind: Inputs | Literal["numbers"]
    shape: Shape
    dtype: str
    names: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    words: str = ""

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
        return self.words or f"{self._what}{self._scaled}"

    @property
    def _what(self) -> str:
        if isinstance(self.shape, dict):
            return f"{shape_text(self.shape)}, used as they are"
        if self.kind == "images":
            channels, height, width = self.shape
            as_what = "bytes" if self.dtype == "uint8" else "floats"
            return f"images of {height} x {width} pixels, {counted(channels, 'channel')}, as {as_what}"
        if self.kind == "volumes":
            return f"volumes of {' x '.join(map(str, self.shape[1:]))}, {counted(self.shape[0], 'channel')}"
        if self.kind == "series":
            return f"series of {counted(self.shape[0], 'step')} of {counted(self.shape[1], 'sensor')}"
        if self.kind == "text":
            return f"texts of {' x '.join(map(str, self.shape))} tokens"
        if self.kind == "features":
            return counted(self.shape[0], "feature") + (f" ({_listed(self.names)})" if self.names else "")
        return "functions that clients minimise" if self.kind == "functions" else f"numbers of shape {self.shape}"

    @property
    def _scaled(self) -> str:
        if not self.mean:
            return ""
        if self.dtype == "uint8" and set(self.mean) == {0.0} and set(self.std) == {1.0}:
            return ", from 0 to 1"
        return f", each {_EACH[self.kind]} with mean 0 and deviation 1"


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
        if self.task == "none":
            return "nothing"
        if self.task == "multi_label":
            return f"0 or 1 for each of {self.outputs} labels"
        if self.task == "regression":
            return "targets of a regression" if self.outputs == 1 else f"{self.outputs} targets of a regression"
        if self.places:
            return f"labels of {counted(self.outputs, 'class', 'es')} at {' x '.join(map(str, self.places))} places"
        names = f" ({_listed(self.names)})" if self.names else ""
        return f"labels of {counted(self.outputs, 'class', 'es')}{names}"


@dataclass(frozen=True)
class Meaning:
    """What the samples of a data set are.

    columns: by what else a partition may divide them, and how many values that has. unused: what is beside the samples,
    such as further arrays, and neither trains nor tests.
    """

    inputs: InputMeaning
    labels: LabelMeaning
    columns: Mapping[str, int] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What `raysim check --data` prints."""
        columns = ", ".join(f"{name} ({counted(values, 'value')})" for name, values in self.columns.items())
        found = {"x": str(self.inputs), "y": str(self.labels), "columns": columns, "not used": _listed(self.unused)}
        return tuple(f"{name}: {text}" for name, text in found.items() if text)

    @property
    def plain(self) -> dict[str, Any]:
        """What run.json holds."""
        return asdict(self)


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


def counted(number: int, noun: str, many: str = "s") -> str:
    """Returns a number of things in words, such as "1 class" and "2 classes". many: the ending of several."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{many}"


def shown(values: np.ndarray | list[Any]) -> str:
    """Returns the first of some values in words."""
    return ", ".join(str(value) for value in values[:5]) + (", ..." if len(values) > 5 else "")


def _listed(names: Iterable[Any]) -> str:
    found = [str(name) for name in names]
    return ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
