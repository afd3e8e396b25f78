"""Labels and targets as arrays: what they mean as a key says it or, without a key, as they most likely mean it."""

from typing import Any

import numpy as np

from raysim.data.named import by_name
from raysim.data.sources.meaning import Meaning, counted, cure_of
from raysim.parts.errors import BadValue


def labels_of(
    train: np.ndarray, test: np.ndarray | None, task: str | None, x: Any, known: int | None = None
) -> tuple[np.ndarray, int, Meaning]:
    """Returns the labels, int64, or targets, float32, of all samples, how many outputs they take, and what they are.

    They are (n,) or, for tokens or where `task` says so, also have a label or target for each of a sample's places.
    known: number of classes, if it is known. Raises ValueError if they are neither, or if test samples have a label
    that no training sample has.
    """
    train, test = _one_each(train, x, task), None if test is None else _one_each(test, x, task)
    if test is not None and (train.dtype.kind == "f") != (test.dtype.kind == "f") and task is None:
        raise BadValue(
            f"y must be labels or targets in both splits, got {train.dtype} of training samples and "
            f"{test.dtype} of test samples; make them alike, or say `task: classes` or `task: regression`"
        )
    y = train if test is None else np.concatenate([train, test])
    if task == "multi_label":
        return y.astype(np.float32), y.shape[1], Meaning(task, f"0 or 1 for each of {y.shape[1]} labels")
    if y.ndim > 1 and task == "regression":
        return _targets(y), y.shape[1], Meaning(task, f"{y.shape[1]} targets of a regression")
    if task == "regression" or (task is None and y.dtype.kind == "f"):
        return _targets(y), 1, Meaning("regression", "targets of a regression", _doubtful(y, task))
    if y.dtype.kind == "f":
        whole = np.isfinite(y) & (y == np.floor(y))
        if not whole.all():
            raise BadValue(f"y must be whole numbers for `task: classes`, got {y[~whole][0]}; correct them")
        y = y.astype(np.int64)
        train, test = y[: len(train)], y[len(train) :] if test is not None else None
    if y.ndim > 1:  # labels of tokens (n, length) or pixels (n, height, width) keep their numbers
        classes, noun = int(y.max()) + 1, "token" if y.ndim == 2 else "pixel"
        return y.astype(np.int64), classes, Meaning("classes", f"a label of {classes} for each {noun}")
    if test is not None and len(strangers := np.setdiff1d(test, train)):
        raise BadValue(
            f"labels of test samples must be labels of training samples, got {strangers[0].item()!r} in "
            f"{np.count_nonzero(test == strangers[0])} test samples only; correct the labels, or leave these out"
        )
    return _numbered(y, len(train), task, known)


def _one_each(y: np.ndarray, x: Any, task: str | None) -> np.ndarray:
    """Returns labels or targets with one axis, or with those of the task or of tokens. Raises ValueError, which says
    what to do."""
    if task == "multi_label":
        if y.ndim != 2 or y.dtype.kind not in "fiub" or not ((y == 0) | (y == 1)).all():
            got = f"{y.dtype} of shape {y.shape!r}"
            raise BadValue(
                f"y must be 0 or 1 for each of several labels, (n, labels), for `task: multi_label`, got {got}"
            )
        return y
    y = y.reshape(len(y)) if y.ndim > 1 and set(y.shape[1:]) == {1} and task != "classes" else y
    whole = y.dtype.kind in "iu"
    per_token = whole and any(one.dtype == np.int32 and y.shape[1:] == one.shape[1:] for one in by_name(x).values())
    several = (task == "classes" and whole and y.ndim in (2, 3)) or (task == "regression" and y.ndim == 2)
    if (y.dtype.kind in "fiubUS" and len(y.shape) == 1) or per_token or (several and not _are_one_hot(y)):
        return y[:, 0] if y.shape[1:] == (1,) and not per_token else y
    if _are_one_hot(y):
        cure = "these rows are one-hot: take y.argmax(axis=1)"
    elif y.ndim == 2:
        cure = "each sample has one label or target: take one of the columns, such as y[:, 0]"
        cure += ", or say `task: regression` for several targets, `multi_label` for labels of 0 or 1, `classes` for a "
        cure += "label at each place"
    elif y.ndim == 1 and y.dtype.kind in "cmM":
        cure = cure_of(y, "y")
    else:
        cure = "give one label or target for each sample, or say `task: classes` if pixels (n, height, width) have one"
    raise BadValue(
        f"y must be integers, texts or floats (n,), one for each sample, got {y.dtype} of shape {y.shape!r}; {cure}"
    )


