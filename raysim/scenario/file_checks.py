"""Checks of the files that the simulated world is read from: traces, scripts, and the run to replay."""

from collections.abc import Callable, Iterator

from raysim.parts.errors import Problem
from raysim.parts.part import Part
from raysim.parts.plain import as_lists
from raysim.parts.rng import Stream
from raysim.scenario.power import require_each, require_power
from raysim.scenario.schema import Scenario
from raysim.world import World
from results.location import is_local, location

_OF_THE_RECORD = ("dispatch", "delay", "availability", "dropout")  # keys that a replay takes from the run


def file_problems(scenario: Scenario, *, fetch: bool = False) -> Iterator[Problem]:
    """Yields problems whose paths start at the scenario.

    fetch: whether files at URIs are looked at, too. A check of a stranger's scenario calls no other machine.
    """

    def known(part: Part) -> bool:
        return fetch or all(is_local(location(path)) for path in part.reads())

    world, clients = scenario.world, scenario.data.participants
    if world.replay is not None and scenario.has_server:
        yield from _problem("world.replay", lambda: _check_replay(scenario))
        return  # nothing else is used
    if known(world.delay):
        problems = list(_problem("world.delay", lambda: _check_delay(scenario)))
        yield from problems or _problem("world.watts", lambda: require_power(scenario))
    if known(world.availability):
        yield from _problem("world.availability", lambda: world.availability.check(clients))
    if world.dispatch.order is not None and known(world.dispatch):
        yield from _problem("world.dispatch.order", lambda: _check_order(world, clients, scenario.run.rounds))


def _problem(path: str, check: Callable[[], None]) -> Iterator[Problem]:
    try:
        check()
    except ValueError as error:
        yield Problem(path, str(error))


def _check_delay(scenario: Scenario) -> None:
    delay, clients = scenario.world.delay, scenario.data.clients
    delay.check(scenario.data.participants)
    require_each(delay.watts(Stream(scenario.seed, "delay"), clients), clients, type(delay).__name__)


def _check_order(world: World, clients: int, rounds: int | None) -> None:
    world.order.check(clients)
    wanted = (rounds or 0) * (world.dispatch.per_round or 0)
    if rounds is None and world.dispatch.per_round:
        raise ValueError("needs run.rounds beside per_round, for it names the clients of each round, got null; set it")
    if (given := len(world.order.clients)) < wanted:
        raise ValueError(f"must name a client for each of {wanted} dispatches, got {given}; lower run.rounds")


def _check_replay(scenario: Scenario) -> None:
    """Raises ValueError if the scenario cannot replay the run."""
    world, recorded, rounds = scenario.world, scenario.world.recorded, scenario.run.rounds
    resolved = world.model_dump(mode="json", serialize_as_any=True)
    others = [key for key in _OF_THE_RECORD if as_lists(resolved[key]) != as_lists(recorded.world[key])]
    if others:
        raise ValueError(f"must go with the other keys of that run, got another `{others[0]}`; leave it out")
    if world.dispatch.tiers and recorded.seed != scenario.seed:
        text = f"must have the seed of that run, {recorded.seed}, for tiers follow from it, got {scenario.seed}"
        raise ValueError(f"{text}; set seed: {recorded.seed}")
    if recorded.clients not in (None, scenario.data.clients):
        text = f"must be a run with as many clients, {scenario.data.clients}, got one with {recorded.clients}"
        raise ValueError(f"{text}; set data.clients to that")
    recorded.script.check(scenario.data.participants)
    if world.has_rounds and rounds is None:
        raise ValueError(f"needs run.rounds, of which that run has {recorded.rounds}, got null; set it")
    if world.has_rounds and rounds is not None and rounds > recorded.rounds:
        raise ValueError(f"must be a run of at least {rounds} rounds, got {recorded.rounds}; lower run.rounds")
