"""Consensus ADMM with a server, whose clients solve their subproblems no better than they need to.

Song, Wang, Zuazua, FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning, arXiv 2402.13989v1,
Algorithm 2; the numbers in brackets are its equations. A client stops when the gradient e_i of its subproblem (3.6)
has fallen to sigma_i times what it was, where 0 < sigma_i < sqrt(2) / (sqrt(2) + sqrt(beta_i / c_i)) (3.9). sigma_i is
0.999 of that bound, and delta 0.01, as in the authors' code. `local.epochs` or `local.steps` are the most that is done.

Differences: those of fedadmm. Where batches are smaller than all samples, e_i is looked at before each epoch only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from raysim.algorithms.fedadmm import FedADMM
from raysim.part import NonNegative, Positive
from raysim.terms import Arrival, Record

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.task import Task
    from raysim.local.train import Correction, Trained


class FedADMMIn(FedADMM):
    """FedADMM whose clients stop once their subproblem is solved well enough (Song et al. 2024)."""

    name: str = "fedadmm_in"
    convexity: Positive | Literal["beta"] = 1.0
    """c_i: a client's loss is taken to be so strongly convex. beta: as its penalty is, which makes sigma_i 0.585."""
    residual: Literal["received", "own"] = "received"
    """Where e_i is measured that sigma_i is a fraction of: at the received z (Remark 3.4), or at the client's own last
    u_i (3.7)."""
    memory: NonNegative = 0.01
    """delta: the weight of the last z against the new one (3.1)."""

    @property
    def stops_early(self) -> bool:
        return True

    def _solve(self, task: Task, state: Record, pull: Correction, beta: Tensor) -> Trained:
        ratio = 1.0 if isinstance(self.convexity, str) else beta / self.convexity
        sigma = 0.999 * 2**0.5 / (2**0.5 + ratio**0.5)
        start = self._point(self.start, task, state)
        if self.residual == self.start:  # training measures it there anyway
            return task.train(start, correction=pull, tolerance=sigma, relative=True)
        at = self._point(self.residual, task, state)
        return task.train(start, correction=pull, tolerance=sigma * task.residual(at, correction=pull))

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Task) -> Record:
        after = super().step(state, arrivals, updates, task)
        return {**after, "w": (after["w"] + self.memory * state["w"]) / (1 + self.memory)}
