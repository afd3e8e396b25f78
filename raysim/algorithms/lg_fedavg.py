"""Federated averaging of the global part under local representations (LG-FedAvg).

Liang, Liu, Ziyin, Allen, Auerbach, Brent, Salakhutdinov, Morency, Think locally, act globally: federated learning with
local and global representations, NeurIPS 2019 workshop, arXiv 2001.01523, Algorithm 1.

Differences from the paper: it is for single models; a new client does not average the predictions of all others.
"""

from raysim.algorithms.fedper import FedPer


class LGFedAvg(FedPer):
    """FedPer whose clients keep representations, which `model.personal` names, and no heads (Liang et al. 2019)."""

    name: str = "lg_fedavg"
