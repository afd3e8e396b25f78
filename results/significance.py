"""Says which number of a comparison is the best of its column, and which are not worse than it by more than chance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from results.keys import Value
from results.measure import Measure
from results.ranking import rank
from results.reader import Run
from results.score import Above

Marks: TypeAlias = dict[tuple[tuple[Value, ...], str], tuple[bool, float]]
"""By values of the keys and metric: whether it is the best, and p, NaN for the best and where nothing was tested."""


def marks(
    groups: Mapping[tuple[Value, ...], Sequence[Run]],
    numbers: Mapping[str, Mapping[Run, float | None]],
    rows: int,
    measure: Measure,
) -> Marks:
    """Returns the marks of all numbers. A mean for which runs are missing, or have not reached a target, has none.

    rows: how many of the values are those of keys that make rows; the others make columns.
    """
    found: Marks = {}
    for metric, of_runs in numbers.items():
        # Other metrics are the costs of reaching a target: the less, the better.
        larger = measure.larger_is_better(metric) if metric in measure.metrics else False
        if larger is None:
            continue
        columns: dict[tuple[Value, ...], list[tuple[Value, ...]]] = {}
        for values, group in groups.items():
            if _whole([of_runs[run] for run in group]):
                columns.setdefault(values[rows:], []).append(values)
        for of_column in columns.values():
            if len(of_column) < 2:
                continue
            ranked = rank([_by_seed(groups[values], of_runs) for values in of_column], larger)
            for one in ranked:
                found[of_column[one.case], metric] = one.mean == ranked[0].mean, one.p
    return found


def _whole(numbers: Sequence[float | None]) -> bool:
    return all(n is not None and not isinstance(n, Above) and not math.isnan(n) for n in numbers)


def _by_seed(group: Sequence[Run], numbers: Mapping[Run, float | None]) -> dict[Hashable, float]:
    return {run.keys.get("seed"): number for run in group if (number := numbers[run]) is not None}
