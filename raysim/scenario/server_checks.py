"""Checks of a scenario with a server: its parts must fit together, and updates must be able to arrive."""

from collections import Counter
from collections.abc import Iterator

from raysim.algorithms import Central
from raysim.parts.errors import Problem, quoted
from raysim.scenario.file_checks import file_problems
from raysim.scenario.schema import Scenario
from raysim.terms import Buffer, Round
from raysim.world.availability import Periodic
from raysim.world.delay import ScriptedDelay
from raysim.world.trace_availability import TraceAvailability
from raysim.world.world import World


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


def server_notes(scenario: Scenario) -> Iterator[str]:
    """Yields warnings about settings that are allowed but seldom meant."""
    algorithm, trigger, picked = scenario.central, scenario.central.trigger, _picked(scenario)
    if isinstance(trigger, Buffer) and picked is not None and trigger.size > picked:
        yield (
            f"algorithm: the server never steps, for it waits for {trigger.size} updates, and {picked} clients are "
            "picked in all; let it wait for fewer, or raise run.rounds or world.dispatch"
        )
    if _never_stale(scenario):
        yield (
            "world.dispatch: a round ends with its last arrival, so no update can ever be stale, and "
            f"{algorithm.name} waits for the slowest client of each round; set round_s or reports or, in place of "
            "per_round, concurrency"
        )
    if scenario.needs_losses:
        yield (
            f"world.dispatch.policy: {scenario.world.dispatch.policy.name} picks by losses, so all clients train at "
            "their dispatch, and the timeline waits for those that have arrived before it picks others"
        )
    if scenario.run.evaluate_clients is None and type(algorithm).personal is not Central.personal:
        yield (
            f"run.evaluate_clients: clients of {algorithm.name} predict with models of their own, which nothing "
            "evaluates, so all metrics are of the global model; set it to all, and data.local_test, for example to 0.2"
        )


def _never_stale(scenario: Scenario) -> bool:
    """Whether updates could be stale by the algorithm, and delays would make them, but rounds wait for all of them."""
    world, trigger = scenario.world, scenario.central.trigger
    waits = world.has_rounds and world.round_length is None and world.dispatch.reports is None
    late = isinstance(trigger, Buffer) or trigger.late == "keep"
    return waits and late and world.delay.unit == "seconds" and world.replay is None


def _picked(scenario: Scenario) -> int | None:
    """Returns how many clients a run picks at most, or None if that depends on delays or on what ends it."""
    dispatch, rounds = scenario.world.dispatch, scenario.run.rounds
    if rounds is None:
        return None
    if dispatch.picks is not None:
        return sum(map(len, dispatch.picks[:rounds]))
    return None if dispatch.per_round is None else dispatch.per_round * rounds


def _block_problems(scenario: Scenario) -> Iterator[Problem]:
    data, resources = scenario.data, scenario.resources
    if scenario.topology is not None:
        text = f"goes with algorithms without a server only, got it with {scenario.algorithm.name}; leave it out"
        yield Problem("topology", text)
    if resources.aggregators > resources.shards:
        text = (
            f"must be at most resources.shards, {resources.shards}, for aggregators take whole shards, got "
            f"{resources.aggregators}; lower it, or raise shards, which changes the last bits of results"
        )
        yield Problem("resources.aggregators", text)
    if scenario.run.evaluate_clients is not None and data.local_test == 0:
        text = "needs samples of each client's own to test on, got none; set data.local_test, for example to 0.2"
        yield Problem("run.evaluate_clients", text)
    if data.unseen and data.local_test == 0:
        text = "are evaluated on samples of their own, got none; set data.local_test, for example to 0.2"
        yield Problem("data.unseen", f"clients that take no part {text}")


def _key_problems(world: World, algorithm: Central) -> Iterator[Problem]:
    if not world.dispatch.given:
        text = "must have exactly one of per_round, concurrency, per_tier, picks, order, got none"
        yield Problem("world.dispatch", text)
    for key in ("synchronous", "edge_delay", "loss"):
        if (value := getattr(world, key)) != World.model_fields[key].default:
            text = f"is for peers only, and {algorithm.name} has a server, got {quoted(value)}; leave it out"
            yield Problem(f"world.{key}", text)


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
        given = {client: len(delays) for client, delays in enumerate(world.delay.script)}
        short = [
            f"{given.get(client, 0)} of {times} for client {client}"
            for client, times in sorted(needed.items())
            if given.get(client, 0) < times
        ]
        if short:
            text = f"must hold a delay for every time that a client is picked, got {', '.join(short)}; add the others"
            yield Problem(f"world.delay.{'path' if world.delay.path else 'delays'}", text)


def _time_problems(scenario: Scenario) -> Iterator[Problem]:
    world, algorithm, horizon = scenario.world, scenario.central, scenario.run.horizon
    trigger, length, unit = algorithm.trigger, world.round_length, world.delay.unit
    if isinstance(trigger, Round) and not world.has_rounds and world.dispatch.per_tier is None:
        text = f"must be per_round or picks, for {algorithm.name} steps at the end of rounds, got concurrency with "
        yield Problem("world.dispatch", text + "delays in seconds")
    if length is not None:
        late = isinstance(trigger, Round) and trigger.late == "discard"
        least, end = world.delay.least, length if late else min(length * horizon.rounds, horizon.time)
        if least >= end:
            why = f"{algorithm.name} discards what arrives after its round" if late else "the run ends then"
            text = f"must allow delays of less than {end:g} {unit}, for {why}, got delays of at least {least:g}"
            yield Problem("world.delay", text)
    there = world.availability
    if unit == "rounds" and isinstance(there, TraceAvailability):
        yield Problem("world.availability", "a trace is in seconds, so world.delay must be too, got one in rounds")
    if unit == "rounds" and isinstance(there, Periodic) and there.on * there.period < 1:
        on = there.on * there.period
        text = f"`on` * `period` must be at least a round, or some clients are never there, got {on:g}"
        yield Problem("world.availability", text)
