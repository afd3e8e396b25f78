"""Checks of blocks of a scenario: schedules, training, groups, transforms, URIs, power, and files of the world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from pydantic import ValidationError

from raysim.algorithms import ALGORITHMS, Central
from raysim.algorithms.central import Algorithm
from raysim.algorithms.sliced import Deep
from raysim.clients import group_problems
from raysim.clients.capacity import OwnSize
from raysim.data.sources.shakespeare import Shakespeare
from raysim.data.sources.synthetic import LinearRegression, Quadratic
from raysim.local import Local
from raysim.local.augment import AugmentFunction, MixUp
from raysim.local.gradients import GradientNoise, PerSample
from raysim.parts.errors import Problem
from raysim.parts.part import Part
from raysim.parts.rng import Stream
from raysim.scenario.explain import explain
from raysim.scenario.schema import Scenario
from raysim.terms import Moment
from raysim.uplink.noise import adapting
from raysim.uplink.transforms import downlink_problems, increment_problems, list_problems
from raysim.uplink.uplink import memory_of, shadows_each
from raysim.world import Delay
from results.location import is_local, location
from results.texts import quoted


def schedule_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each schedule that changes with rounds where there are none, or with steps outside of
    `local`."""
    rounds = not scenario.has_server or scenario.world.has_rounds
    lists = (("uplink", scenario.uplink), ("downlink", scenario.downlink))
    transforms = ((f"{key}.{place}", one) for key, listed in lists for place, one in enumerate(listed))
    for block, schedulable in (("algorithm", scenario.algorithm), ("local", scenario.local), *transforms):
        for key, schedule in schedulable.schedules.items():
            path = f"{block}.{key}.over"
            if schedule.over == "rounds" and not rounds:
                text = "must be versions or time, because this world has no rounds, got rounds"
                yield Problem(path, text)
            if schedule.over == "steps" and (block, key) != ("local", "lr"):
                text = "must be rounds, versions or time: within a training, `local.lr` alone changes, got steps"
                yield Problem(path, text)


def transform_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the transforms of what clients send."""
    algorithm, transforms = scenario.algorithm, scenario.uplink
    if not (transforms or scenario.downlink):
        return
    if type(algorithm).traffic is not Algorithm.traffic:
        text = f"must be left out for {algorithm.name}, which says itself what travels; leave it out"
        yield from (Problem(key, text) for key in ("uplink", "downlink") if getattr(scenario, key))
    if (place := adapting(transforms)) is not None and not scenario.has_server:
        text = f"needs a server, which keeps the bound, and {algorithm.name} has none; leave it out"
        yield Problem(f"uplink.{place}.adapt", text)
    if scenario.downlink and not scenario.has_server:
        yield Problem("downlink", f"must be left out for {algorithm.name}, which has no server; peers send by uplink")
    yield from downlink_problems(scenario.downlink)
    increments = algorithm.increments if isinstance(algorithm, Central) else ()
    yield from list_problems("uplink", transforms)
    if increments:
        yield from increment_problems(transforms, increments, algorithm.name)
    changes = scenario.topology and (scenario.world.loss or scenario.graph_changes)
    for place, one in enumerate(transforms if changes else ()):
        if getattr(one, "memory", None) == "ef21":
            text = "must be none or ef14 where messages are lost or graphs change, because then not all neighbours"
            yield Problem(f"uplink.{place}.memory", f"{text} have what ef21 adds to, got ef21")
    for place, one in enumerate(transforms if scenario.world.delay.needs_cost and not scenario.has_server else ()):
        for key in one.schedules:
            text = "must be a number where delays between peers are computed, got a schedule; give one"
            yield Problem(f"uplink.{place}.{key}", text)


def training_problems(scenario: Scenario, where: str, cure: str = "") -> Iterator[Problem]:
    """Yields what makes it known only once clients train who takes part when. where: why it must not, such as "in a dry
    run". cure: a further way out."""
    if scenario.needs_losses:
        policy = scenario.world.dispatch.policy.name
        text = f"must not depend on losses {where}, got {policy}; take another policy{cure}"
        yield Problem("world.dispatch.policy", text)
    if scenario.delays_follow_training:
        text = f"must not depend on how long clients really train {where}, got compute with {scenario.algorithm.name}"
        cure = f"take other delays, or another algorithm{cure}"
        yield Problem("world.delay", f"{text}, whose clients may stop early; {cure}")


