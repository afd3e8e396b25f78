"""The simulated world: dispatch, delays, availability and topologies, and the timelines that follow from them."""

from typing import Annotated

from pydantic import Field

from raysim.part import Named
from raysim.world.availability import Always, Availability, Dropout, Periodic, RandomAvailability
from raysim.world.delay import (
    ComputeDelay,
    ConstantDelay,
    Delay,
    ExponentialDelay,
    HalfNormalDelay,
    LogNormalDelay,
    NoDelay,
    ScriptedDelay,
    UniformDelay,
    Work,
)
from raysim.world.mixing import Neighbours
from raysim.world.random_topology import ErdosRenyi, RandomEdges, Regular, SmallWorld
from raysim.world.topology import Complete, Edges, Grid, Line, Ring, Star, Topology
from raysim.world.world import Dispatch, World

DELAYS: tuple[type[Delay], ...] = (
    NoDelay,
    ConstantDelay,
    HalfNormalDelay,
    LogNormalDelay,
    UniformDelay,
    ExponentialDelay,
    ComputeDelay,
    ScriptedDelay,
)
AVAILABILITY: tuple[type[Availability], ...] = (Always, RandomAvailability, Periodic)
TOPOLOGIES: tuple[type[Topology], ...] = (
    Ring,
    Line,
    Star,
    Complete,
    Grid,
    Edges,
    RandomEdges,
    ErdosRenyi,
    Regular,
    SmallWorld,
)
AnyTopology = Annotated[
    Ring | Line | Star | Complete | Grid | Edges | RandomEdges | ErdosRenyi | Regular | SmallWorld,
    Field(discriminator="name"),
    Named,
]

__all__ = [
    "AVAILABILITY",
    "DELAYS",
    "TOPOLOGIES",
    "AnyTopology",
    "Delay",
    "Dispatch",
    "Dropout",
    "Neighbours",
    "Topology",
    "Work",
    "World",
]
