"""Labels and targets as arrays: what they are by a rule or by the keys of a file, and how they are stored."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from raysim.data.dataset import IGNORED
from raysim.data.meaning import LabelMeaning, Open, listed
from raysim.parts.errors import BadValue

MOST = 100  # classes that whole numbers are without a word
EXACT = 2**53  # whole numbers below it are told apart as float64
_KINDS = {"i": "whole numbers", "u": "whole numbers", "b": "booleans", "f": "floats", "U": "texts", "S": "texts"}


class Said(NamedTuple):
    """What a file says of its labels: the keys of these names. names: of the classes, if the file numbers them."""

    task: str | None = None
    num_classes: int | None = None
    ignore: int | None = None
    names: tuple[str, ...] = ()


def one_axis(y: np.ndarray) -> np.ndarray:
    """Returns labels (n, 1) as (n,)."""
    return y.reshape(len(y)) if y.ndim > 1 and set(y.shape[1:]) == {1} else y


def questions(ys: Sequence[np.ndarray], said: Said) -> list[Open]:
    """Asks what the labels of training samples, and of test samples, are where no rule says it."""
    for y in ys:
        if y.dtype.kind not in _KINDS:
            text = f"y must be numbers or texts, with a value in every row, got {y.dtype} of shape {y.shape!r}"
            raise BadValue(f"{text}; make numbers of them")
        if said.task is None and y.dtype.kind == "f" and (lacks := np.isnan(y).reshape(len(y), -1).any(axis=1)).any():
            count, row = int(lacks.sum()), int(lacks.argmax())
            raise BadValue(f"y must have a value in every row, got none in {count}, such as row {row}; leave them out")
    y = one_axis(ys[0])
    whole = y.dtype.kind in "iu"
    if said.names or (said.num_classes is not None and whole and (y.ndim == 1 or said.task)):
        return []
    if said.task is None and y.ndim > 1:
        return [_of_several(y)]
    if said.task is None and (any(one.dtype.kind == "f" for one in ys) or (whole and not _fill(np.unique(y), MOST))):
        return [_of_one(y)]
    if said.task != "classes" or y.ndim == 1 or not whole:
        return []
    values = np.setdiff1d(np.concatenate([np.unique(one) for one in ys]), _void(said))
    if _fill(values):
        return []
    last = int(values[-1])
    text = f"must say which of the labels {listed(values, 5)} up to {last} is none, or that some do not occur"
    answers = {
        f"ignore: {last}": f"{last} is not a label: no loss and no metric counts it",
        f"num_classes: {last + 1}": f"labels are 0 to {last}, of which some do not occur",
    }
    two = f"give y == {last} if it is the second of two classes, or " if values.tolist() == [0, last] else ""
    return [Open("ignore", text, answers, two)]


def _void(said: Said) -> int:
    return IGNORED if said.ignore is None else said.ignore


def _fill(values: np.ndarray, most: int | None = None) -> bool:
    """Whether sorted values are 0, 1, 2 and so on, and no more than `most`."""
    return np.array_equal(values, np.arange(len(values))) and (most is None or len(values) <= most)


def _of_one(y: np.ndarray) -> Open:
    """Asks what labels (n,) are."""
    values = np.unique(y)
    text = f"must say what y are, {_KINDS[y.dtype.kind]} of {len(values)} values, {listed(values, 5)}"
    answers = {"task: regression": "numbers that are predicted, with the squared error as the loss"}
    if (values == np.floor(values)).all():
        answers["task: classes"] = "each value is a class; they are numbered in sorted order"
    if y.dtype.kind in "iu" and values[0] >= 0:
        last = int(values[-1])  # bytes would begin again after 255
        answers[f"num_classes: {last + 1}"] = f"classes 0 to {last}, of which some may not occur"
    odd = values[0] if values[0] < 0 else values[-1]
    if y.dtype.kind in "iu" and not _fill(values) and _fill(values[values != odd]):
        answers[f"ignore: {odd}"] = f"{odd} is not a label, and its samples are left out"
    return Open("task", text, answers)


def _of_several(y: np.ndarray) -> Open:
    """Asks what labels of several axes are."""
    text = f"must say what y are, {y.dtype} of shape {y.shape!r}: a sample has one label, or several"
    truths = y.dtype.kind not in "US" and bool(((y == 0) | (y == 1)).all())
    answers = {
        "task: regression": "each number is a target",
        "task: multi_label": "each is 0 or 1, a label by itself",
        "task: classes": "a label for each token (n, length) or pixel (n, height, width)",
    }
    right = (y.ndim == 2 and y.dtype.kind in "iubf", truths, y.ndim <= 3 and y.dtype.kind in "iub")
    answers = {line: says for (line, says), fits in zip(answers.items(), right, strict=True) if fits}
    if not answers:
        must = "y must be (n,), (n, targets), (n, labels), (n, length) or (n, height, width)"
        raise BadValue(f"{must}, got {y.dtype} of shape {y.shape!r}; reshape them")
    if y.ndim == 2 and truths and ((y == 1).sum(axis=1) == 1).all():
        text += "; rows are one-hot, so give y.argmax(axis=1), or"
    return Open("task", text, answers)


def labels_of(ys: Sequence[np.ndarray], said: Said) -> tuple[np.ndarray, LabelMeaning]:
    """Returns the labels, int64, or targets, float32, of all samples, training samples first, and what they are.

    ys: of the training samples and, if they are apart, of the test samples. Labels are (n,), or have an axis for
    targets, or those of a sample's places. Raises ValueError if they are not what is said, or if test samples have a
    label that no training sample has.
    """
    require_alike(ys, ("training samples", "test samples"))
    y, train = one_axis(joined_labels(ys)), len(ys[0])
    if y.ndim > 1 and y.dtype.kind == "b":  # such as masks
        y = y.astype(np.uint8)
    if said.task == "multi_label":
        y = y if y.ndim > 1 else y[:, None]
        _require(y, (y == 0) | (y == 1), "y must be 0 or 1 for each of several labels, (n, labels)", train)
        return y.astype(np.float32), LabelMeaning("multi_label", y.shape[1])
    if said.task == "regression":
        if _KINDS[y.dtype.kind] == "texts" or y.ndim > 2:
            must = "y must be numbers (n,) or (n, targets) for `task: regression`"
            raise BadValue(f"{must}, got {y.dtype} of shape {y.shape!r}; make numbers of them")
        with np.errstate(over="ignore"):
            targets = y.astype(np.float32)
        _require(y, np.isfinite(targets), "targets must be finite", train)
        return targets, LabelMeaning("regression", y.shape[1] if y.ndim > 1 else 1)
    if y.dtype.kind == "f":
        must = "y must be whole numbers below 2**53 for `task: classes`"
        _require(y, (np.abs(y) < EXACT) & (y == np.floor(y)), must, train)
        y = y.astype(np.int64)
    whole, known = y.dtype.kind in "iu", len(said.names) or said.num_classes
    if y.ndim > 1:
        if not whole or y.ndim > 3:
            must = "y must be whole numbers for each token (n, length) or pixel (n, height, width) for `task: classes`"
            raise BadValue(f"{must}, got {y.dtype} of shape {y.shape!r}; correct `task`")
        void = y == _void(said)
        known = known or int(y.max(initial=0, where=~void)) + 1
        _require(y, void | ((y >= 0) & (y < known)), f"labels must be 0 to {known - 1}, or `ignore`", train)
        return np.where(void, IGNORED, y.astype(np.int64)), LabelMeaning("classes", known, (), y.shape[1:])
    if known is not None and whole:
        _require(y, (y >= 0) & (y < known), f"labels must be 0 to {known - 1}, or `ignore`", train)
        return y.astype(np.int64), LabelMeaning("classes", known, said.names)
    values, place = np.unique(y, return_inverse=True)
    of_training = np.isin(y, y[:train])
    _require(y, of_training, "labels of test samples must be labels of training samples", train)
    return place.astype(np.int64), LabelMeaning("classes", len(values), () if _fill(values) else tuple(values.tolist()))


def _require(y: np.ndarray, right: np.ndarray, must: str, train: int) -> None:
    """Raises ValueError, with how many labels are wrong and where the first is. train: training samples."""
    if not right.all():
        place = np.argwhere(~right)[0]
        row = f"row {place[0]}" if place[0] < train else f"test row {place[0] - train}"
        got = f"got {np.count_nonzero(~right)} that are not, such as {y[tuple(place)]} in {row}"
        raise BadValue(f"{must}, {got}; correct them, or leave their samples out")


def joined_labels(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the labels of all parts. Whole numbers stay so: numpy would make floats of int64 and uint64."""
    kinds = {part.dtype.kind for part in parts}
    if "u" in kinds and len(kinds) > 1 and kinds <= {*"iub"}:
        if max(int(part.max()) for part in parts if part.size) > np.iinfo(np.int64).max:
            raise BadValue("y must be whole numbers below 2**63; number the labels from 0")
        parts = [part.astype(np.int64) for part in parts]
    return np.concatenate(parts)


def require_alike(parts: Sequence[np.ndarray], names: Sequence[str]) -> None:
    """Raises ValueError unless all parts hold texts, or none does: numpy would make texts of numbers."""
    for part, name in zip(parts[1:], names[1:], strict=False):
        if (parts[0].dtype.kind in "US") != (part.dtype.kind in "US"):
            got = f"got {parts[0].dtype} of {names[0]} and {part.dtype} of {name}"
            raise BadValue(f"y must be texts in both, or numbers, {got}; make them alike")