def level_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what cannot go together with clients of several sizes."""
    algorithm, key = scenario.algorithm, "capacity" if scenario.capacity else "clients"
    if not scenario.levels:
        return
    if not (isinstance(algorithm, Central) and algorithm.takes_levels):
        able = ", ".join(one.model_fields["name"].default for one in ALGORITHMS if getattr(one, "takes_levels", False))
        text = f"must be left out for {algorithm.name}, whose clients all have one size; take one of {able}"
        yield Problem(key, text)
        return
    wanted, other = ("depth", "width") if isinstance(algorithm, Deep) else ("width", "depth")
    for place, group in enumerate(scenario.clients):
        if not isinstance(group.model, OwnSize):
            continue
        if getattr(group.model, other) is not None:
            text = f"must be {wanted} for {algorithm.name}, whose models differ in it, got {other}; give {wanted}"
            yield Problem(f"clients.{place}.model.{other}", text)
        elif (group.model.depth or 0) > scenario.exits:
            text = f"must be at most algorithm.exits, {scenario.exits}, got {group.model.depth}; lower it"
            yield Problem(f"clients.{place}.model.depth", text)
    if scenario.model.lora is not None or scenario.model.frozen or scenario.model.norm == "frozen":
        text = f"must be left out where parts of the model are frozen, got {scenario.model.name} with some"
        yield Problem(key, f"{text}; leave it out")
    if scenario.local.optimizer.keep:
        text = "must be false where clients have models of several sizes, got true; leave it out"
        yield Problem("local.optimizer.keep", text)
    moves = scenario.capacity is not None and scenario.capacity.redraw == "dispatch"
    moves = moves or type(algorithm).first_unit is not Central.first_unit
    for key, transforms in (("uplink", scenario.uplink), ("downlink", scenario.downlink)):
        for place, one in enumerate(transforms):
            if moves and one.keeps:
                text = f"must keep nothing of a client, whose slice of the model changes, got {one.name} with a memory"
                yield Problem(f"{key}.{place}", f"{text}; leave the memory out")
            elif memory_of(one) == "shadow" and not shadows_each(one):
                text = "must be client where clients have levels, because how much of the increments of the whole model"
                yield Problem(f"{key}.{place}.shadow", f"{text} is in a slice is not known, got all; set it")


def local_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what of `local` makes no sense in the scenario. What needs the data or the model is reported with them."""
    local, data = scenario.local, scenario.data
    for place, one in enumerate(local.augment):
        path = f"local.augment.{place}"
        if one.images and isinstance(data, Quadratic | LinearRegression | Shakespeare):
            text = f"{one.name} is for images, and {data.name} has none; leave it out, or name a custom function"
            yield Problem(path, text)
        if isinstance(one, MixUp) and (loss := scenario.run.loss) and not loss.mixes:
            text = "mixup mixes labels, of which run.loss takes one a sample; leave mixup out, or take cross_entropy"
            yield Problem(path, f"{text} without class_weights, got {loss.name}")
        if isinstance(one, AugmentFunction):
            yield from (Problem(f"{path}.{key}", text) for key, text in one.problems())
    if local.precision == "tf32" and not scenario.resources.gpus_per_client:
        text = "must be float32 or bfloat16 on CPUs, got tf32; take one of them, or set resources.gpus_per_client"
        yield Problem("local.precision", text)
    if scenario.resources.cuda_graphs == "on":
        wrong = [("local.gradients", one.name) for one in local.gradients if isinstance(one, GradientNoise | PerSample)]
        wrong += [("local.batches", "poisson")] if local.batches == "poisson" else []
        wrong += [] if local.optimizer.captures else [("local.optimizer", local.optimizer.name)]
        given = (key for key in ("class_weights", "positive_weights") if getattr(scenario.run.loss, key, ()))
        wrong += [(f"run.loss.{key}", "numbers, which each step copies to the GPU") for key in given]
        for key, got in wrong:
            text = f"must have steps that can be captured where resources.cuda_graphs is on, got {got}"
            yield Problem(key, f"{text}; change it, or set cuda_graphs to off")
        if not scenario.resources.gpus_per_client:
            text = "must be auto or off without a GPU, got on; set it so, or set resources.gpus_per_client"
            yield Problem("resources.cuda_graphs", text)


def client_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the groups: who is in them, how they train, and what they do."""
    if not scenario.clients:
        return
    yield from group_problems(scenario.clients, scenario.data.clients)
    of_all = _training_problems(scenario)
    for place, group in enumerate(scenario.clients):
        path = f"clients.{place}"
        try:
            local = group.settings(scenario.local)
        except ValidationError as error:
            merged = {**scenario.local.model_dump(), **group.local}
            for problem in explain(error, Local, merged):
                yield Problem(f"{path}.local" + (f".{problem.path}" if problem.path else ""), problem.text)
            continue
        for problem in _training_problems(scenario.model_copy(update={"local": local})):
            if problem not in of_all:
                yield Problem(f"{path}.{problem.path}", problem.text)
        own, of_most = local.optimizer, scenario.local.optimizer
        keeps = of_most.keep and type(own) is type(of_most)  # all clients keep states of one shape
        if own.keep != keeps:
            must, got = (str(value).lower() for value in (keeps, own.keep))  # as YAML has them
            text = f"must be {must}, because `local.optimizer` decides who keeps what, got {got}; set it there"
            yield Problem(f"{path}.local.optimizer.keep", text)


def _training_problems(scenario: Scenario) -> list[Problem]:
    """Returns what is wrong with the scenario's `local`, as far as it is right by itself."""
    of_algorithm = scenario.algorithm.at(Moment()).problems(scenario)
    found = (*local_problems(scenario), *schedule_problems(scenario), *of_algorithm)
    return [problem for problem in found if problem.path.startswith("local")]


