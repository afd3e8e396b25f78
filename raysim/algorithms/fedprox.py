"""Federated averaging with a proximal term (FedProx).

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, Federated optimization in heterogeneous networks, MLSys 2020, Algorithm 2.

Differences from the paper: every client trains as `local` says, and not until its solution is gamma-inexact. Updates
are averaged with any weights of FedAvg, by default n_i / sum n_i, where the paper picks clients with probabilities
proportional to n_i and averages uniformly.
"""

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Record, Task
from raysim.parts.part import NonNegative


class FedProx(FedAvg):
    """FedAvg whose clients are pulled towards the received model (Li et al. 2020)."""

    name: str = "fedprox"
    mu: NonNegative = 0.1
    """Weight of the proximal term mu / 2 |w - w_t|^2 in a client's objective, where w_t is the received model. The
    paper tunes it over 0.001 to 1. 0: FedAvg."""

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = message["w"]
        pull = (lambda w: self.mu * (w - received)) if self.mu else None
        trained = task.train(task.received, correction=pull)
        return trained.send(delta=trained.w - received), state
