"""Plain data, as files hold them: dictionaries, lists, tuples, texts and numbers."""

import math
from numbers import Real
from typing import Any


def as_tuples(value: Any) -> Any:
    """Returns a value with all lists in it as tuples: fields of parts are tuples, and accept no lists."""
    if isinstance(value, dict):
        return {key: as_tuples(inner) for key, inner in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def as_lists(value: Any) -> Any:
    """Returns a value with all tuples in it as lists, as a file holds them."""
    if isinstance(value, dict):
        return {key: as_lists(inner) for key, inner in value.items()}
    return [as_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python or of numpy."""
    return isinstance(value, (float, Real))  # most are of the first, which is found out sooner


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number, and not True or False."""
    return is_number(value) and not isinstance(value, bool) and math.isfinite(value)
