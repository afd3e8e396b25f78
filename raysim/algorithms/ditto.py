"""A personal model beside the global one.

Li, Hu, Beirami, Smith, Ditto: Fair and robust federated learning through personalization, ICML 2021, Algorithm 1. No
difference: as in the authors' code, the same mini-batches train both models, and updates are averaged uniformly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from raysim.algorithms.fedavg import FedAvg
from raysim.part import NonNegative
from raysim.terms import Record

if TYPE_CHECKING:
    from raysim.local import Local
    from raysim.local.model import Model
    from raysim.local.task import Task


class Ditto(FedAvg):
    """FedAvg, beside which clients train models of their own that are pulled towards the received (Li et al. 2021).

    A client that was not picked yet predicts with the first model, and one that is `data.unseen` with the global one.
    """

    name: str = "ditto"
    weights: Literal["samples", "uniform", "population", "scaled"] = "uniform"
    """As FedAvg's."""
    lam: NonNegative = 1.0
    """lambda, of lambda / 2 |v - w_t|^2 in the objective of the client's own model v; the paper tries 0.1, 1 and 2."""
    start: Literal["own", "global"] = "own"
    """Where v starts: from where it was left, or, as in the code of FeDEQ, from the update of the global model."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return 2 * local.total_samples(samples)

    def client(self, model: Model) -> Record:
        return {"w": model.w, "buffers": model.buffers}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = message["w"]
        trained = task.train(task.received)
        start = self.personal(task, message, state) if self.start == "own" else trained.model
        own = task.train(start, correction=lambda v: self.lam * (v - received))
        return trained.send(delta=trained.w - received), {"w": own.w, "buffers": own.model.buffers}

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        return task.received.replace(w=state["w"], buffers=state["buffers"])

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return {"w": task.received.w, "buffers": task.received.buffers}
