"""How clients are picked. To add a way, put it into `POLICIES`."""

from raysim.world.policies.losses import Oort, Pisces, PowerOfChoice
from raysim.world.policies.policy import (
    BySamples,
    Candidates,
    Policy,
    Reports,
    RoundRobin,
    Stratified,
    UniformPolicy,
    WeightedPolicy,
)

POLICIES: tuple[type[Policy], ...] = (
    UniformPolicy,
    BySamples,
    WeightedPolicy,
    RoundRobin,
    Stratified,
    PowerOfChoice,
    Oort,
    Pisces,
)

__all__ = ["POLICIES", "Candidates", "Policy", "Reports", "UniformPolicy"]
