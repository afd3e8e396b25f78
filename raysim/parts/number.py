"""Whether what code of users' own returns is a number."""

import math
from numbers import Real
from typing import Any


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python or of numpy."""
    return isinstance(value, (float, Real))  # most are of the first, which is found out sooner


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number, and not True or False."""
    return is_number(value) and not isinstance(value, bool) and math.isfinite(value)
