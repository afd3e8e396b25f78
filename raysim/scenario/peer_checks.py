"""Checks of a scenario without a server: its parts must fit together."""

import math
from collections.abc import Iterator
from itertools import islice

from raysim.data.federation.server import NoServerData
from raysim.parts.errors import Problem, quoted
from raysim.parts.part import Part
from raysim.scenario.file_checks import file_problems
from raysim.scenario.schema import Scenario
from raysim.world import Topology, World
from raysim.world.delay import NoDelay, RandomDelay, ScriptedDelay

MOST_ROUNDS = 2**31 - 1  # of a run that something else ends


def peer_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields problems whose paths start at the scenario."""
    name = scenario.algorithm.name
    if not isinstance(scenario.server_data, NoServerData):
        yield Problem("server_data", f"must not be given, for {name} has no server; leave it out")
    if scenario.topology is None:
        text = f"must be given, for {name} has no server; say who is whose neighbour, for example `topology: ring`"
        yield Problem("topology", text)
    else:
        for text in scenario.topology.problems(
            scenario.data.clients, scenario.seed, scenario.run.rounds or MOST_ROUNDS
        ):
            yield Problem("topology", text)
    if scenario.data.unseen:
        yield Problem("data.unseen", f"must be 0, for peers all train, got {scenario.data.unseen:g}; leave it out")
    if scenario.run.save_clients:
        yield Problem("run.save_clients", "must be false for peers, whose models are always kept; leave it out")
    yield from _key_problems(scenario.world, name)
    yield from _number_problems(scenario)
    if wrong := list(file_problems(scenario)):
        yield from wrong
    else:
        yield from _time_problems(scenario)


def _key_problems(world: World, name: str) -> Iterator[Problem]:
    for key in ("replay", "dispatch", "availability", "dropout", "staleness"):
        if getattr(world, key) != World.model_fields[key].default:
            text = f"must not be given, for {name} has no server, and all peers are always at work; leave it out"
            yield Problem(f"world.{key}", text)


def _number_problems(scenario: Scenario) -> Iterator[Problem]:
    evaluated, peers = scenario.run.evaluate_clients, scenario.data.clients
    if isinstance(evaluated, int) and evaluated > peers:
        text = f"must be at most the number of peers, {peers}, got {evaluated}; lower it, or leave it out for all"
        yield Problem("run.evaluate_clients", text)
    for key in ("aggregators", "gpus_per_aggregator", "aggregators_on", "shards"):
        if (got := getattr(scenario.resources, key)) != type(scenario.resources).model_fields[key].default:
            shown = quoted(got.model_dump() if isinstance(got, Part) else got)
            text = f"is for servers only, and {scenario.algorithm.name} has none, got {shown}; leave it out"
            yield Problem(f"resources.{key}", text)


def _time_problems(scenario: Scenario) -> Iterator[Problem]:
    world, rounds = scenario.world, scenario.run.rounds
    timed = world.delay.unit == "seconds"
    if not timed and not isinstance(world.delay, NoDelay):
        yield Problem("world.delay", "must be in seconds for peers, got a delay in rounds; set unit: seconds")
    if not timed and world.edge_delay.bounds[1] > 0:
        text = f"needs a delay in seconds beside it, got `world.delay` {world.delay.name} in rounds; set its unit"
        yield Problem("world.edge_delay", text + ", for example `delay: {name: constant, value: 10, unit: seconds}`")
    if not world.synchronous:
        delay = world.delay
        if not timed or isinstance(delay, NoDelay) or (isinstance(delay, RandomDelay) and delay.bounds[1] == 0):
            got = f"`{delay.name}` {'of zero seconds' if timed else 'in rounds'}"
            text = f"must be in seconds, and not zero, for peers that do not wait, got {got}; set one, for example "
            yield Problem("world.delay", text + "`delay: {name: exponential, mean: 10, unit: seconds}`")
        if math.isinf(min(scenario.run.horizon[:3])):
            text = "must be given for peers that do not wait, who must know their last mix, or until.virtual_time or "
            yield Problem("run.rounds", text + "until.updates, got none of them; set one")
        if isinstance(scenario.topology, Topology) and scenario.topology.epoch((rounds or MOST_ROUNDS) - 1) > 0:
            text = "must not be redrawn for peers that do not wait for each other; leave `redraw_every` out"
            yield Problem("topology", text)
    elif isinstance(world.delay, ScriptedDelay) and rounds is None:
        yield Problem("run.rounds", "must be given where world.delay lists the delays of each round; set it")
    elif isinstance(world.delay, ScriptedDelay) and rounds is not None:
        given = dict(enumerate(map(len, world.delay.script)))
        short = (peer for peer in range(scenario.data.clients) if given.get(peer, 0) < rounds)
        if first := list(islice(short, 10)):
            text = f"must hold a delay for each of {rounds} rounds, got fewer for peers {first}; add the others"
            yield Problem(f"world.delay.{'path' if world.delay.path else 'delays'}", text)
