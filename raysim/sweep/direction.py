"""Whether a search makes its metric larger or smaller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from raysim.parts.errors import Problem, ScenarioError
from raysim.scenario import Scenario
from raysim.sweep.settings import Search
from results.metrics import directions

Direction = Literal["maximize", "minimize"]


def direction_of(search: Search, scenarios: Sequence[Scenario], source: str) -> Direction:
    """Returns the direction of a search of these scenarios. source: name of the file, for the message.

    The smallest and the largest value among peers, such as loss_max, are better where the metric itself is. Raises
    ScenarioError if the sweep does not set the direction and the metric has no known one.
    """
    if search.direction is not None:
        return search.direction
    known = directions(*({"larger_is_better": scenario.run.directions} for scenario in scenarios))
    metric = search.metric
    larger = known.get(metric, known.get(metric.removesuffix("_min").removesuffix("_max")))
    if larger is None:
        text = (
            f"must be maximize or minimize for a metric other than {', '.join(known)}, because it is not known whether "
            f"larger is better, got null for {metric!r}; set it"
        )
        raise ScenarioError(source, [Problem("sweep.search.direction", text)])
    return "maximize" if larger else "minimize"
