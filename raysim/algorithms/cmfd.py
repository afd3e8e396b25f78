"""Consensus-based multi-hop federated distillation (CMFD).

Taya, Nishio, Morikura, Yamamoto, Decentralized and model-free federated learning: Consensus-based distillation in
function space, IEEE TSIPN 8, 2022, in the form of equation (23) of Taya, Nishiyama, Sezaki, Function-space ADMM for
decentralized federated learning: A control theoretic perspective, arXiv 2605.09356.

Differences from the paper: as in the second paper, the squared error is summed over the inputs and outputs of a
mini-batch, where the code of the first takes the mean. A learning rate lr of that code is rho = 2 lr / (batch size ·
classes) here.
"""

from raysim.algorithms.distillation import Distillation
from raysim.algorithms.signatures import Record, Tensor
from raysim.parts.part import Positive


class CMFD(Distillation):
    """Peers learn the mean of their neighbours' outputs on public inputs (Taya et al. 2022)."""

    name: str = "cmfd"
    rho: Positive = 0.0008  # lr 0.4 of the authors' code on a ring, with batches of 100 and 10 classes

    def target(self, draft: Record, own: Tensor, mean: Tensor) -> tuple[Tensor, Record]:
        return mean, {}
