"""The base of algorithms whose clients train narrower models than the server's, which averages what each one holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.moving import Moving
from raysim.algorithms.signatures import Arrivals, Direction, Problems, ServerTask, Setting, Weights
from raysim.algorithms.staleness import Polynomial, Staleness
from raysim.parts.errors import Problem
from raysim.parts.part import Count
from raysim.terms import Buffer, Population, Record, Round


class Sliced(Moving):
    """An algorithm whose server moves each parameter by the mean difference of the clients that hold it.

    Clients send differences `delta`, and no `buffers`. A parameter that none of a step's clients holds stays.
    """

    takes_levels: ClassVar[bool] = True
    holds_labels: ClassVar[bool] = False
    """Whether a client has no part in the rows of the last layer that belong to labels which it lacks."""

    weights: Literal["uniform", "samples"] = "samples"
    """How the clients that hold a parameter are weighted: alike, or by their numbers of samples."""
    buffer: Count | None = None
    """How many updates make a server step, as in fedbuff; each parameter is then divided by how many of these hold it.
    null: the server steps at the end of a round, and late updates are discarded."""
    staleness: Staleness = Polynomial()
    """With `buffer`, the factor S(s) of an update's weight, for its staleness s; by default 1 / sqrt(1 + s)."""

    @model_validator(mode="before")
    @classmethod
    def _averages(cls, value: Any) -> Any:
        if isinstance(value, dict) and "aggregate" in value:
            text = (
                "must have no aggregate, because clients may hold parts of the model, and aggregates compare whole ones"
            )
            raise ValueError(f"{text}; leave it out, or take fedavg or fedbuff without levels")
        return value

    @property
    def trigger(self) -> Round | Buffer:
        return Round(late="discard") if self.buffer is None else Buffer(self.buffer)

    def problems(self, scenario: Setting) -> Problems:
        if scenario.model.norm == "local" or scenario.model.personal:
            key = "personal" if scenario.model.personal else "norm"
            text = f"must share all parameters for {self.name}, which averages slices of them; set personal: []"
            yield Problem(f"model.{key}", text)

    def weigh(self, arrivals: Arrivals, population: Population) -> Weights:
        return self.plain_weights(arrivals)

    def plain_weights(self, arrivals: Arrivals) -> list[float]:
        """Returns the weight of each update, with its factor of staleness."""
        if self.buffer is None:
            return self._shares(arrivals)
        factors = [self.staleness.of(arrival.staleness) for arrival in arrivals]
        if self.weights == "uniform":
            return [factor / self.buffer for factor in factors]
        return [share * factor for share, factor in zip(by_samples(arrivals), factors, strict=True)]

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
