"""Checks of the blocks `release` and `privacy`: where noise would protect less than it seems to."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from raysim.algorithms import Central
from raysim.local.gradients import PerSample
from raysim.parts.errors import Problem
from raysim.scenario.block_checks import training_problems
from raysim.scenario.schema import Scenario
from raysim.terms import Arrival, Moment, Population, Round
from raysim.uplink.noise import bounded
from raysim.world.availability import Always
from raysim.world.delay import NoDelay
from results.texts import extra

_NOISY = "{name: per_sample, clip: 1.0, noise: 1.0}"


def privacy_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields problems whose paths start at the scenario."""
    release, privacy = scenario.release, scenario.privacy
    if privacy is not None and privacy.unit == "sample":
        yield from _sample_problems(scenario, privacy.accountant)
    if privacy is not None and privacy.accountant != "exact" and find_spec("dp_accounting") is None:
        text = f"{privacy.accountant} needs the package dp-accounting, which is not installed; {extra('privacy')}"
        yield Problem("privacy.accountant", text)
    if release is not None and not isinstance(scenario.algorithm, Central):
        yield Problem("release", f"is for algorithms with a server, got {scenario.algorithm.name}; leave it out")
        return
    if release is None and privacy is not None and privacy.unit == "client":
        text = "needs noise to account for, got none; add, for example, `release: {name: gaussian, multiplier: 1.0}`"
        yield Problem("privacy", text)
    if release is None:
        return
    if release.multiplier == "auto" and (privacy is None or privacy.epsilon is None):
        yield Problem("release.multiplier", "auto needs privacy.epsilon, which it is to meet, got none; set it")
    if release.multiplier == 0 and privacy is not None and privacy.epsilon is not None:
        text = "must be above 0 with privacy.epsilon, which no run without noise keeps to, got 0; raise it"
        yield Problem("release.multiplier", text)
    if release.multiplier != 0:
        yield from _bound_problems(scenario)
        yield from _weight_problems(scenario.central.at(Moment()))
        yield from _timeline_problems(scenario)
    if privacy is not None and privacy.accountant != "exact" and privacy.unit == "client":
        yield from _sampling_problems(scenario, privacy.accountant)


def _sample_problems(scenario: Scenario, accountant: str) -> Iterator[Problem]:
    """Yields why what clients send would show more of a sample than the noise of their gradients leaves."""
    if not scenario.has_server:
        text = f"must be client or be left out for {scenario.algorithm.name}, which has no server, got sample"
        yield Problem("privacy.unit", f"{text}; leave `privacy` out")
        return
    trained = {"local": scenario.local}
    trained |= {f"clients.{n}.local": group.settings(scenario.local) for n, group in enumerate(scenario.clients)}
    for key, local in trained.items():
        noisy = [one for one in local.gradients if isinstance(one, PerSample) and isinstance(one.noise, float)]
        if not noisy or not noisy[0].noise:
            text = "must start with per_sample and a number above 0 as its noise where privacy.unit is sample, got"
            names = ", ".join(one.name for one in local.gradients) or "nothing"
            yield Problem(f"{key}.gradients", f"{text} {names}; add, for example, {_NOISY}")
        if accountant != "exact" and local.batches != "poisson":
            text = f"must be poisson with privacy.accountant: {accountant}, which takes samples to be drawn, got"
            yield Problem(f"{key}.batches", f"{text} {local.batches}; change it, or take exact")
    if scenario.central.stops_early:
        name = scenario.algorithm.name
        text = f"must not be {name} where privacy.unit is sample, because when its clients stop shows gradients"
        yield Problem("algorithm", f"{text} without noise; take another algorithm")
    yield from training_problems(scenario, "where privacy.unit is sample, because nothing protects that")


def _sampling_problems(scenario: Scenario, accountant: str) -> Iterator[Problem]:
    """Yields why clients are not sampled as the accountant takes them to be."""
    world, release, trigger = scenario.world, scenario.release, scenario.central.trigger
    waits = world.round_length is None and world.dispatch.reports is None
    holds = {
        "world.dispatch": (world.dispatch.probability is not None, "must have probability"),
        "world.availability": (isinstance(world.availability, Always), "must be always"),
        "world.dropout": (world.dropout.probability == 0, "must be 0"),
        "world.delay": (waits or isinstance(world.delay, NoDelay), "must let rounds wait for all that they picked"),
        "algorithm": (isinstance(trigger, Round), "must step at the end of rounds"),
        "algorithm.weights": (getattr(scenario.algorithm, "weights", None) == "expected", "must be expected"),
        "run.rounds": (scenario.run.rounds is not None, "must be given"),
        "release.name": (release is not None and release.name == "gaussian", "must be gaussian"),
    }
    for key, (right, must) in holds.items():
        if not right:
            text = f"{must} with privacy.accountant: {accountant}, which takes clients to be sampled"
            yield Problem(key, f"{text}; change it, or take exact")


