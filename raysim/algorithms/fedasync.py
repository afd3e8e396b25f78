"""Asynchronous federated optimisation (FedAsync).

Xie, Koyejo, Gupta, Asynchronous federated optimization, arXiv 1903.03934, Algorithm 1 and section 5.2.

Differences from the paper: none. Arrivals are mixed in one by one and in order, even those of the same moment.
"""

from typing import ClassVar, Literal

from raysim.algorithms.central import Central
from raysim.algorithms.signatures import Arrivals, Buffer, Population, Record, Task
from raysim.algorithms.staleness import Polynomial, Staleness
from raysim.parts.part import Fraction, NonNegative


class FedAsync(Central):
    """Every update is mixed into the model as soon as it arrives; stale updates weigh less (Xie et al. 2019)."""

    trigger: ClassVar[Buffer] = Buffer(1)
    sends: ClassVar[Literal["difference", "model"]] = "model"

    name: str = "fedasync"
    alpha: Fraction = 0.6
    """Mixing weight of an update without staleness (alpha)."""
    staleness: Staleness = Polynomial()
    """The factor S(s) of an update's weight, for its staleness s."""
    rho: NonNegative = 0.0
    """Weight of the proximal term rho / 2 |w - w_t|^2 in a client's objective, where w_t is the received model. 0:
    none. The paper uses 0.005."""

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return [self.alpha * self.staleness.of(a.staleness) for a in arrivals]

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = message["w"]
        pull = (lambda w: self.rho * (w - received)) if self.rho else None
        trained = task.train(task.received, correction=pull)
        return trained.send(w=trained.w), state

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        (alpha,) = self.weigh(arrivals, task.population)
        buffers = (1 - alpha) * state["buffers"] + alpha * updates["buffers"]
        return {"w": (1 - alpha) * state["w"] + updates["w"], "buffers": buffers}
