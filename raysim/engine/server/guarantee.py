"""The weights of updates in a run with a server, the noise on their sums, and what it guarantees: all of that follows
from the timeline alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from raysim.algorithms import Central
from raysim.local.gradients import PerSample
from raysim.parts.errors import BadInput, BadValue, located
from raysim.parts.own import place_of
from raysim.parts.part import is_finite
from raysim.parts.rng import seed_globals
from raysim.privacy.account import Account, NoisePlan, SampleAccount, ShownSteps, of_updates, plan_of, shown_by
from raysim.privacy.exposure import Shares, shares_of
from raysim.privacy.release import Release
from raysim.privacy.sampled import Sampled, drawn_alone
from raysim.scenario import Scenario
from raysim.terms import Arrival, Population, Weight
from raysim.uplink.noise import bounded, stretch_of
from raysim.workers.replies import WorkCost
from raysim.workers.requests import StepNoise
from raysim.world.server_happening import Happening, Stepped

_EQUAL = "weights that do not differ, such as those of fedbuff with staleness: none"


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


def plan(
    scenario: Scenario,
    population: Population,
    timeline: Callable[[], Iterable[Happening]],
    measure: Callable[[], WorkCost],
) -> NoisePlan:
    """Returns the plan of a run's noise, of a scenario with a release. Raises BadInput if the run cannot be as the
    scenario says.

    timeline: begins the run's timeline, which is followed only if it must be foreseen. measure: returns the cost of an
    update, which is asked for only if noise depends on how many numbers there are.
    """
    release, (bound, after) = scenario.release, bounded(scenario.uplink)
    assert release is not None
    steps = set[tuple[int, float]]()  # of each step: how many updates it has, and the largest bound of them
    shares, adapts = _shares(scenario, population, timeline, steps), bound is not None and bound.adapt is not None
    found = plan_of(release, scenario.privacy, list(shares) if adapts else shares, _sampled(scenario, population))
    for updates, clip in steps:
        multiplier, _ = _multiplier(scenario, found, updates, population.expected)
        if multiplier and release.alike:
            length = sum(map(math.prod, measure().up[()]))
            with located("release"):
                release.require(multiplier * release.bound(clip * stretch_of(after, length), length), updates)
    return found


def _sampled(scenario: Scenario, population: Population) -> Sampled | None:
    """Returns how clients are sampled; None where it counts as known who takes part.

    The probability that a round draws a client alone, which its step then shows, is taken off delta.
    """
    privacy, expected = scenario.privacy, population.expected
    if privacy is None or privacy.accountant == "exact" or expected is None:
        return None
    of = privacy.population or population.clients
    probability, delta = min(1.0, max(expected, privacy.cohort or 0) / of), privacy.delta
    delta -= (scenario.run.rounds or 0) * drawn_alone(probability, of)
    if delta <= 0:
        text = f"must be above the probability that a round draws one client alone, got {privacy.delta:g}; raise it, or"
        raise BadInput("privacy.delta", f"{text} world.dispatch.probability")
    return Sampled(privacy.accountant, probability, delta)


def _shares(
    scenario: Scenario,
    population: Population,
    timeline: Callable[[], Iterable[Happening]],
    steps: set[tuple[int, float]],
) -> Iterator[Shares]:
    """Yields the shares of each step, and adds to `steps`. Raises BadInput if the noise needs weights that are equal
    and these are not."""
    release, known = scenario.release, None
    for happening in timeline():
        if isinstance(happening, Stepped):
            weights = one_sum(weigh(scenario, happening, population))
            largest = max(map(abs, weights), default=known)
            if release is not None and release.spans_steps:
                _require_equal(happening, release, "largest weight in all steps", known or largest, largest)
            if release is not None and release.alike and weights:
                _require_equal(happening, release, "weight of all updates in a step", min(weights), max(weights))
            known = largest
            if weights:
                steps.add((len(weights), _clip(scenario, happening)))
            yield shares_of(happening.arrivals, weights)


def _require_equal(step: Stepped, release: Release, what: str, one: float | None, other: float | None) -> None:
    if not math.isclose(one or 0.0, other or 0.0):
        text = f"must be gaussian where weights differ, because {release.name} needs the same {what}"
        got = f"got {one:.4g} and {other:.4g} at the step to version {step.version}"
        raise BadInput("release.name", f"{text}, {got}; take gaussian, or {_EQUAL}")


def account(scenario: Scenario, plan: NoisePlan | None, samples: Sequence[int]) -> Account | None:
    """Returns a new account of the steps of a run with `privacy`; None if it has no noise. samples: of each client."""
    assert scenario.privacy is not None
    if scenario.privacy.unit == "sample":
        return SampleAccount(scenario.privacy, _shown(scenario, samples))
    return Account(scenario.privacy, scenario.release, plan) if plan and scenario.release else None


def _shown(scenario: Scenario, samples: Sequence[int]) -> Callable[[int], ShownSteps]:
    """Returns a function that says what a training of a client shows of one of its samples."""
    groups, algorithm = scenario.groups, scenario.central

    @cache
    def shown(client: int) -> ShownSteps:
        local, held = groups.local(client), int(samples[client])
        passes = algorithm.samples_seen(local, held) / local.total_samples(held)
        (part,) = (one for one in local.gradients if isinstance(one, PerSample))
        steps, size = local.total_steps(held), min(local.batch_size or held, held)
        drawn = size / held if local.batches == "poisson" else None
        return shown_by(steps, local.epoch_steps(held), passes, drawn=drawn, noise=part.noise)

    return shown


def noise(
    scenario: Scenario, plan: NoisePlan, stepped: Stepped, weights: list[float], expected: float | None
) -> StepNoise:
    """Returns the noise of a step: z C max w, with the largest bound C of its updates.

    expected: how many updates a step has in the mean, where clients are drawn.
    """
    multiplier, count_std = _multiplier(scenario, plan, len(weights), expected)
    weight = max(map(abs, weights))
    return StepNoise(multiplier * weight, _clip(scenario, stepped), weight, len(weights), count_std)


def _multiplier(scenario: Scenario, plan: NoisePlan, updates: int, expected: float | None) -> tuple[float, float]:
    """Returns the noise of a step of so many updates over C max w, and the standard deviation of that on how many of
    them were not clipped. expected: as for `noise`."""
    bound, _ = bounded(scenario.uplink)
    multiplier, count_std = plan.multiplier, 0.0
    if bound is not None and bound.adapt is not None:
        count_std = bound.adapt.count_noise or 0.0
        if multiplier:
            count_std = (expected or updates) / 20 if bound.adapt.count_noise is None else count_std
            with located(f"uplink.{scenario.uplink.index(bound)}.adapt"):
                multiplier = of_updates(multiplier, count_std)
    multiplier *= plan.sensitivity
    if scenario.privacy is not None and scenario.privacy.cohort is not None:
        fixed = getattr(scenario.algorithm, "weights", None) == "expected"
        multiplier *= (expected if fixed and expected else updates) / scenario.privacy.cohort
    return multiplier, count_std


def _clip(scenario: Scenario, stepped: Stepped) -> float:
    """Returns the largest bound of a step's updates, infinite without one, where it does not adapt."""
    bound, _ = bounded(scenario.uplink)
    return max(bound.at(dispatched.moment).max if bound else math.inf for dispatched in stepped.members)