def file_problems(scenario: Scenario, *, fetch: bool = False) -> Iterator[Problem]:
    """Yields problems whose paths start at the scenario.

    fetch: whether files at URIs are looked at, too. A check of a stranger's scenario calls no other machine.
    """

    def known(part: Part) -> bool:
        return fetch or all(is_local(location(path)) for path in part.reads())

    world, clients = scenario.world, scenario.data.participants
    if known(world.delay):
        if problems := list(_problem("world.delay", lambda: _check_delay(scenario))):
            yield from problems
        else:
            yield from _problem("capacity.by", lambda: _check_memory(scenario))
            yield from _problem("world.watts", lambda: require_power(scenario))
    if known(world.availability):
        yield from _problem("world.availability", lambda: world.availability.check(clients))
    if known(world.links):
        yield from _problem("world.links", lambda: world.links.check(clients))


def _problem(path: str, check: Callable[[], None]) -> Iterator[Problem]:
    try:
        check()
    except ValueError as error:
        yield Problem(path, str(error))


def _check_delay(scenario: Scenario) -> None:
    delay, clients = scenario.world.delay, scenario.data.clients
    delay.check(scenario.data.participants)
    if type(delay).watts is not Delay.watts:
        require_each(delay.watts(Stream(scenario.seed, "delay"), clients), clients, type(delay).__name__)


def _check_memory(scenario: Scenario) -> None:
    if scenario.capacity is None or scenario.capacity.by != "memory":
        return
    if scenario.world.delay.memory(Stream(scenario.seed, "delay"), scenario.data.clients) is None:
        text = "memory needs world.delay to be a trace with a column memory_bytes, got none"
        raise ValueError(f"{text}; name one, add the column, or take speed")


def watts_of(scenario: Scenario) -> float | list[float] | None:
    """Returns the power of any client, or a list with that of each, in W; None if the scenario does not say."""
    clients, groups = scenario.data.clients, scenario.groups
    of_devices = scenario.world.delay.watts(Stream(scenario.seed, "delay"), clients)
    power = scenario.world.watts or of_devices
    if power is None or not any(group.watts for group in scenario.clients):
        return list(power) if isinstance(power, tuple) else power
    each = [power] * clients if isinstance(power, float) else list(power)
    for client in range(clients):
        if (group := groups.of(client)) and group.watts:
            each[client] = group.watts
    return each


def watts_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the power that a scenario gives its clients, without reading a trace."""
    world, clients = scenario.world, scenario.data.clients
    of_groups = {f"clients.{place}.watts": group.watts for place, group in enumerate(scenario.clients) if group.watts}
    given = {**({"world.watts": world.watts} if world.watts else {}), **of_groups}
    if world.delay.unit != "seconds":
        text = "needs delays in seconds, which energy is power times, got rounds; set world.delay.unit, or leave it out"
        yield from (Problem(key, text) for key in given)
    if isinstance(world.watts, tuple) and len(world.watts) != clients:
        text = f"must have one number for each of {clients} clients, got {len(world.watts)}; give one number for all"
        yield Problem("world.watts", text)


def require_each(power: Any, clients: int, delay: str) -> None:
    """Raises ValueError if what a delay returns as the power of clients is not one positive number for each."""
    if power is None:
        return
    must = f"must be None or a list with a positive number for each of {clients} clients, as {delay}.watts returns it"
    if not isinstance(power, list) or len(power) != clients:
        raise ValueError(f"{must}, got {f'a list of {len(power)}' if isinstance(power, list) else quoted(power)}")
    if wrong := [one for one in power if not (isinstance(one, int | float) and 0 < one < inf)]:
        raise ValueError(f"{must}, got {quoted(wrong[0])} among them")


def require_power(scenario: Scenario) -> None:
    """Raises ValueError if groups have power and other clients have none. It may read the file of a trace."""
    if any(group.watts for group in scenario.clients) and watts_of(scenario) is None:
        raise ValueError("must say the power of all clients where groups have watts, got null; give one number")
