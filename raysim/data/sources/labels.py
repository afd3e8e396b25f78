"""Labels and targets as arrays: what they mean as a key says it or, without a key, as they most likely mean it."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from raysim.data.named import by_name
from raysim.data.sources.meaning import Meaning, counted, cure_of
from raysim.parts.errors import BadValue

_EXACT = 2**53  # whole numbers below it are told apart as float64


def labels_of(
    train: np.ndarray, test: np.ndarray | None, task: str | None, x: Any, known: int | None = None
) -> tuple[np.ndarray, int, Meaning]:
    """Returns the labels, int64, or targets, float32, of all samples, how many outputs they take, and what they are.

    They are (n,) or, for tokens or where `task` says so, also have a label or target for each of a sample's places.
    known: number of classes, if it is known. Raises ValueError if they are neither, or if test samples have a label
    that no training sample has.
    """
    train, test = _one_each(train, x, task), None if test is None else _one_each(test, x, task)
    if test is not None:
        require_alike((train, test), ("training samples", "test samples"), task)
    y = train if test is None else joined_labels([train, test])
    train, test = y[: len(train)], None if test is None else y[len(train) :]
    if task == "multi_label":
        return y.astype(np.float32), y.shape[1], Meaning(task, f"0 or 1 for each of {y.shape[1]} labels")
    if y.ndim > 1 and task == "regression":
        return _targets(y, len(train)), y.shape[1], Meaning(task, f"{y.shape[1]} targets of a regression")
    if task == "regression" or (task is None and y.dtype.kind == "f"):
        return _targets(y, len(train)), 1, Meaning("regression", "targets of a regression", _doubtful(y, task))
    if y.dtype.kind == "f":
        whole = (np.abs(y) < _EXACT) & (y == np.floor(y))
        if not whole.all():
            must = "y must be whole numbers below 2**53 for `task: classes`"
            raise BadValue(f"{must}, got {_first(y, ~whole, len(train))}; correct them")
        y = y.astype(np.int64)
        train, test = y[: len(train)], y[len(train) :] if test is not None else None
    if y.ndim > 1:  # labels of tokens (n, length) or pixels (n, height, width) keep their numbers
        classes, noun = int(y.max()) + 1, "token" if y.ndim == 2 else "pixel"
        notes = ("data.task: rows of y may be one-hot; if they are, take y.argmax(axis=1)",) if _are_one_hot(y) else ()
        return y.astype(np.int64), classes, Meaning("classes", f"a label of {classes} for each {noun}", notes)
    if test is not None and len(strangers := np.setdiff1d(test, train)):
        raise BadValue(
            f"labels of test samples must be labels of training samples, got {strangers[0].item()!r} in "
            f"{np.count_nonzero(test == strangers[0])} test samples only; correct the labels, or leave these out"
        )
    return _numbered(y, len(train), task, known)


def joined_labels(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the labels of all parts. Whole numbers stay so: numpy would make floats of int64 and uint64."""
    whole = all(part.dtype.kind in "iub" for part in parts) and any(part.dtype.kind == "u" for part in parts)
    if not whole:
        return np.concatenate(parts)
    low = min((int(part.min()) for part in parts if part.size), default=0)
    kind = np.dtype(np.int64 if low < 0 else np.uint64)
    for part in parts:
        if part.size and int(part.max()) > np.iinfo(kind).max:
            raise BadValue(f"y must be whole numbers of 64 bits, got {low} and {part.max()}; number the labels from 0")
    return np.concatenate([part.astype(kind) for part in parts])


def require_alike(parts: Sequence[np.ndarray], names: Sequence[str], task: str | None) -> None:
    """Raises ValueError unless all parts hold texts, all whole numbers, or all floats. names: of the parts.

    Where the task is said, whole numbers and floats may be mixed.
    """
    for part, name in zip(parts[1:], names[1:], strict=True):
        kinds = {_KIND.get(one.dtype.kind, one.dtype.kind) for one in (parts[0], part)}
        if len(kinds) > 1 and (task is None or "texts" in kinds):
            cure = "" if "texts" in kinds else ", or say `task: classes` or `task: regression`"
            got = f"got {parts[0].dtype} of {names[0]} and {part.dtype} of {name}"
            raise BadValue(f"y must be labels or targets in both, {got}; make them alike{cure}")


_KIND = {"U": "texts", "S": "texts", "f": "floats", "i": "whole", "u": "whole", "b": "whole"}


def _first(y: np.ndarray, wrong: np.ndarray, train: int) -> str:
    """Says what the first wrong label or target is, and where. train: number of training samples."""
    place = np.argwhere(wrong)[0]
    row = int(place[0])
    return f"{y[tuple(place)]} in {f'row {row}' if row < train else f'test row {row - train}'}"


