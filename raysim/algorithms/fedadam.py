"""FedAvg whose server takes Adam steps (FedAdam).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, Adaptive federated optimization, ICLR 2021, Algorithm 2.

Differences from the paper: none. The paper weights updates alike in its analysis and by samples in its experiments, as
`weights` does; it tunes `lr` and `eps` of the server for each task.
"""

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.rules import Rule, ServerAdam


class FedAdam(FedAvg):
    """FedAvg whose server takes Adam steps without bias correction (Reddi et al. 2021)."""

    name: str = "fedadam"
    server: Rule = ServerAdam()
    """How the server moves; keys that are left out keep their values here. The paper tunes `lr` over powers of the root
    of 10."""
