"""How clients are picked, each way in a file of its own. To add one, put it into `POLICIES`."""

from raysim.world.policies.by_samples import BySamples
from raysim.world.policies.candidates import Candidates, Reports
from raysim.world.policies.oort import Oort
from raysim.world.policies.pisces import Pisces
from raysim.world.policies.policy import Policy
from raysim.world.policies.power_of_choice import PowerOfChoice
from raysim.world.policies.round_robin import RoundRobin
from raysim.world.policies.stratified import Stratified
from raysim.world.policies.uniform import UniformPolicy
from raysim.world.policies.weighted import WeightedPolicy

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
