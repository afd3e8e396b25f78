"""Asks an algorithm for the weights of a step's updates, and refuses what cannot be weights."""

from raysim.parts.errors import BadValue
from raysim.parts.part import is_finite
from raysim.parts.rng import seed_globals
from raysim.scenario import Scenario
from raysim.terms import Population
from raysim.world.server_happening import Stepped


def weigh(scenario: Scenario, stepped: Stepped, population: Population) -> list[float] | None:
    """Returns the weights of a step's updates; None if it sums none.

    Raises ValueError unless there is a finite number for each arrival.
    """
    seed_globals(scenario.seed, "weigh", stepped.version)
    arrivals, algorithm = stepped.arrivals, scenario.central.at(stepped.moment)
    weights = algorithm.weigh(arrivals, population)
    if weights is None or algorithm.needs_every_update:
        return None
    must = f"{type(algorithm).__name__}.weigh, of the step to version {stepped.version}: must return"
    if not isinstance(weights, list | tuple):
        got = type(weights).__name__
        raise BadValue(f"{must} a list of numbers, or None if `step` needs every update, got {got}; use .tolist()")
    if len(weights) != len(arrivals):
        raise BadValue(f"{must} a weight for each of {len(arrivals)} arrivals, got {len(weights)}")
    for arrival, weight in zip(arrivals, weights, strict=True):
        if not is_finite(weight):
            raise BadValue(f"{must} finite numbers, got {weight!r} for client {arrival.client}")
    return list(weights)
