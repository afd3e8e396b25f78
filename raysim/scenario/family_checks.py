"""Checks of a scenario with a server, and of one without: its parts must fit together, and updates must arrive."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from raysim.algorithms import ALGORITHMS, Central, Peer
from raysim.data.federation.server import NoServerData
from raysim.parts.errors import Problem, quoted
from raysim.parts.part import Part
from raysim.scenario.block_checks import file_problems
from raysim.scenario.schema import Scenario
from raysim.terms import Buffer, Round
from raysim.world import Topology, World
from raysim.world.availability import Always, Periodic
from raysim.world.delay import NoDelay, RandomDelay, ScriptedDelay
from raysim.world.links import AllLinks
from raysim.world.trace_availability import TraceAvailability

MOST_ROUNDS = 2**31 - 1  # of a run that something else ends


def server_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields problems whose paths start at the scenario."""
    algorithm, world, rounds, clients = (
        scenario.central,
        scenario.world,
        scenario.run.rounds,
        scenario.data.participants,
    )
    if not _is_trigger(algorithm.trigger):
        text = f"{type(algorithm).__name__}.trigger must be a property that gives Round(...), or Buffer(n) with n >= 1"
        yield Problem("algorithm", f"{text}, got {algorithm.trigger!r}")
        return
    yield from _key_problems(world, algorithm)
    yield from _number_problems(world, clients)
    for key, text in world.dispatch.policy.problems(scenario.data.clients, scenario.data.classes):
        yield Problem(f"world.dispatch.policy.{key}", text)
    if wrong := list(file_problems(scenario)):
        yield from wrong
    else:  # the checks below need the files' content
        yield from _script_problems(world, clients, rounds)
        yield from _time_problems(scenario)
    yield from _block_problems(scenario)


def _is_trigger(trigger: object) -> bool:
    if isinstance(trigger, Buffer):
        return isinstance(trigger.size, int) and trigger.size >= 1
    return isinstance(trigger, Round) and trigger.late in ("discard", "keep")


def _block_problems(scenario: Scenario) -> Iterator[Problem]:
    data, resources = scenario.data, scenario.resources
    if scenario.topology is not None:
        text = f"goes with algorithms without a server only, got it with {scenario.algorithm.name}; leave it out"
        yield Problem("topology", text)
    if resources.aggregators > resources.shards:
        text = f"must be at most resources.shards, {resources.shards}, because aggregators take whole shards"
        cure = "lower it, or raise shards, which changes the last bits of results"
        yield Problem("resources.aggregators", f"{text}, got {resources.aggregators}; {cure}")
    if scenario.run.evaluate_clients is not None and data.local_test == 0:
        text = "needs samples of each client's own to test on, got none; set data.local_test, for example to 0.2"
        yield Problem("run.evaluate_clients", text)
    if data.unseen and data.local_test == 0:
        text = "are evaluated on their own samples, got none; set data.local_test, for example to 0.2"
        yield Problem("data.unseen", f"clients that take no part {text}")


def _key_problems(world: World, algorithm: Central) -> Iterator[Problem]:
    if not world.dispatch.given:
        text = "must have exactly one of per_round, probability, concurrency, per_tier and picks, got none"
        yield Problem("world.dispatch", text)
    for key, value in _given(world, "synchronous", "edge_delay", "loss", "on_loss", "leave", "join", "links"):
        text = f"is for peers only, and {algorithm.name} has a server, got {quoted(value)}; leave it out"
        yield Problem(f"world.{key}", text)


def _given(world: World, *keys: str) -> Iterator[tuple[str, Any]]:
    """Yields those of the keys that are given, with their values."""
    for key in keys:
        if (value := getattr(world, key)) != World.model_fields[key].default:
            yield key, value


def _number_problems(world: World, clients: int) -> Iterator[Problem]:
    for key in ("per_round", "concurrency"):
        wanted = getattr(world.dispatch, key)
        if wanted is not None and wanted > clients:
            text = f"must be at most the number of clients, {clients}, got {wanted}; lower it"
            yield Problem(f"world.dispatch.{key}", text)
    dispatch = world.dispatch
    if dispatch.per_tier and dispatch.tiers and dispatch.per_tier > (least := clients // dispatch.tiers):
        text = f"must be at most the number of clients in a tier, {least}, got {dispatch.per_tier}; lower it, or tiers"
        yield Problem("world.dispatch.per_tier", text)
    if world.dropout.probability == 1:
        yield Problem("world.dropout.probability", "must be less than 1, or no update ever arrives, got 1; lower it")


def _script_problems(world: World, clients: int, rounds: int | None) -> Iterator[Problem]:
    path, picks = "world.dispatch.picks", world.dispatch.picks
    if picks is None:
        return
    if rounds is None:
        yield Problem("run.rounds", f"must be given where {path} names the clients of each round; set it")
        return
    if len(picks) < rounds:
        yield Problem(path, f"must have a list for each of {rounds} rounds, got {len(picks)}")
    if strangers := {client for picked in picks for client in picked if not 0 <= client < clients}:
        yield Problem(path, f"must be numbers of clients, 0 to {clients - 1}, got {sorted(strangers)}")
    for round, picked in enumerate(picks):
        if twice := sorted(client for client, times in Counter(picked).items() if times > 1):
            yield Problem(f"{path}.{round}", f"must name a client once only, got {twice} more than once")
    if isinstance(world.delay, ScriptedDelay):
        needed = Counter(client for picked in picks[:rounds] for client in picked)
        given = {client: len(delays) for client, delays in enumerate(world.delay.delays)}
        short = [
            f"{given.get(client, 0)} of {times} for client {client}"
            for client, times in sorted(needed.items())
            if given.get(client, 0) < times
        ]
        if short:
            text = f"must hold a delay for every time that a client is picked, got {', '.join(short)}; add the others"
            yield Problem("world.delay.delays", text)


def _time_problems(scenario: Scenario) -> Iterator[Problem]:
    world, algorithm, horizon = scenario.world, scenario.central, scenario.run.horizon
    trigger, length, unit = algorithm.trigger, world.round_length, world.delay.unit
    if isinstance(trigger, Round) and not world.has_rounds and world.dispatch.per_tier is None:
        text = f"must be per_round or picks, because {algorithm.name} steps at the end of rounds, got concurrency with "
        yield Problem("world.dispatch", text + "delays in seconds")
    if length is not None:
        late = isinstance(trigger, Round) and trigger.late == "discard"
        least, end = world.delay.least, length if late else min(length * horizon.rounds, horizon.time)
        if least >= end:
            why = f"{algorithm.name} discards what arrives after its round" if late else "the run ends then"
            text = f"must allow delays of less than {end:g} {unit}, because {why}, got delays of at least {least:g}"
            yield Problem("world.delay", text)
    there = world.availability
    yield from _trace_problems(world)
    if unit == "rounds" and isinstance(there, Periodic) and there.on * there.period < 1:
        on = there.on * there.period
        text = f"`on` * `period` must be at least a round, or some clients are never there, got {on:g}"
        yield Problem("world.availability", text)


def _trace_problems(world: World) -> Iterator[Problem]:
    if world.delay.unit == "rounds" and isinstance(world.availability, TraceAvailability):
        yield Problem("world.availability", "a trace is in seconds, so world.delay must be too, got one in rounds")


# --- without a server -------------------------------------------------------------------------------------------------


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
    for key, _ in _given(scenario.world, "dispatch", "dropout", "staleness"):
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
        yield from _trace_problems(scenario.world)


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
