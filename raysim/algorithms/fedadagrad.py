"""FedAvg whose server takes Adagrad steps (FedAdagrad).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, Adaptive federated optimization, ICLR 2021, Algorithm 2.

Differences from the paper: none. The paper weights updates alike in its analysis and by samples in its experiments, as
`weights` does; it tunes `lr` and `eps` of the server for each task.
"""

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.rules import Rule, ServerAdagrad


class FedAdagrad(FedAvg):
    """FedAvg whose server divides by the root of all squared directions so far (Reddi et al. 2021)."""

    name: str = "fedadagrad"
    server: Rule = ServerAdagrad()
    """How the server moves; keys that are left out keep their values here. The paper tunes `lr` over powers of the root
    of 10."""
