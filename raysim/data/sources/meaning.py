"""What arrays of inputs and labels mean: as keys say it or, without a key, as they most likely mean it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raysim.data.named import NamedArrays, by_name
from raysim.parts.errors import BadValue

if TYPE_CHECKING:
    from raysim.data.dataset import Dataset

_CHANNELS = (1, 3, 4)  # of pictures: grey, colours, and colours with opacity


class Meaning(NamedTuple):
    """What arrays were taken for."""

    key: str | None  # the value of `inputs` or `task` that says so; None if there is none
    text: str
    notes: tuple[str, ...] = ()  # what was guessed, or is seldom meant


def inputs_of(x: Any, inputs: str | None, what: str, exact: bool) -> tuple[Any, Meaning]:
    """Returns inputs as `Split` holds them, and what they were taken for. Raises ValueError if they cannot be.

    inputs: the key. what: how errors call them. exact: whether numbers that float32 would round stay float64, to
    be standardised first: large ones may differ by less than float32 can tell.
    """
    if isinstance(x, NamedArrays):
        named = NamedArrays({name: _stored(array, f"{what} {name!r}") for name, array in x.items()})
        return named, Meaning(None, _of_names(named))
    if x.ndim == 0 or len(x) == 0 or x.dtype.kind not in "fiub":
        raise BadValue(
            f"{what} must be an array of numbers with a row for each sample, got {x.dtype} of shape {x.shape!r}; "
            f"{_cure(x, 'x')}"
        )
    key, note = (inputs, None) if inputs else _guessed(x)
    axes = {"images_first": (3, 4), "images_last": (3, 4), "series": (3,), "tokens": (2,), "features": (1, 2)}
    if key is not None and x.ndim not in axes[key]:
        raise BadValue(
            f"{what} must have {' or '.join(map(str, axes[key]))} axes for `inputs: {key}`, got shape {x.shape!r}; "
            "reshape them, or correct `inputs`"
        )
    stored = _tokens(x, what) if key == "tokens" else _numbers(x, key, what, exact)
    notes = () if note is None else (note,)
    return stored, Meaning(key, _words(stored, key), (*notes, *_numbering(stored)))


def _stored(x: np.ndarray, what: str) -> np.ndarray:
    """Returns an array of named inputs as `Split` holds it: whole numbers and truth values, or floats as they are."""
    if x.ndim == 0 or len(x) == 0 or x.dtype.kind not in "fiub":
        raise BadValue(f"{what} must be numbers with a row for each sample, got {x.dtype} of shape {x.shape!r}")
    if x.dtype.kind == "b":
        return x
    if x.dtype.kind in "iu":
        low, high = int(x.min()), int(x.max())
        if not -(2**31) <= low <= high < 2**31:
            raise BadValue(f"{what} must be whole numbers of 32 bits, got {low} to {high}")
        return x.astype(np.int32)
    single = x.astype(np.float32)
    if not np.isfinite(single).all():
        row = int(np.argwhere(~np.isfinite(single))[0][0])
        raise BadValue(f"{what} must be finite, got others in row {row}; fill them, or leave their samples out")
    return single


def _of_names(x: NamedArrays) -> str:
    return (
        ", ".join(f"{name} {tuple(array.shape[1:])} {array.dtype}" for name, array in x.items()) + ", used as they are"
    )


def _guessed(x: np.ndarray) -> tuple[str | None, str | None]:
    """Returns what inputs most likely are, as a value of `inputs`, and a note if they may be something else."""
    shape, found = x.shape[1:], None
    note = f"data.inputs: x are {x.dtype} of shape {x.shape!r}, taken for "
    if x.ndim <= 2:
        found = "features"
        if x.dtype.kind in "iu" and x.ndim == 2 and x.min() >= 0:
            return found, f"{note}features; if they are tokens of text, say `inputs: tokens`"
        return found, None
    if x.ndim == 3 and (x.dtype == np.uint8 or shape[0] == shape[1]):
        note += f"grey images of {shape[0]} x {shape[1]}; if they are series (n, steps, sensors), say `inputs: series`"
        return "images_first", None if x.dtype == np.uint8 else note
    if x.ndim == 3:
        note += f"series of {shape[0]} steps of {shape[1]} sensors; if they are images, say `inputs: images_first`"
        if shape[0] < shape[1]:
            note += "; if they are (n, sensors, steps), scale each sensor by yourself and say `scale: unit`"
        return "series", note
    if x.ndim > 4:
        return None, f"{note}numbers with channels on the second axis, each of which is standardised by itself"
    first, last = shape[0] in _CHANNELS, shape[2] in _CHANNELS
    if first == last:  # such as maps of features; those of a square image are told by the axis that differs
        first = shape[1] == shape[2] if (shape[0] == shape[1]) != (shape[1] == shape[2]) else shape[0] <= shape[2]
        found = "images_first" if first else "images_last"
        other = "images_last" if first else "images_first"
        where = "first" if first else "last"
        return found, f"{note}images with the channels {where}; say `inputs: {found}`, or `inputs: {other}`"
    return "images_first" if first else "images_last", None


def _tokens(x: np.ndarray, what: str) -> np.ndarray:
    whole = x.dtype.kind in "iub" or bool((x == np.floor(x)).all())
    if not whole or x.min() < 0 or x.max() >= 2**31:
        bad = x[(x != np.floor(x)) | (x < 0) | (x >= 2**31)][0]
        raise BadValue(f"{what} must be whole numbers from 0 to {2**31 - 1} for `inputs: tokens`, got {bad.item()}")
    return x.astype(np.int32)


def _numbers(x: np.ndarray, key: str | None, what: str, exact: bool) -> np.ndarray:
    """Returns images of bytes with the channels last, and other numbers as floats, images with the channels first."""
    images = key in ("images_first", "images_last")
    if images and x.ndim == 3:
        x = x[:, None] if key == "images_first" else x[..., None]
    if images and x.dtype == np.uint8:
        return np.ascontiguousarray(x.transpose(0, 2, 3, 1) if key == "images_first" else x)
    single = x.astype(np.float32)
    if wrong := int(np.count_nonzero(~np.isfinite(single))):
        row = int(np.argwhere(~np.isfinite(single))[0][0])
        raise BadValue(
            f"{what} must be finite, got {wrong} values that are not, such as "
            f"{x[row][~np.isfinite(single[row])].ravel()[0]} in row {row}; fill them, or leave their samples out"
        )
    x = x.astype(np.float64) if exact and np.result_type(x, np.float32) != np.float32 else single
    if x.ndim == 1:
        return x[:, None]
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2) if key == "images_last" else x)


def _words(x: np.ndarray, key: str | None) -> str:
    """Says what inputs, as they are stored, were taken for."""
    if x.dtype == np.uint8:
        _, height, width, channels = x.shape
        return f"images of {height} x {width} pixels, {_count(channels, 'channel')}, as bytes"
    if key in ("images_first", "images_last"):
        _, channels, height, width = x.shape
        return f"images of {height} x {width} pixels, {_count(channels, 'channel')}, as floats"
    if key == "series":
        return f"series of {_count(x.shape[1], 'step')} of {_count(x.shape[2], 'sensor')}, each sensor scaled by itself"
    if key == "tokens":
        return f"texts of {_count(x.shape[1], 'token')} up to {x.max()}"
    return _count(x.shape[1], "feature") if x.ndim == 2 else f"numbers of shape {x.shape[1:]!r}"


def described(dataset: Dataset) -> tuple[str, ...]:
    """Says what the samples of a data set are, one line for inputs and one for labels."""
    x, y = dataset.train.x, dataset.train.y
    if dataset.loss == "quadratic":
        return ("x: functions that clients minimise",)
    labels = f"labels of {dataset.num_classes} classes" if y.dtype == np.int64 else "targets of a regression"
    if dataset.loss == "binary_cross_entropy":
        labels = f"0 or 1 for each of {dataset.num_classes} labels"
    if isinstance(x, NamedArrays):
        return f"x: {_of_names(x)}", f"y: {labels}"
    return f"x: {_words(x, 'tokens' if x.dtype.kind == 'i' else None)}", f"y: {labels}"


def _count(number: int, noun: str, many: str = "s") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{many}"


def _cure(values: np.ndarray, name: str) -> str:
    """What to do with inputs or labels that are no numbers. name: theirs."""
    if values.dtype.kind == "c":
        return f"give real and imaginary parts, such as np.stack([{name}.real, {name}.imag], axis=1)"
    if values.dtype.kind in "mM":
        return f"make numbers of times, such as ({name} - {name}.min()) / np.timedelta64(1, 's')"
    if values.dtype.kind in "US":
        return f"make numbers of texts, such as {name}.astype(float), or take data of the name `text`"
    return "give numbers, and at least one sample"


def _numbering(x: np.ndarray) -> tuple[str, ...]:
    """Returns a note for each feature (n, features) that only numbers the rows, as an index that was saved does."""
    of_rows = [column for column in range(x.shape[1]) if numbers_rows(x[:, column])] if x.ndim == 2 else []
    text = "only numbers the rows, and may tell what is to be predicted; leave it out unless it is meant"
    return tuple(f"data: feature {column} of x {text}" for column in of_rows)


def numbers_rows(values: np.ndarray) -> bool:
    """Whether values (n,) are whole numbers of which each is one more than another, in any order."""
    if len(values) < 8 or values.dtype.kind not in "fiu" or not np.isfinite([low := values.min(), values.max()]).all():
        return False
    if values.max() - low != len(values) - 1 or low % 1:
        return False
    return bool((np.sort(values) == np.arange(len(values)) + low).all())


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
    if y.ndim > 1:
        return _at_places(y)
    if test is not None and len(strangers := np.setdiff1d(test, train)):
        raise BadValue(
            f"labels of test samples must be labels of training samples, got {strangers[0].item()!r} in "
            f"{np.count_nonzero(test == strangers[0])} test samples only; correct the labels, or leave these out"
        )
    return _numbered(y, len(train), task, known)


def _at_places(y: np.ndarray) -> tuple[np.ndarray, int, Meaning]:
    """Returns labels of tokens (n, length) or pixels (n, height, width), which keep their numbers."""
    classes, noun = int(y.max()) + 1, "token" if y.ndim == 2 else "pixel"
    return y.astype(np.int64), classes, Meaning("classes", f"a label of {classes} for each {noun}")


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
        cure = _cure(y, "y")
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
    told = f"labels of {_count(len(values), 'class', 'es')} ({names})"
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
