"""ADMM without a server, on functions (FedF-ADMM).

Taya, Nishiyama, Sezaki, Function-space ADMM for decentralized federated learning: A control theoretic perspective,
arXiv 2605.09356, Algorithm 1. Numbers in brackets are its equations.

Differences from the paper: none. The order of steps is that of (16) to (18): first the multiplier, then the target,
both from this round's outputs. The paper does not say whether f(x) is probabilities or logits; `outputs` chooses.
"""

from raysim.algorithms.distillation import Distillation
from raysim.algorithms.signatures import Record, Task, Tensor
from raysim.parts.part import Fraction, Positive


class FedFADMM(Distillation):
    """ADMM on functions: peers agree on outputs for public inputs, with a multiplier for each (Taya et al. 2026).

    As long as no message is lost, the multipliers, weighted by the peers' numbers of neighbours, sum to zero.
    """

    name: str = "fedf_admm"
    rho: Positive = 0.003  # the paper recommends 0.001 to 0.01
    nu: Fraction = 0.01
    """Stabilisation coefficient: the share of a multiplier that leaks away in each round (nu). 0: plain ADMM."""

    def init(self, task: Task) -> Record:
        one = task.predict(task.received, task.public[:1])
        return {**super().init(task), "multiplier": one.new_zeros(len(task.public), *one.shape[1:])}

    def target(self, draft: Record, own: Tensor, mean: Tensor) -> tuple[Tensor, Record]:
        multiplier = (1 - self.nu) * draft["multiplier"] + own - mean  # (13)
        return mean - multiplier, {"multiplier": multiplier}
