"""Consensus ADMM with a server, whose clients solve their subproblems only as well as needed (FedADMM-In).

Song, Wang, Zuazua, FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning, arXiv 2402.13989v1,
Algorithm 2. Numbers in brackets are its equations. A client stops when the norm of its subproblem's gradient e_i (3.6)
has fallen to sigma_i times its initial value, where 0 < sigma_i < sqrt(2) / (sqrt(2) + sqrt(beta_i / c_i)) (3.9). As in
the authors' code, sigma_i is 0.999 times that bound, and delta is 0.01. `local.epochs` or `local.steps` is the limit.

Differences from the paper: those of `fedadmm`. With mini-batches, e_i is measured before each epoch only.
"""

from typing import ClassVar, Literal

from raysim.algorithms.fedadmm import FedADMM
from raysim.algorithms.signatures import Arrivals, Correction, Record, Task, Tensor, Trained
from raysim.parts.part import NonNegative, Positive


class FedADMMIn(FedADMM):
    """FedADMM whose clients stop once their subproblem is solved well enough (Song et al. 2024)."""

    stops_early: ClassVar[bool] = True

    name: str = "fedadmm_in"
    convexity: Positive | Literal["beta"] = 1.0
    """How strongly convex each client's loss is taken to be (c_i). beta: c_i is the client's penalty beta_i, which
    makes sigma_i 0.585."""
    residual: Literal["received", "own"] = "received"
    """Where the initial value of e_i is measured. received: at the received z (Remark 3.4). own: at the client's own
    last u_i (3.7)."""
    memory: NonNegative = 0.01
    """Weight delta of the last z, where the new one has weight 1 (3.1). 0: the new one alone."""

    def _solve(self, task: Task, state: Record, pull: Correction, beta: Tensor) -> Trained:
        ratio = 1.0 if isinstance(self.convexity, str) else beta / self.convexity
        sigma = 0.999 * 2**0.5 / (2**0.5 + ratio**0.5)
        start = self._point(self.start, task, state)
        if self.residual == self.start:  # because training measures it at its start anyway
            return task.train(start, correction=pull, tolerance=sigma, relative=True)
        at = self._point(self.residual, task, state)
        return task.train(start, correction=pull, tolerance=sigma * task.residual(at, correction=pull))

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        after = super().step(state, arrivals, updates, task)
        return {**after, "w": (after["w"] + self.memory * state["w"]) / (1 + self.memory)}
