"""Asynchronous federated optimisation.

Xie, Koyejo, Gupta, Asynchronous federated optimization, arXiv 1903.03934, Algorithm 1 and section 5.2. No difference:
arrivals are mixed in one by one, in order, also those of the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raysim.algorithms.central import Central
from raysim.algorithms.staleness import Polynomial, Staleness
from raysim.part import Fraction, NonNegative
from raysim.terms import Arrival, Buffer, Population, Record

if TYPE_CHECKING:
    from raysim.local.task import Task


class FedAsync(Central):
    """Every arrival is mixed into the model at once, a stale one with less weight (Xie et al. 2019)."""

    name: str = "fedasync"
    alpha: Fraction = 0.6
    """Mixing weight of a fresh update."""
    staleness: Staleness = Polynomial()
    """How much less a stale update weighs."""
    rho: NonNegative = 0.0
    """Proximal weight in the client's objective; the paper uses 0.005."""

    @property
    def trigger(self) -> Buffer:
        return Buffer(1)

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [self.alpha * self.staleness(a.staleness) for a in arrivals]

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = message["w"]
        pull = (lambda w: self.rho * (w - received)) if self.rho else None
        trained = task.train(task.received, correction=pull)
        return trained.send(w=trained.w), state

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Task) -> Record:
        (alpha,) = self.weigh(arrivals, task.population)
        buffers = (1 - alpha) * state["buffers"] + alpha * updates["buffers"]
        return {"w": (1 - alpha) * state["w"] + updates["w"], "buffers": buffers}
