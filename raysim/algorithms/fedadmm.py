"""Consensus ADMM with a server.

Zhou, Li, Federated learning via inexact ADMM, IEEE TPAMI 45, 2023, in the form of Algorithm 1 of Song, Wang, Zuazua,
FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning, arXiv 2402.13989v1, whose equations the numbers
in brackets are. Minimised is sum_i alpha_i f_i(u_i) under u_i = z (2.5), where alpha_i = n_i / n.

Differences: a client sends by how much beta_i u_i - lambda_i has changed, and the server adds that to its sum over all
clients, so that it needs no memory of each. Late updates are added when they arrive. A client that has not taken part
yet counts with u_i = z^0 and lambda_i = 0. BatchNorm's statistics are averaged over the updates of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from raysim.algorithms.central import Central
from raysim.part import Positive
from raysim.terms import Arrival, Population, Record, Round

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.model import Model
    from raysim.local.task import Task
    from raysim.local.train import Correction, Trained


class FedADMM(Central):
    """ADMM for consensus, with a fixed number of local steps (Zhou and Li 2023)."""

    name: str = "fedadmm"
    beta: Positive = 1.0
    """Penalty of a client's distance from z."""
    start: Literal["received", "own"] = "received"
    """Where a client starts: at the z that it received, or at its own last u_i."""
    aggregate: Literal["all", "selected"] = "all"
    """all: z minimises over all clients, with the last that is known of each (2.12). selected: over those of the step,
    weighted by n_i over their sum."""

    @property
    def trigger(self) -> Round:
        return Round(late="keep")

    def init(self, model: Model, population: Population) -> Record:
        return {"w": model.w, "term": self.beta * model.w}  # term: sum_i alpha_i (beta_i u_i - lambda_i)

    def client(self, model: Model) -> Record:
        return {"u": model.w, "dual": model.w * 0}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        whole = population.samples if self.aggregate == "all" else sum(a.samples for a in arrivals)
        return [a.samples / whole for a in arrivals]

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        beta = message["w"].new_tensor(self.beta)
        return self._work(task, message["w"], state, beta, beta)

    def _work(self, task: Task, z: Tensor, state: Record, beta: Tensor, last: Tensor) -> tuple[Record, Record]:
        """(2.8a) and (2.8b). beta: 0-d, the client's penalty; last: that of its update before."""
        dual = state["dual"]
        trained = self._solve(task, state, lambda u: beta * (u - z) - dual, beta)
        after = {"u": trained.w, "dual": dual - beta * (trained.w - z)}
        term = self._news(beta * after["u"] - after["dual"], last * state["u"] - dual)
        return trained.send(term=term, penalty=beta), after

    def _solve(self, task: Task, state: Record, pull: Correction, beta: Tensor) -> Trained:
        """(2.9). pull: the gradient of the subproblem without that of f_i."""
        return task.train(self._point(self.start, task, state), correction=pull)

    def _point(self, which: Literal["received", "own"], task: Task, state: Record) -> Model:
        return task.received if which == "received" else task.received.replace(w=state["u"])

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Task) -> Record:
        sums: Record = {key: self._sum(state[key], updates[key]) for key in ("term", "scale") if key in state}
        # scale: sum_i alpha_i beta_i, where penalties differ
        return {"w": sums["term"] / sums.get("scale", self.beta), **sums}

    def _news(self, now: Tensor, before: Tensor) -> Tensor:
        """What a client sends of a quantity that the server sums."""
        return now - before if self.aggregate == "all" else now

    def _sum(self, before: Tensor, news: Tensor) -> Tensor:
        """What the server makes of it."""
        return before + news if self.aggregate == "all" else news
