"""Personalised federated learning with Moreau envelopes (pFedMe).

T. Dinh, Tran, Nguyen, Personalized federated learning with Moreau envelopes, NeurIPS 2020, Algorithm 1.

Differences from the paper: each of the R local rounds minimises f + lam / 2 |theta - w|^2 by `steps` mini-batches, and
not by many steps on one. As in the authors' code, each minimisation starts from the theta of the one before it, and the
first one of a round from the received model; the paper leaves the starting point open.
"""

from typing import ClassVar, Literal

from raysim.algorithms.fedavg import FedAvg, Weights
from raysim.algorithms.signatures import Arrivals, Direction, Local, Model, Record, ServerTask, Task, Tensor
from raysim.parts.part import Count, Positive


class PFedMe(FedAvg):
    """FedAvg of models that clients pull towards personal ones (T. Dinh et al. 2020).

    A client predicts with its personal model theta_i; before it is first picked, with the initial model. One that is
    `data.unseen` trains a personal model from the global one.
    """

    own_model: ClassVar[dict[str, str]] = {"w": "w", "buffers": "buffers"}

    name: str = "pfedme"
    weights: Weights = "uniform"
    """How updates are weighted; `fedavg` explains the choices."""
    lam: Positive = 15.0
    """Weight lambda of the term lambda / 2 |theta - w|^2 in the objective of a personal model. The paper takes 15 and
    more."""
    lr: Positive = 0.005
    """Rate eta with which a client's copy of the global model moves: w = w - eta lambda (w - theta)."""
    local_rounds: Count = 20
    """How often a client trains theta and then moves w, each time it takes part (R)."""
    steps: Count = 5
    """Mini-batches of each training of theta (K)."""
    start: Literal["received", "own"] = "received"
    """Where a client's first training of theta in a round starts. received: at the global model, as in the authors'
    code. own: at the client's theta of the last round in which it took part."""
    beta: Positive = 1.0
    """Factor of the server's step (beta)."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return self.local_rounds * local.model_copy(update={"steps": self.steps}).total_samples(samples)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = w = message["w"]
        theta = task.received if self.start == "received" else self.own(task, state)
        for round in range(self.local_rounds):
            theta = self._envelope(task, theta, w, round)
            w = w - self.lr * self.lam * (w - theta.w)
        update = {"delta": w - received, "buffers": theta.buffers}
        return update, self.state_of(theta)

    def _envelope(self, task: Task, theta: Model, w: Tensor, round: int) -> Model:
        """Returns theta after training on f + lam / 2 |theta - w|^2."""
        pull = lambda v: self.lam * (v - w)  # noqa: E731 - as corrections are written elsewhere
        return task.train(theta, steps=self.steps, correction=pull, stream=round).model

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        delta, others = super().direction(state, arrivals, updates, task)
        return (None if delta is None else self.beta * delta), others

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        theta = task.received
        for round in range(self.local_rounds):
            theta = self._envelope(task, theta, message["w"], round)
        return self.state_of(theta)
