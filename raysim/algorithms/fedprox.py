"""FedAvg with a proximal term.

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, Federated optimization in heterogeneous networks, MLSys 2020, Algorithm 2.
Differences: every client does the same work, no gamma-inexact solution is asked for, and updates are averaged with any
weights of FedAvg, by default n_i / sum n_i, where the paper draws clients by size and averages uniformly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.algorithms.fedavg import FedAvg
from raysim.part import NonNegative
from raysim.terms import Record

if TYPE_CHECKING:
    from raysim.local.task import Task


class FedProx(FedAvg):
    """FedAvg whose clients are pulled towards the received model (Li et al. 2020)."""

    name: str = "fedprox"
    mu: NonNegative = 0.1
    """Of mu / 2 |w - w_t|^2 in the client's objective; the paper tunes it over 0.001 to 1. 0: FedAvg."""

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = message["w"]
        pull = (lambda w: self.mu * (w - received)) if self.mu else None
        trained = task.train(task.received, correction=pull)
        return trained.send(delta=trained.w - received), state
