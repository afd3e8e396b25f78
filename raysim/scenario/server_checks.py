"""What is wrong between the parts of a scenario with a server, so that it could not run, or would come to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from raysim.algorithms import Central
from raysim.errors import Problem
from raysim.scenario.schema import Scenario
from raysim.terms import Round
from raysim.world.availability import Periodic
from raysim.world.delay import ScriptedDelay
from raysim.world.world import World


def server_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields problems whose paths start at the scenario."""
    algorithm, world, rounds, clients = (
        scenario.central,
        scenario.world,
        scenario.run.rounds,
        scenario.data.participants,
    )
    yield from _of_keys(world, algorithm)
    yield from _of_numbers(world, clients)
    yield from _of_scripts(world, clients, rounds)
    yield from _of_times(world, algorithm, rounds)
    yield from _of_other_blocks(scenario)


def _of_other_blocks(scenario: Scenario) -> Iterator[Problem]:
    data, resources = scenario.data, scenario.resources
    if scenario.topology is not None:
        text = f"goes with algorithms without a server, got it with {scenario.algorithm.name}; leave it out"
        yield Problem("topology", text)
    if resources.aggregators > resources.shards:
        text = (
            f"must be at most resources.shards, {resources.shards}, for they share a step shard by shard, got "
            f"{resources.aggregators}; raise shards, which changes bits, or lower it"
        )
        yield Problem("resources.aggregators", text)
    if scenario.run.evaluate_clients is not None and data.local_test == 0:
        text = "needs samples of each client's own to test on, got none; set data.local_test, for example to 0.2"
        yield Problem("run.evaluate_clients", text)
    if data.unseen and data.local_test == 0:
        text = "are evaluated on samples of their own, got none; set data.local_test, for example to 0.2"
        yield Problem("data.unseen", f"clients that take no part {text}")


def _of_keys(world: World, algorithm: Central) -> Iterator[Problem]:
    if not world.dispatch.given:
        yield Problem("world.dispatch", "must have exactly one of per_round, concurrency and picks, got none")
    for key in ("synchronous", "edge_delay", "loss"):
        if (value := getattr(world, key)) != World.model_fields[key].default:
            text = f"is of peers, and {algorithm.name} has a server, got {value!r}; leave it out"
            yield Problem(f"world.{key}", text)


def _of_numbers(world: World, clients: int) -> Iterator[Problem]:
    for key in ("per_round", "concurrency"):
        wanted = getattr(world.dispatch, key)
        if wanted is not None and wanted > clients:
            text = f"must be at most the number of clients, {clients}, got {wanted}"
            yield Problem(f"world.dispatch.{key}", text)
    if world.dropout.probability == 1:
        yield Problem("world.dropout.probability", "must be less than 1, or no update ever arrives, got 1")


def _of_scripts(world: World, clients: int, rounds: int) -> Iterator[Problem]:
    path, picks = "world.dispatch.picks", world.dispatch.picks
    if picks is None:
        return
    if len(picks) < rounds:
        yield Problem(path, f"must have a list for each of {rounds} rounds, got {len(picks)}")
    if strangers := {client for of_round in picks for client in of_round} - set(range(clients)):
        yield Problem(path, f"must be numbers of clients, 0 to {clients - 1}, got {sorted(strangers)}")
    for round, of_round in enumerate(picks):
        if twice := sorted(client for client, times in Counter(of_round).items() if times > 1):
            yield Problem(f"{path}.{round}", f"must name a client once only, got {twice} more than once")
    if isinstance(world.delay, ScriptedDelay):
        needed = Counter(client for of_round in picks[:rounds] for client in of_round)
        given = {client: len(delays) for client, delays in enumerate(world.delay.delays)}
        short = [
            f"{given.get(client, 0)} of {times} for client {client}"
            for client, times in sorted(needed.items())
            if given.get(client, 0) < times
        ]
        if short:
            text = f"must hold a delay for every time that a client is picked, got {', '.join(short)}; add the others"
            yield Problem("world.delay.delays", text)


def _of_times(world: World, algorithm: Central, rounds: int) -> Iterator[Problem]:
    trigger, length, unit = algorithm.trigger, world.round_length, world.delay.unit
    if isinstance(trigger, Round) and not world.has_rounds:
        text = f"must be per_round or picks, for {algorithm.name} steps at the end of rounds, got concurrency with "
        yield Problem("world.dispatch", text + "delays in seconds")
    if length is not None:
        late = isinstance(trigger, Round) and trigger.late == "discard"
        least, end = world.delay.least, length if late else length * rounds
        if least >= end:
            why = f"{algorithm.name} discards what arrives after its round" if late else "the run is over then"
            text = f"must leave room for delays of less than {end:g} {unit}, for {why}, got none below {least:g}"
            yield Problem("world.delay", text)
    there = world.availability
    if unit == "rounds" and isinstance(there, Periodic) and there.on * there.period < 1:
        text = f"`on` * `period` must be at least a round, or some are never there, got {there.on * there.period:g}"
        yield Problem("world.availability", text)
