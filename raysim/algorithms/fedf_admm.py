"""ADMM without a server, on functions.

Taya, Nishiyama, Sezaki, Function-space ADMM for decentralized federated learning: A control theoretic perspective,
arXiv 2605.09356, Algorithm 1, whose equations the numbers in brackets are. The order of its steps is that of (16) to
(18): the multiplier first, then the target, both of this round's outputs. No difference; f(x) may be probabilities or
logits, of which the paper does not say which it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.algorithms.distillation import Distillation
from raysim.part import Fraction, Positive
from raysim.terms import Record

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.task import Task


class FedFADMM(Distillation):
    """ADMM on functions: multipliers of outputs on public inputs make the targets of distillation (Taya et al. 2026).

    Where messages are lost, the multipliers, weighted by numbers of neighbours, no longer sum to zero.
    """

    name: str = "fedf_admm"
    rho: Positive = 0.003  # the paper recommends 0.001 to 0.01
    nu: Fraction = 0.01
    """Stabilisation coefficient: the share of the multiplier that leaks away in a round. 0: plain ADMM."""

    def init(self, task: Task) -> Record:
        one = task.predict(task.received, task.public[:1])
        multiplier = one.new_zeros(len(task.public), *one.shape[1:])
        return {"w": task.received.w, "buffers": task.received.buffers, "multiplier": multiplier}

    def target(self, draft: Record, own: Tensor, mean: Tensor) -> tuple[Tensor, Record]:
        multiplier = (1 - self.nu) * draft["multiplier"] + own - mean  # (13)
        return mean - multiplier, {"multiplier": multiplier}
