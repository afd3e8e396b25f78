"""Checks of schedules, local training, groups of clients and URIs: each must fit the rest of the scenario."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from raysim.algorithms import Central
from raysim.algorithms.algorithm import Algorithm
from raysim.clients import Behaviour, group_problems
from raysim.clients.uplink import uplink_problems
from raysim.data.sources.shakespeare import Shakespeare
from raysim.data.sources.synthetic import LinearRegression, Quadratic
from raysim.local import Local
from raysim.local.augment import AugmentFunction, MixUp
from raysim.parts.errors import Problem
from raysim.parts.part import Part
from raysim.scenario.explain import explain
from raysim.scenario.schema import Scenario
from raysim.terms import Moment
from results.location import UnknownLocation, is_uri, location


def schedule_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each schedule that changes with rounds where there are none, or with steps outside of
    `local`."""
    rounds = not scenario.has_server or scenario.world.has_rounds
    transforms = ((f"uplink.{place}", one) for place, one in enumerate(scenario.uplink))
    for block, schedulable in (("algorithm", scenario.algorithm), ("local", scenario.local), *transforms):
        for key, schedule in schedulable.schedules.items():
            path = f"{block}.{key}.over"
            if schedule.over == "rounds" and not rounds:
                text = "must be versions or time, for this world has no rounds, got rounds"
                yield Problem(path, text)
            if schedule.over == "steps" and (block, key) != ("local", "lr"):
                text = "must be rounds, versions or time: within a training, `local.lr` alone changes, got steps"
                yield Problem(path, text)


def transform_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the transforms of what clients send."""
    algorithm, transforms = scenario.algorithm, scenario.uplink
    if transforms and type(algorithm).traffic is not Algorithm.traffic:
        yield Problem("uplink", f"must be left out for {algorithm.name}, which says itself what travels; leave it out")
    increments = algorithm.increments if isinstance(algorithm, Central) else ()
    yield from uplink_problems(transforms, increments, algorithm.name)
    for place, one in enumerate(transforms if scenario.world.delay.needs_cost and not scenario.has_server else ()):
        for key in one.schedules:
            text = "must be a number where delays between peers are computed, got a schedule; give one"
            yield Problem(f"uplink.{place}.{key}", text)


def local_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what of `local` makes no sense in the scenario. What needs the data or the model is told with them."""
    local, data = scenario.local, scenario.data
    for place, one in enumerate(local.augment):
        path = f"local.augment.{place}"
        if one.images and isinstance(data, Quadratic | LinearRegression | Shakespeare):
            text = f"{one.name} is for images, and {data.name} has none; leave it out, or name a function of your own"
            yield Problem(path, text)
        if isinstance(one, MixUp) and (loss := scenario.run.loss) and not loss.mixes:
            text = "mixup mixes labels, of which run.loss takes one a sample; leave mixup out, or take cross_entropy"
            yield Problem(path, f"{text} without class_weights, got {loss.name}")
        if isinstance(one, AugmentFunction):
            yield from (Problem(f"{path}.{key}", text) for key, text in one.problems())
    if local.precision == "tf32" and not scenario.resources.gpus_per_client:
        text = "must be float32 or bfloat16 on CPUs, got tf32; take one of them, or set resources.gpus_per_client"
        yield Problem("local.precision", text)


def client_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the groups: who is in them, how they train, and what they do."""
    yield from group_problems(scenario.clients, scenario.data.clients)
    of_all = _training_problems(scenario) if scenario.clients else []
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
            text = f"must be {must}, for `local.optimizer` decides who keeps what, got {got}; set it there"
            yield Problem(f"{path}.local.optimizer.keep", text)
        if scenario.data.classes == 0 and type(group.behaviour).labels is not Behaviour.labels:
            text = f"{group.behaviour.name} needs labels, and {scenario.data.name} has none; take another"
            yield Problem(f"{path}.behaviour", text)


def _training_problems(scenario: Scenario) -> list[Problem]:
    """Returns what is wrong with the scenario's `local`, as far as it is right by itself."""
    of_algorithm = scenario.algorithm.at(Moment()).problems(scenario)
    found = (*local_problems(scenario), *schedule_problems(scenario), *of_algorithm)
    return [problem for problem in found if problem.path.startswith("local")]


def location_problems(part: Part) -> Iterator[Problem]:
    """Yields a problem for each URI whose scheme is not known, or whose library is not installed.

    Texts in parts of the user's own may be anything, and are not looked at.
    """
    for path, text in _texts(part, ""):
        if is_uri(text):
            try:
                location(text)
            except UnknownLocation as error:
                yield Problem(path, str(error))


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yields the texts in a part of raysim, with the dotted paths of their keys."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Part) and type(value).__module__.startswith("raysim."):
        for key, inner in value:
            yield from _texts(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, tuple) and value and isinstance(value[0], str | Part):
        for place, inner in enumerate(value):
            yield from _texts(inner, f"{path}.{place}")
