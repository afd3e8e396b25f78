"""The simulated world: dispatch, delays, availability and topologies, and the timelines that follow from them."""

from raysim.world.availability import Availability, Dropout
from raysim.world.delay import Cost, Delay
from raysim.world.distribution import Distribution
from raysim.world.links import Links
from raysim.world.matchings import Matcha, Matching
from raysim.world.mixing import Neighbours, Weighting
from raysim.world.network import EdgeDelay
from raysim.world.policies import Candidates, Policy, Reports
from raysim.world.random_topology import ErdosRenyi, RandomEdges, Regular, SmallWorld
from raysim.world.shift_topology import DirectedRing, EquiDyn, EquiStatic, ExponentialGraph
from raysim.world.topology import Complete, Edges, Grid, Line, Ring, Star, Topology
from raysim.world.world import AVAILABILITY, DELAYS, Dispatch, World

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
    DirectedRing,
    ExponentialGraph,
    Matching,
    Matcha,
    EquiDyn,
    EquiStatic,
)

__all__ = [
    "AVAILABILITY",
    "DELAYS",
    "TOPOLOGIES",
    "Availability",
    "Candidates",
    "Cost",
    "Delay",
    "Dispatch",
    "Distribution",
    "Dropout",
    "EdgeDelay",
    "Links",
    "Neighbours",
    "Policy",
    "Reports",
    "Topology",
    "Weighting",
    "World",
]
