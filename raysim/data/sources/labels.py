"""Labels and targets as arrays: what they are by a rule or by the keys of a file, and how they are stored."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from raysim.data.dataset import IGNORED
from raysim.data.meaning import LabelMeaning, Open, shown
from raysim.data.sources.inputs import cure_of
from raysim.parts.errors import BadValue

MOST = 100  # classes that whole numbers are without a word
_EXACT = 2**53  # whole numbers below it are told apart as float64
_TEXTS, _NUMBERS = "US", "fiub"


class Said(NamedTuple):
    """What a file says of its labels: the keys of these names. names: of the classes, if the file numbers them."""

    task: str | None = None
    num_classes: int | None = None
    ignore: int | None = None
    names: tuple[str, ...] = ()


def one_axis(y: np.ndarray) -> np.ndarray:
    """Returns labels (n, 1) as (n,)."""
    return y.reshape(len(y)) if y.ndim > 1 and set(y.shape[1:]) == {1} else y


def questions(train: np.ndarray, test: np.ndarray | None, said: Said) -> list[Open]:
    """Asks what labels are where no rule says it, and which of those of places is none."""
    for y in (train,) if test is None else (train, test):
        if y.dtype.kind not in _NUMBERS + _TEXTS:
            cure = cure_of(y, "y") if y.dtype.kind in "cmM" else "give numbers or texts, and a value in every row"
            raise BadValue(f"y must be numbers or texts, got {y.dtype} of shape {y.shape!r}; {cure}")
    y = one_axis(train)
    if said.names:
        return []
    if said.task is None:
        floats = test is not None and test.dtype.kind == "f"
        return [] if y.ndim == 1 and not floats and _are_classes(y, said) else [_what(y)]
    if said.task == "classes" and y.ndim > 1 and y.dtype.kind in "iu" and said.num_classes is None:
        void = IGNORED if said.ignore is None else said.ignore
        values = np.setdiff1d(y if test is None else np.union1d(y, test), void)
        if not _fill(values):
            last = int(values.max())
            text = f"must say which of the labels {shown(values)} up to {last} is none, or that some do not occur"
            answers = {
                f"ignore: {last}": f"{last} is no label: no loss and no metric counts it",
                f"num_classes: {last + 1}": f"labels are 0 to {last}, of which some do not occur",
            }
            return [Open("ignore", text, answers)]
    return []


def _are_classes(y: np.ndarray, said: Said) -> bool:
    if y.dtype.kind not in "iu":
        return y.dtype.kind != "f"
    return said.num_classes is not None or (_fill(values := np.unique(y)) and len(values) <= MOST)


def _fill(values: np.ndarray) -> bool:
    """Whether sorted values are 0, 1, 2 and so on."""
    return np.array_equal(values, np.arange(len(values)))


def _what(y: np.ndarray) -> Open:
    """Asks what labels are, with the answers that are possible."""
    if y.ndim == 1:
        values = np.unique(y)
        kind = "floats" if y.dtype.kind == "f" else "whole numbers"
        text = f"must say what y are, {kind} of {len(values)} values, {shown(values)}"
        last = int(values[-1]) if y.dtype.kind in "iu" else 0
        answers = {
            "task: regression": "numbers that are predicted, with the squared error as the loss",
            "task: classes": "each value is a class; they are numbered in sorted order",
        }
        if y.dtype.kind in "iu" and values[0] >= 0:
            answers[f"num_classes: {last + 1}"] = f"classes 0 to {last}, of which some may not occur"
        odd = values[0] if values[0] < 0 else values[-1]
        if y.dtype.kind in "iu" and not _fill(values) and _fill(values[values != odd]):
            answers[f"ignore: {odd}"] = f"{odd} is no label, and its samples are left out"
        return Open("task", text, answers)
    text = f"must say what y are, {y.dtype} of shape {y.shape!r}: a sample has one label, or several"
    answers = {"task: regression": "each number is a target", "task: multi_label": "each is 0 or 1, a label by itself"}
    if y.dtype.kind in "iu":
        answers["task: classes"] = "a label for each token (n, length) or pixel (n, height, width)"
    bits = y.ndim == 2 and y.dtype.kind in _NUMBERS and bool(((y == 0) | (y == 1)).all())
    if bits and bool((y.sum(axis=1) == 1).all()):
        text += "; rows are one-hot, so give y.argmax(axis=1), or"
    return Open("task", text, answers)


def labels_of(train: np.ndarray, test: np.ndarray | None, said: Said) -> tuple[np.ndarray, LabelMeaning]:
    """Returns the labels, int64, or targets, float32, of all samples, training samples first, and what they are.

    They are (n,), or have an axis for targets, or those of a sample's places. Raises ValueError if they are not what is
    said, or if test samples have a label that no training sample has.
    """
    if test is not None:
        require_alike((train, test), ("training samples", "test samples"))
    y = one_axis(train if test is None else joined_labels([train, test]))
    if said.task == "multi_label":
        bits = (y == 0) | (y == 1)
        if y.ndim == 1:
            y, bits = y[:, None], bits[:, None]
        if y.ndim != 2 or y.dtype.kind not in _NUMBERS or not bits.all():
            got = f"{y.dtype} of shape {y.shape!r}"
            if y.ndim == 2 and y.dtype.kind in _NUMBERS:
                got += f", with {_first(y, ~bits, len(train))}; make it 0 or 1"
            raise BadValue(f"y must be 0 or 1 for each of several labels, (n, labels), got {got}")
        return y.astype(np.float32), LabelMeaning("multi_label", y.shape[1])
    if said.task == "regression":
        return _targets(y, len(train))
    if y.dtype.kind == "f":
        whole = (np.abs(y) < _EXACT) & (y == np.floor(y))
        if not whole.all():
            must = "y must be whole numbers below 2**53 for `task: classes`"
            raise BadValue(f"{must}, got {_first(y, ~whole, len(train))}; correct them")
        y = y.astype(np.int64)
    if y.ndim > 1:
        return _of_places(y, len(train), said)
    known = len(said.names) or said.num_classes
    if known is not None and y.dtype.kind in "iu":
        if (wrong := (y < 0) | (y >= known)).any():
            text = f"got {_first(y, wrong, len(train))}, which stands for no label; leave out the samples without one"
            raise BadValue(f"labels must be 0 to {known - 1}, {text}")
        return y.astype(np.int64), LabelMeaning("classes", known, said.names)
    values, place = np.unique(y, return_inverse=True)
    if len(strangers := np.setdiff1d(y[len(train) :], y[: len(train)])):
        times = np.count_nonzero(y == strangers[0])
        raise BadValue(
            f"labels of test samples must be labels of training samples, got {strangers[0].item()!r} in "
            f"{times} test samples only; correct the labels, or leave these out"
        )
    names = () if _fill(values) else tuple(values.tolist())
    return place.astype(np.int64), LabelMeaning("classes", len(values), names)


def _of_places(y: np.ndarray, train: int, said: Said) -> tuple[np.ndarray, LabelMeaning]:
    """Returns labels of the tokens (n, length) or pixels (n, height, width) of samples, which keep their numbers."""
    if y.dtype.kind not in "iu" or y.ndim > 3:
        must = "y must be whole numbers for each token (n, length) or pixel (n, height, width) for `task: classes`"
        raise BadValue(f"{must}, got {y.dtype} of shape {y.shape!r}; correct `task`")
    void = y == (IGNORED if said.ignore is None else said.ignore)
    classes = said.num_classes or int(y.max(initial=0, where=~void)) + 1
    if (wrong := ~void & ((y < 0) | (y >= classes))).any():
        raise BadValue(f"labels must be 0 to {classes - 1}, or `ignore`, got {_first(y, wrong, train)}; correct them")
    return np.where(void, IGNORED, y.astype(np.int64)), LabelMeaning("classes", classes, (), y.shape[1:])


def _targets(y: np.ndarray, train: int) -> tuple[np.ndarray, LabelMeaning]:
    if y.dtype.kind not in _NUMBERS or y.ndim > 2:
        text = f"must be numbers (n,) or (n, targets) for `task: regression`, got {y.dtype} of shape {y.shape!r}"
        raise BadValue(f"y {text}; make numbers of them")
    with np.errstate(over="ignore"):
        targets: np.ndarray = y.astype(np.float32)
    if number := int(np.count_nonzero(wrong := ~np.isfinite(targets))):
        text = f"got {number} that are not, such as {_first(y, wrong, train)}; fill them, or leave their samples out"
        raise BadValue(f"targets must be finite, {text}")
    return targets, LabelMeaning("regression", y.shape[1] if y.ndim > 1 else 1)


def joined_labels(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the labels of all parts. Whole numbers stay so: numpy would make floats of int64 and uint64."""
    if not all(part.dtype.kind in "iub" for part in parts) or all(part.dtype.kind != "u" for part in parts):
        return np.concatenate(parts)
    low = min((int(part.min()) for part in parts if part.size), default=0)
    kind = np.dtype(np.int64 if low < 0 else np.uint64)
    for part in parts:
        if part.size and int(part.max()) > np.iinfo(kind).max:
            raise BadValue(f"y must be whole numbers of 64 bits, got {low} and {part.max()}; number the labels from 0")
    return np.concatenate([part.astype(kind) for part in parts])


def require_alike(parts: Sequence[np.ndarray], names: Sequence[str]) -> None:
    """Raises ValueError unless all parts hold texts, or none does: numpy would make texts of numbers.

    names: of the parts.
    """
    for part, name in zip(parts[1:], names[1:], strict=True):
        if (parts[0].dtype.kind in _TEXTS) != (part.dtype.kind in _TEXTS):
            got = f"got {parts[0].dtype} of {names[0]} and {part.dtype} of {name}"
            raise BadValue(f"y must be texts in both, or numbers, {got}; make them alike")


def _first(y: np.ndarray, wrong: np.ndarray, train: int) -> str:
    """Says what the first wrong label or target is, and where. train: number of training samples."""
    place = np.argwhere(wrong)[0]
    row = int(place[0])
    return f"{y[tuple(place)]} in {f'row {row}' if row < train else f'test row {row - train}'}"
