"""The base of algorithms whose clients train narrower models than the server's, which averages what each one holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from raysim.algorithms.buffered import Buffered
from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.moving import Moving
from raysim.algorithms.signatures import Arrivals, Direction, Problems, ServerTask, Setting, Weights
from raysim.parts.errors import Problem
from raysim.terms import Population, Record


class Sliced(Buffered, Moving):
    """An algorithm whose server moves each parameter by the mean difference of the clients that hold it.

    Clients send differences `delta`, and no `buffers`. A parameter that none of a step's clients holds stays. With
    `buffer`, each parameter is divided by how many of the updates hold it.
    """

    takes_levels: ClassVar[bool] = True
    holds_labels: ClassVar[bool] = False
    """Whether a client has no part in the rows of the last layer that belong to labels which it lacks."""

    weights: Literal["uniform", "samples"] = "samples"
    """How the clients that hold a parameter are weighted: alike, or by their numbers of samples."""

    @model_validator(mode="before")
    @classmethod
    def _averages(cls, value: Any) -> Any:
        if isinstance(value, dict) and "aggregate" in value:
            text = (
                "must have no aggregate, because clients may hold parts of the model, and aggregates compare whole ones"
            )
            raise ValueError(f"{text}; leave it out, or take fedavg or fedbuff without levels")
        return value

    def problems(self, scenario: Setting) -> Problems:
        if scenario.model.norm == "local" or scenario.model.personal:
            key = "personal" if scenario.model.personal else "norm"
            text = f"must share all parameters for {self.name}, which averages slices of them; set personal: []"
            yield Problem(f"model.{key}", text)

    def weigh(self, arrivals: Arrivals, population: Population) -> Weights:
        return self.discounted(arrivals, self.weights)

    def _shares(self, arrivals: Arrivals) -> list[float]:
        """Returns the weights of updates in the mean, without factors of staleness."""
        return by_samples(arrivals) if self.weights == "samples" else [1 / len(arrivals) for _ in arrivals]

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        if "delta" not in updates:
            return None, {}
        held, total = task.held(arrivals, self._shares(arrivals))
        return updates["delta"] * (total / held).where(held > 0, held), {}


def levels_within(level: float, levels: Sequence[float]) -> list[float]:
    """Returns the levels up to one of them, the largest first."""
    return [one for one in levels if one <= level]
