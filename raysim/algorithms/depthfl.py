"""Clients with the first layers of the model, whose exits learn from each other (DepthFL).

Kim, Yu, Kim, Moon, DepthFL: Depthwise federated learning for heterogeneous clients, ICLR 2023, Algorithm 1. A client of
level p trains the first ceil(p n) of n parts of the model, with the exits of all of them: each on labels and, by
self-distillation, on what the others predict. Each parameter becomes the mean over the clients that hold it. The model
predicts with the mean of the logits of its exits.

Differences from the paper: an exit is a dense layer on the mean over pixels or tokens, where the paper's have
convolutions as bottlenecks. The weight of self-distillation rises as in the baseline in Flower, by whose code dynamic
regularisation (FedDyn) is on, too; it is element by element, over the clients that hold a parameter. The server adds
means of differences, and so can step by a buffer, too, which is new.
"""

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from raysim.algorithms.central import needs_labels
from raysim.algorithms.signatures import (
    Arrivals,
    Correction,
    Direction,
    Model,
    Problems,
    ServerTask,
    Setting,
    Task,
    Tensor,
)
from raysim.algorithms.sliced import Deep
from raysim.parts.part import Count, NonNegative
from raysim.terms import Population, Record

H = "h"  # the entry of FedDyn's sum in the server's state


class DepthFL(Deep):
    """Models of several depths, whose exits teach each other (Kim et al. 2023)."""

    trains_exits: ClassVar[bool] = True

    name: str = "depthfl"
    weights: Literal["uniform", "samples"] = "uniform"
    """How the clients that hold a parameter are weighted: alike, or by their numbers of samples."""
    distil: bool = True
    """Whether exits learn from each other, too: with a weight that rises from 0.0067 to 1."""
    rising: Count = 300
    """In how many steps of the server the weight of this self-distillation rises to 1."""
    alpha: NonNegative = 0.1
    """Weight of dynamic regularisation, as in feddyn. 0: none."""

    @property
    def increments(self) -> tuple[str, ...]:
        return ("delta",) if self.alpha else ()

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        if self.distil and self.exits > 1:
            yield from needs_labels(scenario)

    def init(self, model: Model, population: Population) -> Record:
        return {**self.starting(model.w), **({H: model.w * 0} if self.alpha else {})}

    def client(self, model: Model) -> Record:
        return {"gradient": model.w * 0} if self.alpha else {}

    def local(
        self, task: Task, message: Record, state: Record
    ) -> tuple[Callable[..., Tensor] | None, Correction | None]:
        weight = rise(task.moment.version / self.rising) if self.distil else 0.0

        def loss(outputs: Tensor, targets: Tensor) -> Tensor:
            exits = task.logits()
            value = sum((task.loss(one, targets) for one in exits[1:]), task.loss(exits[0], targets))
            return value + weight * disagreement(exits) if weight and len(exits) > 1 else value

        correction = (lambda w: self.alpha * (w - message["w"]) - state["gradient"]) if self.alpha else None
        return (loss if self.exits > 1 else None), correction

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        sent, _ = super().update(task, message, state)
        return sent, {"gradient": state["gradient"] - self.alpha * sent["delta"]} if self.alpha else {}

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        delta, others = super().direction(state, arrivals, updates, task)
        if delta is None or not self.alpha:
            return delta, others
        held, _ = task.held(arrivals, [1.0] * len(arrivals))
        h = state[H] - self.alpha / task.population.clients * held * delta
        return (delta - h / self.alpha).where(held > 0, delta), {**others, H: h}


def rise(share: float) -> float:
    """Returns the weight of self-distillation after a share of the steps in which it rises."""
    return math.exp(-5 * (1 - min(share, 1.0)) ** 2)


def disagreement(exits: Sequence[Tensor]) -> Tensor:
    """Returns how far exits are from what the others predict, 0-d: the sum over exits of the mean Kullback-Leibler
    divergence from each other one, whose predictions take no gradient. exits: the logits of each, (n, ..., classes)."""
    logs = [one.log_softmax(-1) for one in exits]
    known = [log.detach() for log in logs]
    pairs = [(mine, other) for i, mine in enumerate(logs) for j, other in enumerate(known) if i != j]
    divergences = [(other.exp() * (other - mine)).sum(-1).mean() for mine, other in pairs]
    return sum(divergences[1:], divergences[0]) / (len(exits) - 1)
