"""Inputs as arrays: what they mean as a key says it or, without a key, as they most likely mean it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.data.named import NamedArrays
from raysim.data.sources.meaning import Meaning, counted, cure_of
from raysim.parts.errors import BadValue

if TYPE_CHECKING:
    from raysim.data.dataset import Dataset

_MANY = 30  # rows, which by chance hardly all have a number of their own of twice as many
_CHANNELS = (1, 3, 4)  # of pictures: grey, colours, and colours with opacity


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
            f"{cure_of(x, 'x')}"
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
    single = single_of(x)
    require_finite(x, single, what)
    return single


def require_finite(x: np.ndarray, single: np.ndarray, what: str) -> None:
    """Raises ValueError unless numbers x are finite as float32, `single`: it says which is not, and where."""
    finite = np.isfinite(single)
    if wrong := int(np.count_nonzero(~finite)):
        row, *place = map(int, np.argwhere(~finite)[0])
        where = "" if not place else f", feature {place[0]}" if len(place) == 1 else f", place {tuple(place)}"
        raise BadValue(
            f"{what} must be finite, got {wrong} values that are not, such as {x[(row, *place)]} in row "
            f"{row}{where}; fill them, or leave their samples out"
        )


def require_same_kind(x: np.ndarray, other: np.ndarray, name: str, of_other: str) -> None:
    """Raises ValueError if one of two arrays of images has bytes, from 0 to 255, and the other may be from 0 to 1."""
    if (x.dtype == np.uint8) != (other.dtype == np.uint8) and x.ndim > 2:
        got = f"got {x.dtype} in {name!r} and {other.dtype} in {of_other!r}"
        raise BadValue(f"images must be bytes (uint8) in all or in none, {got}; make them alike")


def single_of(x: np.ndarray) -> np.ndarray:
    """Returns numbers as float32; what is too large for it becomes infinite."""
    with np.errstate(over="ignore"):
        single: np.ndarray = x.astype(np.float32)
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
        return "images_first", None if x.dtype == np.uint8 and shape[0] == shape[1] else note
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
        row, place = np.argwhere((x != np.floor(x)) | (x < 0) | (x >= 2**31))[0].tolist()
        must = f"{what} must be whole numbers from 0 to {2**31 - 1} for `inputs: tokens`"
        raise BadValue(f"{must}, got {x[row, place].item()} in row {row}, place {place}; give a token there")
    return x.astype(np.int32)


def _numbers(x: np.ndarray, key: str | None, what: str, exact: bool) -> np.ndarray:
    """Returns images of bytes with the channels last, and other numbers as floats, images with the channels first."""
    images = key in ("images_first", "images_last")
    if not (images and x.dtype == np.uint8):
        single = single_of(x)
        require_finite(x, single, what)
        x = x.astype(np.float64) if exact and np.result_type(x, np.float32) != np.float32 else single
    if images and x.ndim == 3:
        x = x[:, None] if key == "images_first" else x[..., None]
    if x.dtype == np.uint8:
        return np.ascontiguousarray(x.transpose(0, 2, 3, 1) if key == "images_first" else x)
    if x.ndim == 1:
        return x[:, None]
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2) if key == "images_last" else x)


def _words(x: np.ndarray, key: str | None) -> str:
    """Says what inputs, as they are stored, were taken for."""
    if x.dtype == np.uint8:
        _, height, width, channels = x.shape
        return f"images of {height} x {width} pixels, {counted(channels, 'channel')}, as bytes"
    if key in ("images_first", "images_last"):
        _, channels, height, width = x.shape
        return f"images of {height} x {width} pixels, {counted(channels, 'channel')}, as floats"
    if key == "series":
        return (
            f"series of {counted(x.shape[1], 'step')} of {counted(x.shape[2], 'sensor')}, each sensor scaled by itself"
        )
    if key == "tokens":
        return f"texts of {counted(x.shape[1], 'token')} up to {x.max()}"
    return counted(x.shape[1], "feature") if x.ndim == 2 else f"numbers of shape {x.shape[1:]!r}"


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


def _numbering(x: np.ndarray) -> tuple[str, ...]:
    """Returns a note for each feature (n, features) that only numbers the rows, as an index that was saved does."""
    if x.ndim != 2:
        return ()
    wide = np.flatnonzero(x.max(axis=0).astype(np.float64) - x.min(axis=0) >= len(x) - 1).tolist()
    of_rows = [column for column in wide if numbers_rows(x[:, column])]
    text = "only numbers the rows, and may tell what is to be predicted; leave it out unless it is meant"
    return tuple(f"data: feature {column} of x {text}" for column in of_rows)


def numbers_rows(values: np.ndarray) -> bool:
    """Whether values (n,) are whole numbers that all differ, in any order, and fill a range or, of 30 or more, half of
    one, in steps of one size: numbers that mean something else hardly ever do."""
    if len(values) < 8 or values.dtype.kind not in "fiu":
        return False
    low, high = values.min().item(), values.max().item()
    if not -(2**53) < low < high < 2**53 or high - low < len(values) - 1 or (values % 1).any():
        return False
    places = (values - low).astype(np.int64)
    places //= np.gcd.reduce(places)
    span = (2 if len(values) >= _MANY else 1) * len(values)
    return places.max() < span and len(np.unique(places)) == len(values)
