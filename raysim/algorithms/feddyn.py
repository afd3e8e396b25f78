"""Federated learning with dynamic regularisation (FedDyn).

Acar, Zhao, Matas, Mattina, Whatmough, Saligrama, Federated learning based on dynamic regularization, ICLR 2021,
Algorithm 1.

Differences from the paper: clients minimise their objective as `local` says, and not exactly. Their gradients g_i, and
the server's h, start at 0, as in the paper.
"""

from typing import ClassVar

from raysim.algorithms.fedavg import FedAvg, Weights
from raysim.algorithms.signatures import Arrivals, Direction, Model, Population, Record, ServerTask, Task
from raysim.parts.part import Positive


class FedDyn(FedAvg):
    """FedAvg whose clients' objectives follow the gradients at their own last models (Acar et al. 2021)."""

    increments: ClassVar[tuple[str, ...]] = ("delta",)  # h is their sum, as clients' gradients are of what they trained

    name: str = "feddyn"
    weights: Weights = "uniform"
    """How updates are weighted; `fedavg` explains the choices."""
    alpha: Positive = 0.01
    """Weight alpha of the term alpha / 2 |w - w_t|^2 in a client's objective. The paper tunes it over 0.001 to 0.1."""

    def init(self, model: Model, population: Population) -> Record:
        return {**self.starting(model.w), "h": model.w * 0}

    def client(self, model: Model) -> Record:
        return {"gradient": model.w * 0}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received, gradient = message["w"], state["gradient"]
        trained = task.train(task.received, correction=lambda w: self.alpha * (w - received) - gradient)
        delta = trained.w - received
        return trained.send(delta=delta), {"gradient": gradient - self.alpha * delta}

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        delta, others = super().direction(state, arrivals, updates, task)
        if delta is None:
            return None, others
        h = state["h"] - self.alpha * len(arrivals) / task.population.clients * delta
        return delta - h / self.alpha, {**others, "h": h}
