"""Checks of a whole scenario: each part may be right by itself, but the parts must also fit together."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Literal

from raysim.algorithms import Central
from raysim.clients import Behaviour
from raysim.local.augment import Augmentation
from raysim.local.loss import TrainingLoss
from raysim.metrics import Metric
from raysim.parts.errors import Problem
from raysim.parts.part import Part
from raysim.scenario.block_checks import (
    client_problems,
    level_problems,
    local_problems,
    schedule_problems,
    transform_problems,
    watts_problems,
)
from raysim.scenario.peer_checks import peer_problems
from raysim.scenario.privacy_checks import privacy_problems
from raysim.scenario.schema import Scenario
from raysim.scenario.server_checks import architecture_problems, model_problems, server_problems
from raysim.terms import Buffer, Moment
from raysim.world.mixing import limit
from results.info import directions
from results.location import UnknownLocation, is_uri, location
from results.texts import extra

_TITLE = re.compile(r"(?!.*_(min|max|gap)$)[A-Za-z]\w*")  # of metrics; `consensus` starts those of how peers differ
_MEASURED = (
    *("accuracy", "loss", "samples", "iterations", "unconverged"),
    *("consensus", "consensus_outputs", "mass", "present", "second_eigenvalue"),
)


def problems_of(scenario: Scenario) -> list[Problem]:
    """Returns all problems of a scenario whose parts are valid. Their paths start at the scenario."""
    family_problems = server_problems if scenario.has_server else peer_problems
    return [
        *_location_problems(scenario),
        *(Problem("data", text) for text in (*scenario.data.problems(), *scenario.data.division_problems())),
        *scenario.model.problems(),
        *model_problems(scenario),
        *_metric_problems(scenario),
        *schedule_problems(scenario),
        *watts_problems(scenario),
        *client_problems(scenario),
        *transform_problems(scenario),
        *local_problems(scenario),
        *level_problems(scenario),
        *architecture_problems(scenario),
        *(privacy_problems(scenario) if scenario.release or scenario.privacy else ()),
        *scenario.algorithm.at(Moment()).problems(scenario),
        *family_problems(scenario),
    ]


def notes_of(scenario: Scenario) -> list[str]:
    """Returns warnings about settings that are allowed but seldom meant. Each begins with its key."""
    return list(_server_notes(scenario) if scenario.has_server else _peer_notes(scenario))


def _peer_notes(scenario: Scenario) -> Iterator[str]:
    topology, algorithm = scenario.topology, scenario.peer
    if topology is None or algorithm.mixes not in ("pull", "symmetric") or topology.epoch(1, 1e9):
        return
    counts = limit(topology.neighbours(scenario.data.clients, scenario.seed))
    if counts.max() - counts.min() > 1e-6:
        most, least = int(counts.argmax()), int(counts.argmin())
        cure = "an algorithm that pushes, such as sgp" if topology.is_directed else "metropolis"
        yield (
            f"topology.weights: columns of W do not sum to 1, so {algorithm.name} tends to a mean in which peers count "
            f"differently: peer {most} {counts[most]:.4g} times as much as in the plain mean, and peer {least} "
            f"{counts[least]:.4g} times; if all are to count equally, take {cure}"
        )


def _server_notes(scenario: Scenario) -> Iterator[str]:
    """Yields warnings about settings that are allowed but seldom meant."""
    algorithm, trigger, picked = scenario.central, scenario.central.trigger, _picked(scenario)
    if isinstance(trigger, Buffer) and picked is not None and trigger.size > picked:
        yield (
            f"algorithm: the server never steps, because it waits for {trigger.size} updates, and {picked} clients are "
            "picked in all; let it wait for fewer, or raise run.rounds or world.dispatch"
        )
    if scenario.release is not None and scenario.release.multiplier and scenario.privacy is None:
        yield (
            "privacy: left out, so nothing says what the noise of `release` guarantees; set privacy.delta, for example "
            "to 1e-5, and epsilon is known before training"
        )
    personal = algorithm.own_model or type(algorithm).personal is not Central.personal
    if scenario.run.evaluate_clients is None and personal and not scenario.levels:  # slices are evaluated anyway
        yield (
            f"run.evaluate_clients: clients of {algorithm.name} predict with their own models, which nothing "
            "evaluates, so all metrics are of the global model; set it to all, and data.local_test, for example to 0.2"
        )


def _picked(scenario: Scenario) -> int | None:
    """Returns how many clients a run picks at most, or None if that depends on delays or on what ends it."""
    dispatch, rounds = scenario.world.dispatch, scenario.run.rounds
    if rounds is None:
        return None
    if dispatch.picks is not None:
        return sum(map(len, dispatch.picks[:rounds]))
    return None if dispatch.per_round is None else dispatch.per_round * rounds


def _location_problems(part: Part) -> Iterator[Problem]:
    """Yields a problem for each URI whose scheme is not known, or whose library is not installed.

    Texts in parts of the user's own may be anything, and are not looked at.
    """
    for path, text in _texts(part, ""):
        if "://" in text and is_uri(text):
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


def _metric_problems(scenario: Scenario) -> Iterator[Problem]:
    metrics = scenario.run.metrics
    for place, metric in enumerate(metrics):
        path = f"run.metrics.{place}"
        if metric.library and find_spec(metric.library) is None:
            text = f"{metric.name} needs the package {metric.library}, which is not installed; {extra('metrics')}"
            yield Problem(path, text)
        if not _TITLE.fullmatch(metric.title):
            text = "must have a name of letters, digits and _ that does not end in _min, _max or _gap"
            yield Problem(path, f"{text}, got {metric.title!r}; set `label`")
        if metric.title in (*_MEASURED, *(other.title for other in metrics[:place])):
            yield Problem(path, f"must have another name than all other metrics, got {metric.title!r}; set `label`")
    yield from _until_problems(scenario)
    for path, measured in _measured(scenario):
        yield from (Problem(f"{path}.{key}", text) for key, text in measured.problems())
        if scenario.data.holds == ("functions",):
            text = "must not be given with the quadratic data, where models return their loss; leave it out"
            yield Problem(path, text)
    if "validation" in scenario.run.evaluate_on and not scenario.data.validation:
        text = "has validation, for which no samples are set aside; set data.validation to a share, such as 0.1"
        yield Problem("run.evaluate_on", text)
    if scenario.data.classes is not None:
        yield from unmet(scenario, "labels" if scenario.data.classes else "targets")


def _until_problems(scenario: Scenario) -> Iterator[Problem]:
    run = scenario.run
    asked = {} if run.keep_best is None else {"run.keep_best": run.keep_best.partition(" ")[2]}
    if run.until and run.until.metric is not None:
        asked["run.until.metric"] = run.until.metric
    if not asked or any([*metric.problems()] for metric in run.metrics):  # their directions are not known then
        return
    known = directions({"larger_is_better": run.directions})
    for path, metric in asked.items():
        if not scenario.data.validation:
            text = "needs validation samples, which no client trains on, got none"
            yield Problem(path, f"{text}; set data.validation to a share, such as 0.1")
        ordered = path == "run.keep_best" or (run.until and run.until.patience is not None)
        if ordered and metric not in known:
            text = f"needs a metric of which it is known whether larger is better, got {metric!r}"
            yield Problem(path, f"{text}; take accuracy or loss, or set its larger_is_better")


def _measured(scenario: Scenario) -> Iterator[tuple[str, Metric | TrainingLoss]]:
    """Yields the metrics and the loss that the scenario names, each with its path."""
    yield from ((f"run.metrics.{place}", metric) for place, metric in enumerate(scenario.run.metrics))
    if scenario.run.loss is not None:
        yield "run.loss", scenario.run.loss


def _needing(scenario: Scenario) -> Iterator[tuple[str, Metric | TrainingLoss | Augmentation | Behaviour]]:
    """Yields all parts that say what they need of the data, each with its path."""
    if scenario.data.holds != ("functions",):
        yield from _measured(scenario)
        yield from ((f"local.augment.{place}", one) for place, one in enumerate(scenario.local.augment))
    yield from ((f"clients.{place}.behaviour", group.behaviour) for place, group in enumerate(scenario.clients))


Has = Literal["labels", "targets", "several labels"]


def unmet(scenario: Scenario, has: Has) -> Iterator[Problem]:
    """Yields a problem for each metric, behaviour and augmentation, and for the loss, that needs something else of the
    data, such as labels where they have targets.

    has: what the data have. Some data sets tell it only once they are loaded.
    """
    for path, one in _needing(scenario):
        if one.needs is not None and has not in one.needs.split(" or "):
            got = has if has == "several labels" else "none"
            yield Problem(path, f"{one.name} needs {one.needs}, and {scenario.data.name} has {got}; take another")