def _are_one_hot(y: np.ndarray) -> bool:
    of_bits = y.ndim == 2 and y.dtype.kind in "fiub" and bool(((y == 0) | (y == 1)).all())
    return of_bits and y.shape[1] > 1 and bool((y.sum(axis=1) == 1).all())


def _targets(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind not in "fiub":
        raise BadValue(f"y must be numbers for `task: regression`, got texts such as {y[0].item()!r}")
    targets: np.ndarray = y.astype(np.float32)
    if len(wrong := y[~np.isfinite(targets)]):
        raise BadValue(
            f"targets must be finite, got {len(wrong)} that are not, such as {wrong[0]}; fill them, or leave "
            "their samples out"
        )
    return targets


def _doubtful(y: np.ndarray, task: str | None) -> tuple[str, ...]:
    """Returns a note if targets look like labels."""
    if task is not None or not (y == np.floor(y)).all() or len(values := np.unique(y)) > 20:
        return ()
    shown = ", ".join(f"{value:g}" for value in values)
    text = f"y are floats, but only {shown}: taken as targets of a regression; convert them to integers"
    return (f"data.task: {text}, or say `task: classes`; `task: regression` if targets are meant",)


def _numbered(y: np.ndarray, train: int, task: str | None, known: int | None) -> tuple[np.ndarray, int, Meaning]:
    """Returns labels from 0, how many there are, and what is told of them. train: number of training samples."""
    values, place = np.unique(y, return_inverse=True)
    place, notes = place.astype(np.int64), []
    if known is not None and y.dtype.kind in "iub" and values.min() >= 0 and values.max() < known:
        return y.astype(np.int64), known, Meaning("classes", f"labels of {known} classes")
    if y.dtype.kind in "iub" and not np.array_equal(values, np.arange(len(values))):
        shown = ", ".join(map(str, values[:5].tolist())) + (", ..." if len(values) > 5 else "")
        notes.append(f"data.task: the labels {shown} of y are numbered from 0 to {len(values) - 1}, in this order")
    if task is None and y.dtype.kind in "iu" and len(values) > max(20, train // 4):
        notes.append(
            f"data.task: y are integers of {len(values)} values in {train} samples: taken as labels; if they are "
            "targets, say `task: regression`"
        )
    if len(values) == 1:
        notes.append(f"data.task: all labels of y are {values[0]}, so every model is right; see where labels were lost")
    if y.dtype.kind == "U":
        notes += _suspected(values)
    names = ", ".join(map(str, values[:5].tolist())) + (", ..." if len(values) > 5 else "")
    told = f"labels of {counted(len(values), 'class', 'es')} ({names})"
    return place, len(values), Meaning("classes", told, tuple(notes))


def _suspected(texts: np.ndarray) -> list[str]:
    """Returns a note for each way in which texts are seldom meant as labels."""
    alike: dict[str, list[str]] = {}
    for text in texts.tolist():
        alike.setdefault(text.strip().casefold(), []).append(text)
    notes = [
        f"data.task: {' and '.join(map(repr, some))} are labels of their own; make them alike if they mean the same"
        for some in alike.values()
        if len(some) > 1
    ]
    missing = [text for one in ("", "nan", "none", "null", "na", "n/a", "?") for text in alike.get(one, ())]
    text = "is a label of its own; leave its samples out if it stands for a missing one"
    return [*notes, *(f"data.task: {one!r} {text}" for one in missing)]