def _bound_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields why an update may be longer than the bound that noise is scaled by."""
    bound, after = bounded(scenario.uplink)
    if bound is None:
        others = [entry for one in scenario.uplink if one.kind == "bound" for entry in one.entries]
        got = f"clip_norm of {', '.join(others)} only" if others else "no clip_norm"
        text = f"must bound what is shaped like the model, because a release scales its noise by that bound, got {got}"
        last = ", after all that has a memory" if any(one.remembers for one in scenario.uplink) else ""
        yield Problem("uplink", f"{text}; add {{name: clip_norm, max: 1.0}}{last}")
        return
    if scenario.release is not None and scenario.release.spans_steps and (bound.adapt or bound.schedules):
        text = f"must stay the same with release {scenario.release.name}, whose noise spans steps, got one that changes"
        yield Problem(f"uplink.{scenario.uplink.index(bound)}", f"the bound {text}; give a number, or take gaussian")
    if bound.order == "inf":
        text = "must be 2 or 1 with a release, whose noise is scaled by a bound of the l2 norm, got inf; take 2"
        yield Problem(f"uplink.{scenario.uplink.index(bound)}.order", text)
    for place, one in after.items():
        if one.remembers:
            text = "has a memory after clip_norm, with which clients can send more than the bound"
            yield Problem(f"uplink.{place}", f"{one.name} {text}; put clip_norm last, or leave the memory out")
        elif (stretch := one.at(Moment()).stretch(2)) is None or (one.schedules and stretch != 1):
            text = "may lengthen what clip_norm has bounded, and a release scales its noise by that bound"
            yield Problem(f"uplink.{place}", f"{one.name} {text}; put clip_norm last")
    if scenario.models:
        text = "must have no `model` with a release, whose noise is on one sum of the updates of all clients; leave it"
        yield Problem("clients", f"{text} out")
    elif scenario.divides:
        key = "capacity" if scenario.capacity is not None else "clients" if scenario.clients else "algorithm.exits"
        text = "must not go with a release, because clients with other models have other weights in each parameter"
        yield Problem(key, f"{text}; leave it out")


def _weight_problems(algorithm: Central) -> Iterator[Problem]:
    """Yields why what a client can move a step's sum by does not follow from the bound and its weight."""
    name = algorithm.name
    if algorithm.needs_every_update:
        text = "must be mean with a release, whose noise is on the sum of updates; leave it out"
        yield Problem("algorithm.aggregate", f"{text}, because clip_norm in uplink clips")
        return
    if algorithm.increments:
        sums = ", ".join(algorithm.increments)
        text = f"must not go with {name}, which sums up for good what clients send ({sums}); take another algorithm"
        yield Problem("release", text)
        return
    alike, other = (_weights(algorithm, samples) for samples in ((10, 10), (10, 30)))
    if alike is None:
        text = f"must not go with {name}, whose server needs each update by itself, not a sum; take another algorithm"
        yield Problem("release", text)
    elif alike != other:
        keys = [key for key in ("weights", "weighting") if hasattr(algorithm, key)]
        text = "must not follow from numbers of samples with a release, because a weight then shows those of others"
        cure = "set it to uniform" if keys else f"take another algorithm than {name}"
        yield Problem(f"algorithm.{keys[0]}" if keys else "algorithm", f"{text}; {cure}")


def _weights(algorithm: Central, samples: tuple[int, int]) -> list[float] | None:
    """Returns the weights of two updates that arrive together, from clients with so many samples; None if they are not
    for one sum."""
    arrivals = tuple(Arrival(client, client, 0, 0, 0.0, held) for client, held in enumerate(samples))
    try:
        weights = algorithm.weigh(arrivals, Population(len(samples), sum(samples), expected=2.0))
    except Exception:  # of the user's own class; the run says what is wrong
        return []
    return weights if isinstance(weights, list) else None


def _timeline_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields why who takes part when would depend on the data."""
    trigger = scenario.central.trigger
    if scenario.release is not None and scenario.release.spans_steps and isinstance(trigger, Round) and trigger.empty:
        text = f"must be gaussian with {scenario.algorithm.name}, which also steps if nothing arrived"
        yield Problem("release.name", f"{text}, got {scenario.release.name}; take gaussian")
    yield from training_problems(scenario, "with a release, because nothing protects that")
