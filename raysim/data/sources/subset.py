"""Which of the stored samples are used, and which of them are the test set."""

import numpy as np

from raysim.data.dataset import Split
from raysim.parts.errors import BadValue
from raysim.parts.rng import generator


def uneven(samples: int | None, num_classes: int, key: str) -> list[str]:
    """Says what is wrong with this number of samples if it cannot be spread evenly over the labels."""
    if samples is None or samples % num_classes == 0:
        return []
    nearest = max(round(samples / num_classes), 1) * num_classes
    return [f"`{key}` must be a multiple of the number of labels, {num_classes}, got {samples}; take {nearest}"]


def balanced(split: Split, samples: int | None, num_classes: int, key: str) -> Split:
    """Returns the first samples / num_classes samples of each label, in stored order, or the first samples where they
    have no single label; all if samples is None.

    key: the setting's name, for errors. Raises ValueError if that is no whole number, or if there are fewer.
    """
    if samples is None or not split.labelled:
        return first(split, samples, key)
    for problem in uneven(samples, num_classes, key):
        raise BadValue(problem.removeprefix(f"`{key}` "), key)
    each = samples // num_classes
    have = np.bincount(split.y, minlength=num_classes)
    if have.min() < each:
        cure = f"lower it to {have.min() * num_classes} or less" if have.min() else "leave it out"
        raise BadValue(
            f"`{key}` {samples} takes {each} samples of each label, got {have.min()} of label {have.argmin()}; {cure}"
        )
    return split.take(first_rows(split.y, samples, num_classes))


def first(split: Split, samples: int | None, key: str) -> Split:
    """Returns the first samples; all if samples is None. Raises ValueError if there are fewer."""
    if samples is None:
        return split
    if samples > len(split):
        raise BadValue(f"must be at most {len(split)}, the number of samples, got {samples}; lower it", key)
    return split.take(np.arange(samples))


def first_rows(labels: np.ndarray, samples: int, num_classes: int) -> np.ndarray:
    """Returns the rows of the first samples / num_classes samples of each label, ascending."""
    rows = [np.flatnonzero(labels == label)[: samples // num_classes] for label in range(num_classes)]
    return np.sort(np.concatenate(rows))


def tested(split: Split, share: float) -> tuple[Split, Split]:
    """Splits samples: a random share, of each label if there are labels, is for testing, the rest for training.

    It is the same for every seed of a scenario.
    """
    draw = generator(0, "test share")
    groups = rows_by_value(split.y) if split.labelled else [np.arange(len(split))]
    rows = np.sort(np.concatenate([draw.permutation(rows)[: held_out_size(len(rows), share)] for rows in groups]))
    return split.take(np.setdiff1d(np.arange(len(split)), rows)), split.take(rows)


def held_out_size(samples: int, share: float) -> int:
    """Returns how many samples are held out: the share, rounded down, but at least one and never all.

    Nothing is held out if the share is 0 or there are fewer than two samples.
    """
    if share == 0 or samples < 2:
        return 0
    rounded_down = int(share * samples + 1e-9)  # 0.29 * 100 is 28.999999999999996
    return min(max(rounded_down, 1), samples - 1)


def rows_by_value(values: np.ndarray) -> list[np.ndarray]:
    """Returns the rows that have each distinct value, ascending, by value in sorted order."""
    _, counts = np.unique(values, return_counts=True)
    return pieces(np.argsort(values, kind="stable"), counts)


def pieces(rows: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Cuts rows into pieces of the sizes, several times faster than `np.split`."""
    ends = np.cumsum(sizes).tolist()
    return [rows[start:end] for start, end in zip([0, *ends], ends, strict=False)]
