"""FedAvg whose server has momentum (FedAvgM).

Hsu, Qi, Brown, Measuring the effects of non-identical data distribution for federated visual classification, arXiv
1909.06335, section 4.3.

Differences from the paper: none. The paper tries momentum 0.7, 0.9, 0.97, 0.99 and 0.997, and server rates of 1 and
less.
"""

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.rules import Rule, ServerSGD


class FedAvgM(FedAvg):
    """FedAvg whose server adds a decaying sum of all directions so far (Hsu et al. 2019)."""

    name: str = "fedavgm"
    server: Rule = ServerSGD(momentum=0.9)
    """How the server moves; keys that are left out keep their values here."""
