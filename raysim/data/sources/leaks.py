"""Signs that samples tell what is to be predicted, or that test samples are not as they are meant: told as notes."""

from typing import Any

import numpy as np

_ROWS = 100_000  # how many samples are looked at
_PLACES = 64  # how many numbers of each
_ROUNDING = 1e-6  # of a correlation, by which prices in cents differ from those in euros
_FEW, _SOME, _NUMBERS = 8, 1000, 4_000_000  # samples, and numbers, of a split that say how large these are
_TIMES = 20  # by how much numbers of splits seldom differ


def told_by(x: np.ndarray, y: np.ndarray) -> list[int]:
    """Returns the features of x (n, features) that say no more than labels or targets y (n,) do: a feature has one
    value for each label, of which some differ, or is the target in any unit."""
    if x.ndim != 2 or y.ndim != 1 or len(x) < 8:
        return []
    if y.dtype.kind == "f":
        found = np.arange(x.shape[1])
        for rows in (slice(0, _SOME), slice(0, _ROWS)):  # most features are ruled out by few samples
            found = found[_correlated(x[rows][:, found].astype(np.float64), y[rows].astype(np.float64))]
        return found.tolist()
    labels, first, place = np.unique(y[:_ROWS], return_index=True, return_inverse=True)
    if len(labels) * 4 > len(y):  # of some labels, there are hardly two samples
        return []
    of_label = x[first]
    maybe = np.flatnonzero((of_label != of_label[0]).any(axis=0))
    for rows in (slice(0, 1000), slice(0, _ROWS)):  # most features are ruled out by few samples
        maybe = maybe[(x[rows][:, maybe] == of_label[place[rows]][:, maybe]).all(axis=0)]
    return maybe.tolist()


def _correlated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns which features of x (n, features) are y (n,), times a number and plus one."""
    x, y = x - x.mean(axis=0), y - y.mean()
    sizes = np.sqrt(np.square(y).sum() * np.square(x).sum(axis=0))
    found: np.ndarray = (sizes > 0) & (np.abs(y @ x) > (1 - _ROUNDING) * sizes)
    return found


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


def otherwise(train: Any, test: Any) -> tuple[str, ...]:
    """Returns a note if test inputs are on another scale than training inputs, such as 0 to 1 and 0 to 255."""
    if not isinstance(train, np.ndarray) or train.dtype.kind == "i" or min(len(train), len(test)) < _FEW:
        return ()
    spreads, middles = zip(*(_scale(x) for x in (train, test)), strict=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        times, away = spreads[1] / spreads[0], np.abs(middles[1] - middles[0]) / spreads[0]
    odd = (spreads[0] > 0) & (spreads[1] > 0) & ((times > _TIMES) | (times < 1 / _TIMES) | (away > _TIMES))
    if not odd.any():
        return ()
    what = (
        f"features {', '.join(map(str, np.flatnonzero(odd)[:5]))} of test inputs" if train.ndim == 2 else "test inputs"
    )
    return (f"data: {what} are on another scale than those of training inputs; bring both to one, unless it is meant",)


def _scale(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the width of the middle nine tenths, and the middle, of each feature, or of all numbers of images."""
    flat = x.reshape(len(x), -1)
    places = _spread(flat.shape[1], flat.shape[1] if x.ndim == 2 else _PLACES)
    some = flat[np.ix_(_spread(len(x), max(_FEW, min(_SOME, _NUMBERS // len(places)))), places)]
    some = some if x.ndim == 2 else some.reshape(-1, 1)
    low, middle, high = np.percentile(some.astype(np.float64), [5, 50, 95], axis=0)
    return high - low, middle


def _spread(length: int, number: int) -> np.ndarray:
    """Returns at most so many places of a range, far apart."""
    return np.unique(np.linspace(0, length - 1, number, dtype=np.int64))


def _rows(x: np.ndarray) -> list[bytes]:
    """Returns some numbers of each of the first rows."""
    flat = x[:_ROWS].reshape(min(len(x), _ROWS), -1)
    return [row.tobytes() for row in flat[:, _spread(flat.shape[1], _PLACES)]]
