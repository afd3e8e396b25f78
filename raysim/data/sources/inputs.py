"""Inputs as arrays: what they are by a rule or by the key `inputs`, and how they are stored."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from raysim.data.meaning import InputMeaning, NamedArrays, Open
from raysim.data.sources.in_memory import as_array
from raysim.parts.errors import BadValue
from raysim.terms import Inputs

As = Literal["images_first", "images_last", "series", "volumes", "tokens", "features"]


class _Form(NamedTuple):
    """What inputs that are said to be of a form are, how many axes they may have, and what these are."""

    kind: Inputs
    axes: tuple[int, ...]
    says: str


FORMS = {
    "images_first": _Form("images", (3, 4), "(n, channels, height, width), or (n, height, width)"),
    "images_last": _Form("images", (3, 4), "(n, height, width, channels), or (n, height, width)"),
    "series": _Form("series", (2, 3), "(n, steps, sensors): each sensor is scaled by itself"),
    "volumes": _Form("volumes", (5,), "(n, channels, depth, height, width)"),
    "tokens": _Form("text", (2,), "(n, length)"),
    "features": _Form("features", (1, 2), "(n, features), or (n,)"),
}
_ENDS = (1, 3)  # channels of images, grey or of colours


def kind_of(x: np.ndarray, said: As | None) -> As | None:
    """Returns what inputs are: as it is said or, without that, features for one or two axes, and images for four, of
    which exactly one end has 1 or 3 places. None for all else."""
    if said is not None or x.ndim <= 2:
        return said or "features"
    if x.ndim != 4 or (x.shape[1] in _ENDS) == (x.shape[3] in _ENDS):
        return None
    return "images_first" if x.shape[1] in _ENDS else "images_last"


def question(x: np.ndarray) -> Open:
    """Asks what inputs are for which there is no rule."""
    answers = {f"inputs: {key}": form.says for key, form in FORMS.items() if x.ndim in form.axes}
    if not answers:
        raise BadValue(f"inputs must have 1 to 5 axes, got shape {x.shape!r}; reshape them", "inputs")
    text = f"must say what x are, {x.dtype} of shape {x.shape!r}"
    return Open("inputs", text, answers)


def require_numbers(x: Any, what: str) -> None:
    """Raises ValueError unless inputs are numbers, with a row for each sample. what: how errors call them."""
    for name, array in x.items() if isinstance(x, NamedArrays) else [("", x)]:
        if array.ndim == 0 or array.size == 0 or array.dtype.kind not in "fiub":
            text = f"{what}{f' {name!r}' if name else ''} must be an array of numbers with a row for each sample"
            raise BadValue(f"{text}, got {array.dtype} of shape {array.shape!r}; give numbers")


def stored(x: Any, kind: str, what: str, exact: bool) -> Any:
    """Returns inputs as `Split` holds them. Raises ValueError if they cannot be of this kind.

    what: how errors call them. exact: whether numbers that float32 would round stay float64, to be standardised first:
    large ones may differ by less than float32 can tell. Named inputs stay whole numbers, truth values and floats.
    """
    if isinstance(x, NamedArrays):
        return NamedArrays({name: _by_itself(array, f"{what} {name!r}") for name, array in x.items()})
    form = FORMS[kind]
    if x.ndim not in form.axes:
        axes = " or ".join(map(str, form.axes))
        must = f"{what} must have {axes} axes for `inputs: {kind}`, got shape {x.shape!r}"
        raise BadValue(f"{must}; reshape them, or correct `inputs`")
    if kind == "tokens":
        return _tokens(x, what)
    pixels = form.kind == "images" and x.dtype == np.uint8
    if not pixels:
        single = single_of(x)
        require_finite(x, single, what)
        x = x.astype(np.float64) if exact and np.result_type(x, np.float32) != np.float32 else single
    if form.kind == "images" and x.ndim == 3:
        x = x[:, None] if kind == "images_first" else x[..., None]
    elif x.ndim == 1 or (kind == "series" and x.ndim == 2):
        x = x[..., None]
    if kind == "images_first" and pixels:
        x = x.transpose(0, 2, 3, 1)
    elif kind == "images_last" and not pixels:
        x = x.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(x)


def _by_itself(x: np.ndarray, what: str) -> np.ndarray:
    if x.dtype.kind == "b":
        return x
    if x.dtype.kind == "f":
        single = single_of(x)
        require_finite(x, single, what)
        return single
    low, high = int(x.min()), int(x.max())
    if not -(2**31) <= low <= high < 2**31:
        raise BadValue(f"{what} must be whole numbers of 32 bits, got {low} to {high}")
    return x.astype(np.int32)


def _tokens(x: np.ndarray, what: str) -> np.ndarray:
    wrong = (x != np.floor(x)) | (x < 0) | (x >= 2**31)
    if wrong.any():
        row, place = np.argwhere(wrong)[0].tolist()
        must = f"{what} must be whole numbers from 0 to {2**31 - 1} for `inputs: tokens`"
        raise BadValue(f"{must}, got {x[row, place].item()} in row {row}, place {place}; give a token there")
    return x.astype(np.int32)


def require_finite(x: np.ndarray, single: np.ndarray, what: str) -> None:
    """Raises ValueError unless numbers x are finite as float32, `single`: it says which is not, and where."""
    finite = np.isfinite(single)
    if wrong := int(np.count_nonzero(~finite)):
        row, *place = map(int, np.argwhere(~finite)[0])
        where = "" if not place else f", feature {place[0]}" if len(place) == 1 else f", place {tuple(place)}"
        text = f"{what} must be finite, got {wrong} values that are not, such as {x[(row, *place)]} in row"
        raise BadValue(f"{text} {row}{where}; fill them, or leave their samples out")


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


def scaled_like(x: np.ndarray, inputs: InputMeaning) -> InputMeaning:
    """Returns what inputs are once they have mean 0 and deviation 1 over the training inputs x, as float32.

    Series (n, steps, sensors) are scaled sensor by sensor, all others feature by feature or channel by channel (n,
    channels or features, ...). One without variation gets deviation 1, because inputs are divided by it.
    """
    axes = tuple(axis for axis in range(x.ndim) if axis != _scaled_axis(inputs))
    mean, deviation = x.mean(axis=axes, dtype=np.float64), x.std(axis=axes, dtype=np.float64)
    constant = x.min(axis=axes) == x.max(axis=axes)
    deviation[constant | (deviation == 0)] = 1  # rounding of the mean lets a constant one have a tiny deviation
    return replace(inputs, mean=tuple(mean.tolist()), std=tuple(deviation.tolist()), dtype="float32")


def _scaled_axis(inputs: InputMeaning) -> int:
    return 2 if inputs.kind == "series" else 1


def scaled_by(x: np.ndarray, inputs: InputMeaning) -> np.ndarray:
    """Returns inputs as a model gets them that were stored, but not scaled; those of bytes stay."""
    if inputs.dtype == "uint8" or not inputs.mean:
        return x if x.dtype != np.float64 else x.astype(np.float32)
    axes = [1] * x.ndim
    axes[_scaled_axis(inputs)] = len(inputs.mean)
    found: np.ndarray = (x - np.reshape(inputs.mean, axes)) / np.reshape(inputs.std, axes)
    return found.astype(np.float32)


def named_or_plain(given: Any, inputs: InputMeaning) -> Any:
    """Returns inputs that a user gives as `Split` holds them: one array, or those of a dict by name.

    Raises ValueError for bytes where others are meant, and reversed.
    """
    if isinstance(inputs.shape, dict):
        if not isinstance(given, Mapping) or (lacking := [name for name in inputs.shape if name not in given]):
            got = f"none of {lacking[0]!r}" if isinstance(given, Mapping) else type(given).__name__
            raise BadValue(f"inputs must be arrays by name, {', '.join(inputs.shape)}, got {got}")
        return stored(NamedArrays({name: as_array(given[name]) for name in inputs.shape}), "", "inputs", False)
    x = as_array(given)
    if (x.dtype == np.uint8) != (inputs.dtype == "uint8") and inputs.kind == "images":
        raise BadValue(f"images must be {inputs.dtype}, as those that trained the model, got {x.dtype}")
    if x.dtype.kind not in "fiub" or not x.ndim:
        raise BadValue(f"inputs must be numbers, with a row for each sample, got {x.dtype} of shape {x.shape}")
    return x.astype(inputs.dtype)
