"""The block `sweep:` of a scenario file: several runs of one scenario."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.errors import Problem, ScenarioError
from raysim.parts.part import Count, Part
from raysim.scenario import Scenario
from results.info import directions

Values = Annotated[list[Any], Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]


class Range(Part):
    """Where a search may look for a key's value: between two numbers, or among choices."""

    low: int | float | None = None
    """Smallest value. If low and high are integers, only integers are suggested."""
    high: int | float | None = None
    """Largest value."""
    log: bool = False
    """Whether to search evenly in the logarithm, as is usual for learning rates."""
    choices: Annotated[list[str | int | float | bool], Field(min_length=1)] | None = None
    """Values to choose from, given instead of low and high."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.choices is not None:
            if self.low is not None or self.high is not None or self.log:
                raise ValueError("must have either low and high or choices, got both")
        elif self.low is None or self.high is None or not self.low < self.high:
            raise ValueError(f"must have low < high, or choices, got low {self.low!r} and high {self.high!r}")
        elif self.log and self.low <= 0:
            raise ValueError(f"low must be positive where log is true, got {self.low!r}")
        return self


class Search(Part):
    """Tunes keys with Optuna, whose sampler suggests them."""

    over: Annotated[dict[str, Range], Field(min_length=1)]
    """The range of each key to tune, by key path, such as local.lr."""
    trials: Count = 20
    """Number of trials for each case and combination of the grid. A trial runs all seeds of the grid and scores their
    mean."""
    metric: str = "accuracy"
    """Metric to tune, as last evaluated: the mean over clients where `run.evaluate_clients` evaluates their own models,
    else that of the global model, or the mean over peers. It is tuned on the split validation if `data.validation`
    makes one, and else on the first of `run.evaluate_on`, by default test."""
    direction: Literal["maximize", "minimize"] | None = None
    """Whether larger or smaller is better. null: larger for accuracy, smaller for loss, and as `run.metrics` says for
    the metrics there; the same for their smallest and largest values among peers, such as loss_max. It must be set for
    any other metric, such as accuracy_gap or consensus."""
    batch: Count = 4
    """Number of trials that are suggested at a time, and may run side by side. Suggestions depend on it."""
    storage: str | None = None
    """Address of a database of Optuna's that also gets the trials, such as sqlite:///tuning.db, for its dashboard. A
    study there has the name of the sweep and the number of its group, and is replaced when a search starts. null:
    none."""


class Sweep(Part):
    """Several runs of one scenario: every case with every combination of the grid."""

    grid: dict[str, Values] = Field(default_factory=dict)
    """The values of each key, by key path, such as seed or world.delay.sigma."""
    cases: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    """Keys that are set together, such as an algorithm and its settings, by a name that you choose. The names of the
    case's runs end with it."""
    search: Search | None = None
    """Tunes keys in each combination. null: each combination is run once."""


class ScenarioFile(Scenario):
    """A scenario file, of one run or, with a sweep, of several."""

    sweep: Sweep | None = None
    """Several runs of the scenario, for `raysim sweep`. null: one run."""


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
        must = f"must be maximize or minimize for a metric other than {', '.join(known)}, because it is not known"
        text = f"{must} whether larger is better, got null for {metric!r}; set it"
        raise ScenarioError(source, [Problem("sweep.search.direction", text)])
    return "maximize" if larger else "minimize"
