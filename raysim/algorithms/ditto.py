"""Ditto: a personal model beside the global one.

Li, Hu, Beirami, Smith, Ditto: Fair and robust federated learning through personalization, ICML 2021, Algorithm 1.

Differences from the paper: none. As in the authors' code, the same mini-batches train both models, and updates are
averaged uniformly.
"""

from typing import ClassVar, Literal

from raysim.algorithms.fedavg import FedAvg, Weights
from raysim.algorithms.signatures import Local, Record, Task
from raysim.parts.part import NonNegative


class Ditto(FedAvg):
    """FedAvg, and each client also trains its own model, which is pulled towards the global one (Li et al. 2021).

    A client predicts with its own model; before it is first picked, with the initial one. A client that is
    `data.unseen` predicts with the global model.
    """

    own_model: ClassVar[dict[str, str]] = {"w": "w", "buffers": "buffers"}

    name: str = "ditto"
    weights: Weights = "uniform"
    """How updates are weighted; `fedavg` explains the choices."""
    lam: NonNegative = 1.0
    """Weight lambda of the proximal term lambda / 2 |v - w_t|^2 in the objective of a client's own model v, where w_t
    is the received model. The paper tries 0.1, 1 and 2."""
    start: Literal["own", "global"] = "own"
    """Where training of v starts. own: where it ended last. global: at the global model as the client has just trained
    it, as in the code of FeDEQ."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return 2 * local.total_samples(samples)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = message["w"]
        trained = task.train(task.received)
        start = self.own(task, state) if self.start == "own" else trained.model
        own = task.train(start, correction=lambda v: self.lam * (v - received))
        return trained.send(delta=trained.w - received), self.state_of(own.model)

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return self.state_of(task.received)
