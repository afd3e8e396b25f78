"""What arrays were taken for, and words for it that inputs and labels share."""

from typing import NamedTuple

import numpy as np


class Meaning(NamedTuple):
    """What arrays were taken for."""

    key: str | None  # the value of `inputs` or `task` that says so; None if there is none
    text: str
    notes: tuple[str, ...] = ()  # what was guessed, or is seldom meant


def counted(number: int, noun: str, many: str = "s") -> str:
    """Returns a number of things in words, such as "1 class" and "2 classes". many: the ending of several."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{many}"


def cure_of(values: np.ndarray, name: str) -> str:
    """Says what to do with inputs or labels that are no numbers. name: what their user calls them, such as x."""
    if values.dtype.kind == "c":
        return f"give real and imaginary parts, such as np.stack([{name}.real, {name}.imag], axis=1)"
    if values.dtype.kind in "mM":
        return f"make numbers of times, such as ({name} - {name}.min()) / np.timedelta64(1, 's')"
    if values.dtype.kind in "US":
        return f"make numbers of texts, such as {name}.astype(float), or take data of the name `text`"
    return "give numbers, and at least one sample"
