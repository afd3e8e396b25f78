"""The algorithms, one a file.

A new one joins by its lines in `ALGORITHMS` and `AnyAlgorithm`; the contract tests then apply to it.
"""

from typing import Annotated

from pydantic import Field

from raysim.algorithms.contract import Arrival, Buffer, Central, Population, Record, Round, Trigger
from raysim.algorithms.fedasync import FedAsync
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.fedbuff import FedBuff
from raysim.part import Named

ALGORITHMS: tuple[type[Central], ...] = (FedAvg, FedAsync, FedBuff)

# What a scenario's `algorithm:` may be, besides a class of the user's own.
AnyAlgorithm = Annotated[FedAvg | FedAsync | FedBuff, Field(discriminator="name"), Named]

__all__ = [
    "ALGORITHMS",
    "AnyAlgorithm",
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
