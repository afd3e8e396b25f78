"""All algorithms, each in its own file.

To add one, with a server or without, import it here. That puts it into `ALGORITHMS`, so scenario files can name it,
`raysim list` shows it, and the contract tests check it.

An algorithm and its file have the name that the paper gives it, in lower case. Hyphens, plus signs and spaces become an
underscore: D-PSGD is d_psgd, Fed+FT is fed_ft, and DFedAvgM is dfedavgm.
"""

from raysim.algorithms.ace import ACE as ACE
from raysim.algorithms.ad_psgd import ADPSGD as ADPSGD
from raysim.algorithms.aggregates import Aggregate as Aggregate
from raysim.algorithms.apfl import APFL as APFL
from raysim.algorithms.ca2fl import CA2FL as CA2FL
from raysim.algorithms.center import Center as Center
from raysim.algorithms.central import Central as Central
from raysim.algorithms.cmfd import CMFD as CMFD
from raysim.algorithms.d_psgd import DPSGD as DPSGD
from raysim.algorithms.decfedavg import DecFedAvg as DecFedAvg
from raysim.algorithms.decfedprox import DecFedProx as DecFedProx
from raysim.algorithms.depthfl import DepthFL as DepthFL
from raysim.algorithms.dfedadmm import DFedADMM as DFedADMM
from raysim.algorithms.dfedavgm import DFedAvgM as DFedAvgM
from raysim.algorithms.dfedsam import DFedSAM as DFedSAM
from raysim.algorithms.ditto import Ditto as Ditto
from raysim.algorithms.dsgt import DSGT as DSGT
from raysim.algorithms.exact_diffusion import ExactDiffusion as ExactDiffusion
from raysim.algorithms.extra import EXTRA as EXTRA
from raysim.algorithms.fadas import FADAS as FADAS
from raysim.algorithms.fed_ft import FedFT as FedFT
from raysim.algorithms.fed_rod import FedRoD as FedRoD
from raysim.algorithms.fedadagrad import FedAdagrad as FedAdagrad
from raysim.algorithms.fedadam import FedAdam as FedAdam
from raysim.algorithms.fedadmm import FedADMM as FedADMM
from raysim.algorithms.fedadmm_in import FedADMMIn as FedADMMIn
from raysim.algorithms.fedadmm_insa import FedADMMInSa as FedADMMInSa
from raysim.algorithms.fedala import FedALA as FedALA
from raysim.algorithms.fedasync import FedAsync as FedAsync
from raysim.algorithms.fedat import FedAT as FedAT
from raysim.algorithms.fedavg import FedAvg as FedAvg
from raysim.algorithms.fedavg_ft import FedAvgFT as FedAvgFT
from raysim.algorithms.fedavgm import FedAvgM as FedAvgM
from raysim.algorithms.fedbabu import FedBABU as FedBABU
from raysim.algorithms.fedbuff import FedBuff as FedBuff
from raysim.algorithms.feddf import FedDF as FedDF
from raysim.algorithms.feddle import Feddle as Feddle
from raysim.algorithms.feddyn import FedDyn as FedDyn
from raysim.algorithms.fedeq import FeDEQ as FeDEQ
from raysim.algorithms.fedf_admm import FedFADMM as FedFADMM
from raysim.algorithms.fedmd import FedMD as FedMD
from raysim.algorithms.fednova import FedNova as FedNova
from raysim.algorithms.fedper import FedPer as FedPer
from raysim.algorithms.fedproto import FedProto as FedProto
from raysim.algorithms.fedprox import FedProx as FedProx
from raysim.algorithms.fedrep import FedRep as FedRep
from raysim.algorithms.fedrolex import FedRolex as FedRolex
from raysim.algorithms.fedyogi import FedYogi as FedYogi
from raysim.algorithms.fjord import FjORD as FjORD
from raysim.algorithms.flexlora import FlexLoRA as FlexLoRA
from raysim.algorithms.flora import FLoRA as FLoRA
from raysim.algorithms.heterofl import HeteroFL as HeteroFL
from raysim.algorithms.hfcl import HFCL as HFCL
from raysim.algorithms.inclusivefl import InclusiveFL as InclusiveFL
from raysim.algorithms.knn_per import KNNPer as KNNPer
from raysim.algorithms.lg_fedavg import LGFedAvg as LGFedAvg
from raysim.algorithms.local_only import LocalOnly as LocalOnly
from raysim.algorithms.mifa import MIFA as MIFA
from raysim.algorithms.moon import MOON as MOON
from raysim.algorithms.moving import Aggregating as Aggregating
from raysim.algorithms.moving import Moving as Moving
from raysim.algorithms.peer import Inbox as Inbox
from raysim.algorithms.peer import Peer as Peer
from raysim.algorithms.per_fedavg import PerFedAvg as PerFedAvg
from raysim.algorithms.pfedme import PFedMe as PFedMe
from raysim.algorithms.port import Port as Port
from raysim.algorithms.push_diging import PushDIGing as PushDIGing
from raysim.algorithms.push_pull import PushPull as PushPull
from raysim.algorithms.push_sum import PushSum as PushSum
from raysim.algorithms.rules import ServerRule as ServerRule
from raysim.algorithms.scaffold import Scaffold as Scaffold
from raysim.algorithms.sgp import SGP as SGP
from raysim.algorithms.signatures import Setting as Setting
from raysim.algorithms.staleness import StalenessFunction as StalenessFunction
from raysim.algorithms.swift import SWIFT as SWIFT
from raysim.parts.part import names_of
from raysim.terms import Arrival as Arrival
from raysim.terms import Buffer as Buffer
from raysim.terms import Population as Population
from raysim.terms import Record as Record
from raysim.terms import Round as Round
from raysim.terms import SearchResult as SearchResult
from raysim.terms import ServerStep as ServerStep
from raysim.terms import Trigger as Trigger

# All algorithms that are imported above, those with a server first.
ALGORITHMS: tuple[type[Central | Peer], ...] = tuple(
    found
    for family in (Central, Peer)
    for found in globals().values()
    if isinstance(found, type) and issubclass(found, family) and names_of(found)
)