def _one_each(y: np.ndarray, x: Any, task: str | None) -> np.ndarray:
    """Returns labels or targets with one axis, or with those of the task or of tokens. Raises ValueError, which says
    what to do."""
    if task == "multi_label":
        bits = (y == 0) | (y == 1)
        if y.ndim != 2 or y.dtype.kind not in "fiub" or not bits.all():
            got = f"{y.dtype} of shape {y.shape!r}"
            if y.ndim == 2 and y.dtype.kind in "fiub":
                got += f", with {_first(y, ~bits, len(y))}; make it 0 or 1"
            raise BadValue(
                f"y must be 0 or 1 for each of several labels, (n, labels), for `task: multi_label`, got {got}"
            )
        return y
    whole = y.dtype.kind in "iu"
    y = y.reshape(len(y)) if y.ndim > 1 and set(y.shape[1:]) == {1} and not (whole and task == "classes") else y
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
        cure = cure_of(y, "y") + ", with `task: regression`" * (y.dtype.kind == "c")
    elif y.dtype.kind == "O":
        cure = "give numbers or texts, and a value in every row"
    else:
        cure = "give one label or target for each sample, or say `task: classes` if pixels (n, height, width) have one"
    raise BadValue(
        f"y must be integers, texts or floats (n,), one for each sample, got {y.dtype} of shape {y.shape!r}; {cure}"
    )


def _are_one_hot(y: np.ndarray) -> bool:
    of_bits = y.ndim == 2 and y.dtype.kind in "fiub" and bool(((y == 0) | (y == 1)).all())
    return of_bits and y.shape[1] > 1 and bool((y.sum(axis=1) == 1).all())


def _targets(y: np.ndarray, train: int) -> np.ndarray:
    if y.dtype.kind not in "fiub":
        text = f"got texts such as {y[0].item()!r}; make numbers of them"
        raise BadValue(f"y must be numbers for `task: regression`, {text}")
    with np.errstate(over="ignore"):
        targets: np.ndarray = y.astype(np.float32)
    if number := int(np.count_nonzero(wrong := ~np.isfinite(targets))):
        text = f"got {number} that are not, such as {_first(y, wrong, train)}; fill them, or leave their samples out"
        raise BadValue(f"targets must be finite, {text}")
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
    if known is not None and y.dtype.kind in "iub":
        if (wrong := (y < 0) | (y >= known)).any():
            text = f"got {_first(y, wrong, train)}, which stands for no label; leave out the samples without one"
            raise BadValue(f"labels must be 0 to {known - 1}, as their names say, {text}")
        return y.astype(np.int64), known, Meaning("classes", f"labels of {known} classes")
    if y.dtype.kind in "iub" and not np.array_equal(values, np.arange(len(values))):
        shown = ", ".join(map(str, values[:5].tolist())) + (", ..." if len(values) > 5 else "")
        notes.append(f"data.task: the labels {shown} of y are numbered from 0 to {len(values) - 1}, in this order")
    if task is None and y.dtype.kind in "iuU" and len(values) > max(20, train // 4):
        what, cure = (
            ("texts", "make numbers of them") if y.dtype.kind == "U" else ("integers", "say `task: regression`")
        )
        notes.append(
            f"data.task: y are {what} of {len(values)} values in {train} samples: taken as labels; if they are "
            f"targets, {cure}"
        )
    if len(values) == 1:
        notes.append(f"data.task: all labels of y are {values[0]}, so every model is right; see where labels were lost")
    if y.dtype.kind == "U":
        notes += [f"data.task: {note}" for note in suspected(values)]
    names = ", ".join(map(str, values[:5].tolist())) + (", ..." if len(values) > 5 else "")
    told = f"labels of {counted(len(values), 'class', 'es')} ({names})"
    return place, len(values), Meaning("classes", told, tuple(notes))


def suspected(texts: np.ndarray) -> list[str]:
    """Returns a note for each way in which texts are seldom meant as labels."""
    alike: dict[str, list[str]] = {}
    for text in texts.tolist():
        alike.setdefault(text.strip().casefold(), []).append(text)
    notes = [
        f"{' and '.join(map(repr, some))} are labels of their own; make them alike if they mean the same"
        for some in alike.values()
        if len(some) > 1
    ]
    missing = [text for one in ("", "nan", "none", "null", "na", "n/a", "?") for text in alike.get(one, ())]
    text = "is a label of its own; leave its samples out if it stands for a missing one"
    numbers = [one for one in texts.tolist() if re.fullmatch(r"\s*[-+]?\d[\d.,' ]*(e[-+]?\d+)?\s*%?\s*", one.lower())]
    if len(numbers) == len(texts) and (odd := [one for one in numbers if not one.strip().isdecimal()]):
        notes.append(f"labels are texts of numbers, such as {odd[0]!r}; make numbers of them if they are targets")
    return [*notes, *(f"{one!r} {text}" for one in missing)]
