"""Signs that samples tell what is to be predicted, or that test samples were trained on: told as notes."""

from typing import Any

import numpy as np

_ROWS = 100_000  # how many samples are looked at
_PLACES = 64  # how many numbers of each


def told_by(x: np.ndarray, y: np.ndarray) -> list[int]:
    """Returns the features of x (n, features) that say no more than labels or targets y (n,) do: a feature has one
    value for each label, of which some differ, or is the target."""
    if x.ndim != 2 or y.ndim != 1 or len(x) < 8:
        return []
    if y.dtype.kind == "f":
        same = (x[:_ROWS].astype(np.float32) == y[:_ROWS, None]).all(axis=0)
        return np.flatnonzero(same & (y.min() < y.max())).tolist()
    labels, first, place = np.unique(y[:_ROWS], return_index=True, return_inverse=True)
    if len(labels) * 4 > len(y):  # of some labels, there are hardly two samples
        return []
    of_label = x[first]
    maybe = np.flatnonzero((of_label != of_label[0]).any(axis=0))
    for rows in (slice(0, 1000), slice(0, _ROWS)):  # most features are ruled out by few samples
        maybe = maybe[(x[rows][:, maybe] == of_label[place[rows]][:, maybe]).all(axis=0)]
    return maybe.tolist()


def repeated(train: Any, test: Any) -> tuple[str, ...]:
    """Returns a note if test inputs are also training inputs, unless training inputs repeat themselves, too."""
    if not isinstance(train, np.ndarray) or train.dtype.kind == "i":  # short texts are often alike
        return ()
    known, looked_at = {row: place for place, row in enumerate(_rows(train))}, min(len(train), _ROWS)
    if len(known) < 0.9 * looked_at:
        return ()
    found = [known.get(row) for row in _rows(test)]
    same = sum(place is not None and bool((train[place] == test[row]).all()) for row, place in enumerate(found))
    if same < max(2, 0.01 * len(found)):
        return ()
    return (f"data: {same} of {len(test)} test inputs are training inputs, too, and test nothing new; leave them out",)


def _rows(x: np.ndarray) -> list[bytes]:
    """Returns some numbers of each of the first rows."""
    flat = x[:_ROWS].reshape(min(len(x), _ROWS), -1)
    return [row.tobytes() for row in flat[:, np.unique(np.linspace(0, flat.shape[1] - 1, _PLACES, dtype=np.int64))]]
