"""Consensus-based multi-hop federated distillation.

Taya, Nishio, Morikura, Yamamoto, Decentralized and model-free federated learning: Consensus-based distillation in
function space, IEEE TSIPN 8, 2022; (23) of Taya, Nishiyama, Sezaki, Function-space ADMM for decentralized federated
learning: A control theoretic perspective, arXiv 2605.09356.
Differences: as in the latter, the squared error is summed over a mini-batch and its outputs, where the authors' code
takes the mean: its learning rate lr is rho = 2 lr / (batch size · classes) here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.algorithms.distillation import Distillation
from raysim.part import Positive
from raysim.terms import Record

if TYPE_CHECKING:
    from torch import Tensor


class CMFD(Distillation):
    """Peers learn the mean of their neighbours' outputs on public inputs (Taya et al. 2022)."""

    name: str = "cmfd"
    rho: Positive = 0.0016  # of the authors' code on a ring: lr 0.4, batches of 50, 10 classes

    def target(self, draft: Record, own: Tensor, mean: Tensor) -> tuple[Tensor, Record]:
        return mean, {}
