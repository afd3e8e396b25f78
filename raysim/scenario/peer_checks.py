"""Checks of a scenario without a server: its parts must fit together, and peers must have times and neighbours."""

import math
from collections.abc import Iterator
from itertools import islice

from raysim.algorithms import ALGORITHMS, Peer
from raysim.data.federation.server import NoServerData
from raysim.parts.errors import Problem, quoted
from raysim.parts.part import Part
from raysim.scenario.block_checks import file_problems
from raysim.scenario.schema import Scenario
from raysim.scenario.server_checks import given, trace_problems
from raysim.world import Topology
from raysim.world.availability import Always
from raysim.world.delay import NoDelay, RandomDelay, ScriptedDelay
from raysim.world.links import AllLinks

MOST_ROUNDS = 2**31 - 1  # of a run that something else ends


def peer_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields problems whose paths start at the scenario."""
    name = scenario.algorithm.name
    if not isinstance(scenario.server_data, NoServerData):
        yield Problem("server_data", f"must not be given, because {name} has no server; leave it out")
    if scenario.topology is None:
        text = f"must be given, because {name} has no server; say which peers are neighbours, such as `topology: ring`"
        yield Problem("topology", text)
    else:
        rounds = scenario.run.rounds or MOST_ROUNDS
        for text in scenario.topology.problems(scenario.data.clients, scenario.seed, rounds):
            yield Problem("topology", text)
        if scenario.topology.is_directed and scenario.peer.mixes in ("symmetric", "mean"):
            peers = [one for one in ALGORITHMS if issubclass(one, Peer) and one.mixes not in ("symmetric", "mean")]
            able = ", ".join(one.model_fields["name"].default for one in peers)
            text = f"must be undirected for {name}, whose equations need it, got {scenario.topology.name}"
            yield Problem("topology", f"{text}; take another one, or an algorithm for directed graphs: {able}")
    if scenario.data.unseen:
        yield Problem("data.unseen", f"must be 0, because peers all train, got {scenario.data.unseen:g}; leave it out")
    if scenario.run.save_clients:
        yield Problem("run.save_clients", "must be false for peers, whose models are always kept; leave it out")
    for key, _ in given(scenario.world, "dispatch", "dropout", "staleness"):
        text = f"must not be given, because {name} has no server, and peers train whenever they are there; leave it out"
        yield Problem(f"world.{key}", text)
    if not isinstance(scenario.world.availability, Always) and (scenario.peer.pairs or scenario.peer.lag):
        text = f"must be always for {name}{'' if scenario.peer.pairs else ' with overlap'}, whose messages absent"
        yield Problem("world.availability", f"{text} peers would lose; leave it out")
    if not (scenario.peer.mixes == "push" and scenario.peer.consumes):
        if scenario.world.leave == "hand_over":
            text = f"must be wait for {name}, which does not push, and so would lose what is handed over; leave it out"
            yield Problem("world.leave", text)
        if scenario.world.join == "empty":
            text = f"must be first or copy for {name}, which does not push, and would take nothing for a model of zeros"
            yield Problem("world.join", f"{text}; set one")
    yield from _peer_numbers(scenario)
    if wrong := list(file_problems(scenario)):
        yield from wrong
    else:
        yield from _peer_times(scenario)
        yield from trace_problems(scenario.world)


def _peer_numbers(scenario: Scenario) -> Iterator[Problem]:
    evaluated, peers = scenario.run.evaluate_clients, scenario.data.clients
    if isinstance(evaluated, int) and evaluated > peers:
        text = f"must be at most the number of peers, {peers}, got {evaluated}; lower it, or leave it out for all"
        yield Problem("run.evaluate_clients", text)
    for key in ("aggregators", "gpus_per_aggregator", "aggregators_on", "shards"):
        if (got := getattr(scenario.resources, key)) != type(scenario.resources).model_fields[key].default:
            shown = quoted(got.model_dump() if isinstance(got, Part) else got)
            text = f"is for servers only, and {scenario.algorithm.name} has none, got {shown}; leave it out"
            yield Problem(f"resources.{key}", text)


def _peer_times(scenario: Scenario) -> Iterator[Problem]:
    world, rounds = scenario.world, scenario.run.rounds
    timed = world.delay.unit == "seconds"
    if scenario.peer.pairs and world.synchronous:
        text = f"must be false for {scenario.algorithm.name}, whose peers ask a neighbour when they have trained"
        yield Problem("world.synchronous", f"{text}, got true; set it, and a `world.delay` in seconds")
    if scenario.peer.pairs and scenario.uplink:
        text = f"must be left out for {scenario.algorithm.name}, whose peers take the mean of exact models"
        yield Problem("uplink", f"{text}, got {len(scenario.uplink)} transforms")
    if not timed and not isinstance(world.delay, NoDelay):
        yield Problem("world.delay", "must be in seconds for peers, got a delay in rounds; set unit: seconds")
    if not timed and world.edge_delay.bounds[1] > 0:
        text = f"needs a delay in seconds, got `world.delay` {world.delay.name} in rounds; set its unit"
        yield Problem("world.edge_delay", text + ", for example `delay: {name: constant, value: 10, unit: seconds}`")
    period, links = getattr(scenario.topology, "period_s", None), world.links
    for key, is_given in (("topology.period_s", period is not None), ("world.links", not isinstance(links, AllLinks))):
        if is_given and not timed:
            text = f"goes with a delay in seconds, got `world.delay` {world.delay.name} in rounds; set its unit"
            yield Problem(key, text)
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
            text = "must not be redrawn by rounds for peers that do not wait for each other, who have none; set "
            yield Problem("topology", text + "`topology.period_s`, in seconds, or leave `redraw_every` out")
    elif isinstance(world.delay, ScriptedDelay) and rounds is None:
        yield Problem("run.rounds", "must be given where world.delay lists the delays of each round; set it")
    elif isinstance(world.delay, ScriptedDelay) and rounds is not None:
        given = dict(enumerate(map(len, world.delay.delays)))
        short = (peer for peer in range(scenario.data.clients) if given.get(peer, 0) < rounds)
        if first := list(islice(short, 10)):
            text = f"must hold a delay for each of {rounds} rounds, got fewer for peers {first}; add the others"
            yield Problem("world.delay.delays", text)
