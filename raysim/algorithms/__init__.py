"""The algorithms, one a file. A new one joins by its line in `ALGORITHMS`; the contract tests then apply to it."""

from raysim.algorithms.contract import Arrival, Buffer, Central, Population, Record, Round, Trigger
from raysim.algorithms.fedasync import FedAsync
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.fedbuff import FedBuff

ALGORITHMS: tuple[type[Central], ...] = (FedAvg, FedAsync, FedBuff)

__all__ = [
    "ALGORITHMS",
    "Arrival",
    "Buffer",
    "Central",
    "FedAsync",
    "FedAvg",
    "FedBuff",
    "Population",
    "Record",
    "Round",
    "Trigger",
]
