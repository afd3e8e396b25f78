"""Consensus ADMM with a server, with inexact subproblems and adaptive penalties (FedADMM-InSa).

Song, Wang, Zuazua, FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning, arXiv 2402.13989v1,
Algorithm 3. Numbers in brackets are its equations. The paper's primal residual p_i (3.14a) is how far a client moved,
times its penalty, and its dual residual d_i (3.14b) is how far the client is from z. mu = 5 and tau = 2 are those of
the authors' code.

Differences from the paper: those of `fedadmm_in`. An update also holds the change of the client's penalty, which takes
4 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from raysim.algorithms.fedadmm_in import FedADMMIn
from raysim.terms import Population, Record

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.task import Task

Factor = Annotated[float, Field(ge=1)]


class FedADMMInSa(FedADMMIn):
    """FedADMM-In whose clients also adapt their penalties, which start at `beta` (Song et al. 2024)."""

    name: str = "fedadmm_insa"
    mu: Factor = 5.0
    """A client's penalty changes if one of p_i and d_i is more than mu times the other (3.15)."""
    tau: Factor = 2.0
    """The factor by which a penalty grows or shrinks (3.15). 1: it never changes."""

    def init(self, model: Model, population: Population) -> Record:
        scale = model.w.new_tensor(self.beta)  # sum_i alpha_i beta_i
        return {**super().init(model, population), "scale": scale}

    def client(self, model: Model) -> Record:
        beta = model.w.new_tensor(self.beta)
        return {
            **super().client(model),
            "beta": beta,
            "last": beta,
        }  # the penalty of the next update, and that of the last one

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        import torch

        beta, last = state["beta"], state["last"]
        update, after = self._work(task, message["w"], state, beta, last)
        p = beta * (after["u"] - state["u"]).norm()
        d = (after["u"] - message["w"]).norm()
        adapted = torch.where(self.mu * d < p, beta / self.tau, beta)
        adapted = torch.where(self.mu * p < d, beta * self.tau, adapted)
        return {**update, "scale": self._news(beta, last)}, {**after, "beta": adapted, "last": beta}
