"""Asks algorithms for the weights of updates in a run with a server, and checks them."""

from collections.abc import Mapping, Sequence

from raysim.algorithms import Central
from raysim.parts.errors import BadValue
from raysim.parts.own import place_of
from raysim.parts.part import is_finite
from raysim.parts.rng import seed_globals
from raysim.scenario import Scenario
from raysim.terms import Arrival, Population, Weight
from raysim.world.server_happening import Stepped


def weigh(scenario: Scenario, stepped: Stepped, population: Population) -> list[Weight] | None:
    """Returns the weights of each of a step's updates; None if it sums none.

    Raises ValueError unless there is a finite number for each arrival.
    """
    seed_globals(scenario.seed, "weigh", stepped.version)
    arrivals, algorithm = stepped.arrivals, scenario.central.at(stepped.moment)
    if not scenario.apart:
        return _weighed(algorithm, stepped, arrivals, population)
    found: dict[int, Weight] = {}
    for key in dict.fromkeys(arrival.architecture for arrival in arrivals):
        places = [place for place, arrival in enumerate(arrivals) if arrival.architecture == key]
        weights = _weighed(algorithm, stepped, [arrivals[place] for place in places], population)
        found |= zip(places, weights or (), strict=weights is not None)
    return [found[place] for place in sorted(found)] if found or not arrivals else None


def _weighed(
    algorithm: Central, stepped: Stepped, arrivals: Sequence[Arrival], population: Population
) -> list[Weight] | None:
    weights = algorithm.weigh(arrivals, population)
    if weights is None or algorithm.needs_every_update:
        return None
    method = f"{type(algorithm).__name__}.weigh{place_of(type(algorithm).weigh)}"
    must = f"{method}, of the step to version {stepped.version}: must return"
    if not isinstance(weights, dict):
        return list(_checked(weights, arrivals, must))
    sums = {name: _checked(one, arrivals, f"{must}, for {name!r},") for name, one in weights.items()}
    return [dict(zip(sums, of_one, strict=True)) for of_one in zip(*sums.values(), strict=True)]


def one_sum(weights: Sequence[Weight] | None) -> list[float]:
    """Returns the weights of the updates of a step that has one sum; [] if it has none, or several."""
    several = not weights or isinstance(weights[0], Mapping)
    return [] if several else list(weights)  # type: ignore[arg-type]


def _checked(weights: Sequence[float], arrivals: Sequence[Arrival], must: str) -> Sequence[float]:
    if not isinstance(weights, list | tuple):
        got = type(weights).__name__
        raise BadValue(f"{must} a list of numbers, or None if `step` needs every update, got {got}; use .tolist()")
    if len(weights) != len(arrivals):
        raise BadValue(f"{must} a weight for each of {len(arrivals)} arrivals, got {len(weights)}")
    if not all(map(is_finite, weights)):
        client, wrong = next((a.client, one) for a, one in zip(arrivals, weights, strict=True) if not is_finite(one))
        raise BadValue(f"{must} finite numbers, got {wrong!r} for client {client}")
    return weights
