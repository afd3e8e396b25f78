"""The bases of algorithms whose clients train a part of the server's model: narrower ones, of which the server averages
what each one holds, or its first parts, with an exit after each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.moving import Moving
from raysim.algorithms.signatures import (
    Arrivals,
    Correction,
    Direction,
    Problems,
    ServerTask,
    Setting,
    Task,
    Tensor,
    Weights,
)
from raysim.algorithms.staleness import Buffered
from raysim.models.part import share_of
from raysim.parts.errors import Problem
from raysim.parts.part import Count
from raysim.terms import Depth, Population, Record

STATISTICS = "statistics"  # the entry of BatchNorm's statistics, (b,), which is averaged like parameters


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
            text = "must have no aggregate, because clients may hold parts of the model, and aggregates compare whole"
            raise ValueError(f"{text} ones; leave it out, or take fedavg or fedbuff without levels")
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


class Deep(Sliced):
    """An algorithm for models of several depths: a client of level p has the first ceil(p n) of n parts.

    Each part but the last, whose exit is the model's own last layer, ends with an exit: a dense layer on the mean of
    its outputs over pixels or tokens. Clients send differences `delta` and, with BatchNorm, `statistics`.
    """

    trains_exits: ClassVar[bool]
    """Whether a client trains the exits of all its parts, and predicts with their mean; or the last one only."""

    exits: Count = 4
    """Into how many parts (n) of about equally many layers the model is divided, each with an exit. 1: no division."""

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        if scenario.model.lora is not None or scenario.model.frozen:
            key = "lora" if scenario.model.lora is not None else "frozen"
            yield Problem(f"model.{key}", f"must be left out for {self.name}, which divides the model; leave it out")
        if scenario.model.name == "vector" and self.exits > 1:
            text = f"must be 1 for vector, which has no layers, got {self.exits}; set it to 1"
            yield Problem("algorithm.exits", text)

    def depth(self, level: float | None) -> Depth:
        first = self.exits if level is None else share_of(self.exits, level)
        return Depth(self.exits, first, every=level is None or self.trains_exits, mean=self.trains_exits)

    @abstractmethod
    def local(
        self, task: Task, message: Record, state: Record
    ) -> tuple[Callable[..., Tensor] | None, Correction | None]:
        """Returns the loss of a client, None for that of the data, and the correction of its gradients."""

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        loss, correction = self.local(task, message, state)
        trained = task.train(task.received, loss=loss, correction=correction)
        trained.log()
        statistics = trained.model.shared_buffers
        sent = {"delta": trained.w - message["w"]} | ({STATISTICS: statistics} if len(statistics) else {})
        return sent, state

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        direction, others = super().direction(state, arrivals, updates, task)
        if STATISTICS in updates:
            held, _ = task.held(arrivals, self.discounted(arrivals, self.weights), "buffers")
            others["buffers"] = (updates[STATISTICS] / held).where(held > 0, state["buffers"])
        return direction, others
