"""Federated deep equilibrium learning: consensus on a representation, and heads that are fitted to it.

Le, T. D. Nguyen, T.-A. Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: Harnessing compact
global representations to enhance personalization, CIKM 2024, Algorithm 1. Differences: duals start at 0, where a random
start would be a constant force on every client; the initial models are equal, so the first average is left out; and a
client's BatchNorm statistics go with its theta_i. What the authors' code does otherwise are options. Any model will do,
deep equilibrium or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from raysim.algorithms.central import needs_personal
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.fedper import HEAD
from raysim.errors import Problem
from raysim.part import Count, NonNegative
from raysim.terms import Population, Record

if TYPE_CHECKING:
    from raysim.local import Local
    from raysim.local.model import Model
    from raysim.local.task import Task
    from raysim.scenario import Scenario


class FeDEQ(FedAvg):
    """ADMM for consensus on the shared part, theta, with a head of each client's own, w_i (Le et al. 2024).

    The head is `model.personal`. The global model is theta with the initial head. A client that was not picked yet
    predicts with the first model; one that is `data.unseen` fits a head to the last theta.
    """

    name: str = "fedeq"
    weights: Literal["samples", "uniform", "population", "scaled"] = "uniform"
    """As FedAvg's; samples in the authors' code for images."""
    rho: NonNegative = 0.01
    """Penalty of theta_i's distance from theta; the paper tries 0.001 to 10."""
    head_epochs: Count = 3
    """For the head, before `local.epochs` for theta_i."""
    server_rule: Literal["mean", "admm"] = "mean"
    """What the server averages. mean: theta_i, as in the paper, which is drawn to the first theta. admm:
    theta_i + lambda_i / rho, whose mean minimises the augmented Lagrangian."""
    head_on_global: bool = True
    """Fit the head to theta, as in the paper, not to theta_i, as in the authors' code."""
    reset_local_theta: bool = False
    """Start theta_i at theta, not where it was left. The authors' code does, unless the client also took part in the
    round before."""

    @model_validator(mode="after")
    def _rho_divides(self) -> Self:
        if self.server_rule == "admm" and self.rho == 0:
            raise ValueError("rho must be greater than 0 with `server_rule: admm`, which divides by it, got 0")
        return self

    def samples_seen(self, local: Local, samples: int) -> int:
        return local.for_epochs(self.head_epochs).total_samples(samples) + local.total_samples(samples)

    def problems(self, scenario: Scenario) -> Iterable[Problem]:
        return needs_personal(scenario)

    def init(self, model: Model, population: Population) -> Record:
        return {"w": model.shared}

    def client(self, model: Model) -> Record:
        return {"w": model.w, "buffers": model.buffers, "dual": model.shared * 0}  # w: theta_i, then w_i

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        theta, dual = message["w"], state["dual"]
        own = self.personal(task, message, state)
        on_global = task.received.replace(personal=own.personal)
        start = on_global if self.reset_local_theta else own
        head = self._fit_head(task, on_global if self.head_on_global else start).personal
        trained = task.train(
            start.replace(personal=head), part="shared", correction=lambda v: dual + self.rho * (v - theta)
        )
        moved = trained.model.shared - theta
        dual = dual + self.rho * moved
        sent = moved + dual / self.rho if self.server_rule == "admm" else moved
        after = {"w": trained.w, "buffers": trained.model.buffers, "dual": dual}
        return trained.send(delta=sent), after

    def _fit_head(self, task: Task, start: Model) -> Model:
        return task.train(start, part="personal", epochs=self.head_epochs, stream=HEAD).model

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        return task.received.replace(w=state["w"], buffers=state["buffers"])

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        fitted = self._fit_head(task, task.received)
        return {**state, "w": fitted.w, "buffers": task.received.buffers}
