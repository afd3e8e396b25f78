"""Checks of the model, of models of groups, of the server's samples, and of whether updates arrive at a server."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from raysim.algorithms import ALGORITHMS, Central
from raysim.data.federation.server import NoServerData, OutOfDomain
from raysim.models import MODELS
from raysim.parts.errors import Problem, quoted
from raysim.scenario.block_checks import file_problems
from raysim.scenario.schema import Scenario
from raysim.terms import Buffer, Moment, Round
from raysim.uplink.noise import adapting
from raysim.uplink.uplink import memory_of, shadows_each
from raysim.world import World
from raysim.world.availability import Periodic
from raysim.world.delay import ScriptedDelay
from raysim.world.trace_availability import TraceAvailability


def model_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields where the model and the samples that are no client's do not go with the data, the algorithm or others."""
    data, model, public = scenario.data, scenario.model, scenario.public
    if not set(data.holds) & set(model.takes):
        text = f"{model.name} takes {' or '.join(model.takes)}, and {data.name} holds {' or '.join(data.holds)}"
        tokens = "text" in model.takes and "inputs" in type(data).model_fields
        cure = "say data.inputs: tokens if the data are tokens, or take" if tokens else "take"
        yield Problem("model.name", f"{text}; {cure} another of them")
    if model.norm != "average" and not model.normalises:
        text = f"must be average, because {model.name} has no normalisation, got {model.norm}; leave it out"
        yield Problem("model.norm", text)
    elif model.norm == "local" and not scenario.algorithm.keeps_personal:
        keep = ", ".join(one.model_fields["name"].default for one in ALGORITHMS if one.keeps_personal)
        text = f"must be average or frozen for {scenario.algorithm.name}, whose clients keep no part of the model, got "
        yield Problem("model.norm", f"{text}local; take one of {keep}: with fedper, it is FedBN")
    merges = isinstance(scenario.algorithm, Central) and scenario.algorithm.merges_adapters
    if model.lora is not None and model.lora.merge and not merges:
        text = f"must be false for {scenario.algorithm.name}, which merges no adapters, got true; leave it out"
        yield Problem("model.lora.merge", text)
    if data.holds == ("functions",) and public.samples:
        text = "must not be given with the quadratic data, where models predict nothing but their loss; leave it out"
        yield Problem("public", text)
    if public.from_all and public.split == "test":
        text = "must be false with `split: test`, because it is about training samples, got true; leave it out"
        yield Problem("public.from_all", text)
    if data.classes == 0 and public.alpha is not None:
        text = f"must not be given, because it skews labels, and {data.name} has none; leave it out"
        yield Problem("public.alpha", text)
    yield from _server_data_problems(scenario)


def architecture_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with groups whose models are of other architectures than the server's."""
    if not scenario.clients:
        return
    algorithm, models = scenario.algorithm, scenario.models
    if models and not (isinstance(algorithm, Central) and algorithm.mixes_models):
        able = ", ".join(one.model_fields["name"].default for one in ALGORITHMS if getattr(one, "mixes_models", False))
        text = f"must be left out for {algorithm.name}, whose clients all have one architecture; take one of {able}"
        yield from (Problem(f"clients.{scenario.place_of(group)}.model", text) for group in models)
        return
    known = list(_of_model(scenario)) if models else []
    for group, model in models.items():
        for problem in _of_model(scenario.model_copy(update={"model": model})):
            if problem not in known:
                own = problem.path == "model" or problem.path.startswith("model.")
                at = f"clients.{scenario.place_of(group)}." if own else ""
                yield Problem(at + problem.path, problem.text)
    if models and scenario.capacity:
        yield Problem("capacity", "must be left out where groups have models of other architectures, got both")
    for stage, one in enumerate(scenario.downlink if models else ()):
        if memory_of(one) == "shadow" and not shadows_each(one):
            text = "must be client where groups have models of other architectures, got all; set it"
            yield Problem(f"downlink.{stage}.shadow", text)
    if not scenario.apart:
        return
    if (place := adapting(scenario.uplink)) is not None:
        text = "must be left out where the server has models of several architectures, whose updates have other norms"
        yield Problem(f"uplink.{place}.adapt", text)
    if (weights := getattr(algorithm, "weights", "samples")) not in ("samples", "uniform"):
        text = f"must be samples or uniform where the server has models of several architectures, got {weights}"
        yield Problem("algorithm.weights", text)


def _of_model(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the scenario's model, alone and beside other blocks."""
    yield from scenario.model.problems()
    yield from model_problems(scenario)
    yield from scenario.algorithm.at(Moment()).problems(scenario)


def _server_data_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields why the server cannot have these samples."""
    data, server_data = scenario.data, scenario.server_data
    if isinstance(server_data, NoServerData):
        return
    if not data.has_test_set:
        yield Problem("server_data", f"the {data.name} data has no samples for the server; leave it out")
    elif isinstance(server_data, OutOfDomain):
        for text in server_data.data.problems():
            yield Problem("server_data.data", text)
        if "images" not in data.holds:
            text = f"out_of_domain holds images, so clients must hold images too, got {data.name}; take in_domain"
            yield Problem("server_data", text)
        resizes = getattr(scenario.model, "image_size", None) is not None or type(scenario.model) not in MODELS
        if server_data.fit == "model" and not resizes:
            text = f"model needs a model that resizes images, got {scenario.model.name}; set model.image_size, or take "
            yield Problem("server_data.fit", f"{text}clients")


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
    for key, value in given(world, "synchronous", "edge_delay", "loss", "on_loss", "leave", "join", "links"):
        text = f"is for peers only, and {algorithm.name} has a server, got {quoted(value)}; leave it out"
        yield Problem(f"world.{key}", text)


def given(world: World, *keys: str) -> Iterator[tuple[str, Any]]:
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
    yield from trace_problems(world)
    if unit == "rounds" and isinstance(there, Periodic) and there.on * there.period < 1:
        on = there.on * there.period
        text = f"`on` * `period` must be at least a round, or some clients are never there, got {on:g}"
        yield Problem("world.availability", text)


def trace_problems(world: World) -> Iterator[Problem]:
    """Yields why times of a trace do not go with the world's."""
    if world.delay.unit == "rounds" and isinstance(world.availability, TraceAvailability):
        yield Problem("world.availability", "a trace is in seconds, so world.delay must be too, got one in rounds")
