"""Consensus ADMM with a server (FedADMM).

Zhou, Li, Federated learning via inexact ADMM, IEEE TPAMI 45, 2023, in the form of Algorithm 1 of Song, Wang, Zuazua,
FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning, arXiv 2402.13989v1. Numbers in brackets are
equations of the latter. The problem is to minimise sum_i alpha_i f_i(u_i) under u_i = z (2.5), where alpha_i = n_i / n.

Differences from the paper: a client sends by how much beta_i u_i - lambda_i has changed, and the server adds this to
its sum over all clients, so that it stores nothing for each client. Late updates are added when they arrive. A client
that has not taken part yet counts with u_i = z^0 and lambda_i = 0. BatchNorm's statistics are averaged over the updates
of a step.
"""

from typing import Literal

from raysim.algorithms.central import Central
from raysim.algorithms.signatures import Arrivals, Correction, Model, Population, Record, Round, Task, Tensor, Trained
from raysim.parts.part import Positive


class FedADMM(Central):
    """ADMM for consensus, with a fixed number of local steps (Zhou and Li 2023)."""

    name: str = "fedadmm"
    beta: Positive = 1.0
    """Penalty of the distance of a client's model u_i from the server's model z."""
    start: Literal["received", "own"] = "received"
    """Where a client's training starts. received: at the z that it received. own: at its own last u_i."""
    aggregate: Literal["all", "selected"] = "all"
    """Which clients z is computed from (2.12). all: all clients, each with its last known u_i and lambda_i. selected:
    the clients of the step only, each weighted by its share of their samples."""

    @property
    def trigger(self) -> Round:
        return Round(late="keep")

    @property
    def increments(self) -> tuple[str, ...]:
        return ("term",) if self.aggregate == "all" else ()

    def init(self, model: Model, population: Population) -> Record:
        return {"w": model.w, "term": self.beta * model.w}  # term: sum_i alpha_i (beta_i u_i - lambda_i)

    def client(self, model: Model) -> Record:
        return {"u": model.w, "dual": model.w * 0}

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        whole = population.samples if self.aggregate == "all" else sum(a.samples for a in arrivals)
        return [a.samples / whole for a in arrivals]

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        beta = message["w"].new_tensor(self.beta)
        return self._work(task, message["w"], state, beta, beta)

    def _work(self, task: Task, z: Tensor, state: Record, beta: Tensor, last: Tensor) -> tuple[Record, Record]:
        """Updates u_i (2.8a) and lambda_i (2.8b). beta, last: the client's penalty now and at its last update, 0-d."""
        dual = state["dual"]
        trained = self._solve(task, state, lambda u: beta * (u - z) - dual, beta)
        after = {"u": trained.w, "dual": dual - beta * (trained.w - z)}
        term = self._news(beta * after["u"] - after["dual"], last * state["u"] - dual)
        task.log(penalty=beta)
        return trained.send(term=term), after

    def _solve(self, task: Task, state: Record, pull: Correction, beta: Tensor) -> Trained:
        """Solves the subproblem by gradient steps (2.9). pull: the subproblem's gradient without that of f_i."""
        return task.train(self._point(self.start, task, state), correction=pull)

    def _point(self, which: Literal["received", "own"], task: Task, state: Record) -> Model:
        return task.received if which == "received" else task.received.replace(w=state["u"])

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        sums: Record = {key: self._sum(state[key], updates[key]) for key in ("term", "scale") if key in state}
        # An algorithm with a penalty for each client keeps the sum of these, sum_i alpha_i beta_i, as "scale".
        return {"w": sums["term"] / sums.get("scale", self.beta), **sums}

    def _news(self, now: Tensor, before: Tensor) -> Tensor:
        """Returns what a client sends so that the server can keep a sum over all clients: by how much its term
        changed."""
        return now - before if self.aggregate == "all" else now

    def _sum(self, before: Tensor, news: Tensor) -> Tensor:
        """Returns the server's sum over clients after a step."""
        return before + news if self.aggregate == "all" else news
