"""The algorithms, one a file.

A new one joins by its lines in `ALGORITHMS` (or, without a server, in `PEERS`) and in `AnyAlgorithm`; the contract
tests then apply to it.
"""

from typing import Annotated

from pydantic import Field

from raysim.algorithms.ca2fl import CA2FL
from raysim.algorithms.center import Center
from raysim.algorithms.central import Central
from raysim.algorithms.cmfd import CMFD
from raysim.algorithms.d_psgd import DPSGD
from raysim.algorithms.dec_fed_avg import DecFedAvg
from raysim.algorithms.dec_fed_prox import DecFedProx
from raysim.algorithms.dfed_admm import DFedADMM
from raysim.algorithms.dfed_avgm import DFedAvgM
from raysim.algorithms.ditto import Ditto
from raysim.algorithms.fadas import FADAS
from raysim.algorithms.fed_ft import FedFT
from raysim.algorithms.fedadmm import FedADMM
from raysim.algorithms.fedadmm_in import FedADMMIn
from raysim.algorithms.fedadmm_insa import FedADMMInSa
from raysim.algorithms.fedasync import FedAsync
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.fedavg_ft import FedAvgFT
from raysim.algorithms.fedbuff import FedBuff
from raysim.algorithms.feddf import FedDF
from raysim.algorithms.feddle import Feddle
from raysim.algorithms.fedeq import FeDEQ
from raysim.algorithms.fedf_admm import FedFADMM
from raysim.algorithms.fedper import FedPer
from raysim.algorithms.fedprox import FedProx
from raysim.algorithms.fedrep import FedRep
from raysim.algorithms.hfcl import HFCL
from raysim.algorithms.knn_per import KNNPer
from raysim.algorithms.local_only import LocalOnly
from raysim.algorithms.peer import Inbox, Peer
from raysim.algorithms.scaffold import Scaffold
from raysim.part import Named
from raysim.terms import Arrival, Buffer, Population, Record, Round, Trigger

ALGORITHMS: tuple[type[Central], ...] = (
    FedAvg,
    FedProx,
    Scaffold,
    FedAsync,
    FedBuff,
    CA2FL,
    FADAS,
    FedFT,
    HFCL,
    FedDF,
    Feddle,
    Center,
    FedADMM,
    FedADMMIn,
    FedADMMInSa,
    LocalOnly,
    FedAvgFT,
    Ditto,
    FedPer,
    FedRep,
    KNNPer,
    FeDEQ,
)
PEERS: tuple[type[Peer], ...] = (
    DecFedAvg,
    DPSGD,
    DecFedProx,
    DFedAvgM,
    DFedADMM,
    CMFD,
    FedFADMM,
)

# What a scenario's `algorithm:` may be, besides a class of the user's own.
AnyAlgorithm = Annotated[
    FedAvg
    | FedProx
    | Scaffold
    | FedAsync
    | FedBuff
    | CA2FL
    | FADAS
    | FedFT
    | HFCL
    | FedDF
    | Feddle
    | Center
    | FedADMM
    | FedADMMIn
    | FedADMMInSa
    | LocalOnly
    | FedAvgFT
    | Ditto
    | FedPer
    | FedRep
    | KNNPer
    | FeDEQ
    | DecFedAvg
    | DPSGD
    | DecFedProx
    | DFedAvgM
    | DFedADMM
    | CMFD
    | FedFADMM,
    Field(discriminator="name"),
    Named,
]

__all__ = [
    "ALGORITHMS",
    "CA2FL",
    "CMFD",
    "DPSGD",
    "FADAS",
    "HFCL",
    "PEERS",
    "AnyAlgorithm",
    "Arrival",
    "Buffer",
    "Center",
    "Central",
    "DFedADMM",
    "DFedAvgM",
    "DecFedAvg",
    "DecFedProx",
    "Ditto",
    "FeDEQ",
    "FedADMM",
    "FedADMMIn",
    "FedADMMInSa",
    "FedAsync",
    "FedAvg",
    "FedAvgFT",
    "FedBuff",
    "FedDF",
    "FedFADMM",
    "FedFT",
    "FedPer",
    "FedProx",
    "FedRep",
    "Feddle",
    "Inbox",
    "KNNPer",
    "LocalOnly",
    "Peer",
    "Population",
    "Record",
    "Round",
    "Scaffold",
    "Trigger",
]
