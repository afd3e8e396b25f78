"""All transforms of what clients send. To add one, put it into `UPLINKS`."""

from typing import Annotated

from raysim.parts.part import OneOf
from raysim.uplink.bits import Half, Sign
from raysim.uplink.bounds import NormBound
from raysim.uplink.levels import QSGD, Quantise, Ternary
from raysim.uplink.low_rank import LowRankFactors
from raysim.uplink.noise import GaussianNoise, LaplaceNoise
from raysim.uplink.sparse import RandomNumbers, TopNumbers
from raysim.uplink.uplink import Uplink

UPLINKS: tuple[type[Uplink], ...] = (
    NormBound,
    GaussianNoise,
    LaplaceNoise,
    TopNumbers,
    RandomNumbers,
    LowRankFactors,
    Half,
    Quantise,
    QSGD,
    Ternary,
    Sign,
)
AnUplink = Annotated[Uplink, OneOf(UPLINKS)]
