"""Small scenarios in which parts are tried: a few clients with a few handwritten digits, quadratics, or texts."""

import copy
from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from typing import Any

from raysim.algorithms import Central, Peer
from raysim.data.sources.synthetic import Quadratic
from raysim.models.dense import Vector
from raysim.models.part import ModelPart
from raysim.parts.part import Part, spell_out
from raysim.scenario.kinds import Kind
from raysim.scenario.words import placed

Raw = dict[str, Any]

DIGITS: Raw = {
    "name": "trial",
    "data": {"name": "digits", "clients": 8, "partition": "iid", "train_samples": 160, "test_samples": 60},
    "model": {"name": "mlp", "hidden": [8]},
    "local": {"lr": 0.1, "batch_size": 8},
    "run": {
        "rounds": 6,
        "evaluate_every": 3,
        "on_divergence": "go_on",  # what is not finite breaks a law of its own
        "checkpoint": {"every_s": None, "at_end": False},  # the folder is deleted
    },
    "resources": {"chunk": 2},
}
SERVER: Raw = {
    "algorithm": "fedavg",
    "world": {"dispatch": {"per_round": 4}, "delay": {"name": "half_normal", "sigma": 1.0}},
}
PATIENT: Raw = {"algorithm": {"name": "fedbuff", "buffer": 4}}  # an algorithm that discards no late updates
PEERS: Raw = {"algorithm": "decfedavg", "topology": "ring", "world": {"loss": 0.3}}  # at times a peer hears of nobody
ASYNCHRONOUS: Raw = {"world": {"synchronous": False, "delay": {"name": "constant", "value": 1.0, "unit": "seconds"}}}
REGRESSION: Raw = {
    "data": {"name": "linear_regression", "clients": 8, "partition": "iid", "samples": 400, "features": 5},
    "model": "linear",
    "local": {"lr": 0.001},
}
TEXTS: Raw = {
    "data": {
        "name": "text",
        "path": str(files("raysim.laws") / "texts.jsonl"),
        "length": 12,
        "pack": True,
        "clients": 8,
        "partition": "iid",
    },
    "model": {"name": "transformer", "width": 8, "heads": 2, "layers": 2},
}
TASKS: dict[str | None, Raw] = {  # changes of the texts, by the task of a model
    "masked": {"data": {"task": "masked", "pack": False}},
    "classify": {"data": {"task": "classify", "pack": False, "label": "kind"}},
}
OWN_MODELS: Raw = {"data": {"local_test": 0.2, "unseen": 0.25}, "run": {"evaluate_clients": "all"}}
ALIKE: Raw = {  # quadratics of different curvatures with one optimum, and no delays
    "name": "quadratics",
    "data": {"name": "quadratic", "centers": [[1.0, -2.0, 3.0]] * 4, "curvatures": [0.5, 1.0, 1.5, 1.0]},
    "model": "vector",
    "local": {"lr": 0.3, "batch_size": None},
    "run": {"rounds": 30, "evaluate_every": 30, "on_divergence": "go_on", "checkpoint": DIGITS["run"]["checkpoint"]},
}
TIERED: Raw = {
    "dispatch": {"per_round": None, "per_tier": 2, "tiers": 2},
    "delay": {"name": "log_normal", "median": 10.0, "sigma": 1.0, "unit": "seconds", "redraw": "client"},
}
# Needs of some algorithms: samples at the server, personal parameters, public inputs, a single local step, tiers,
# adapters, and those that can be merged.
NEEDS: tuple[Raw, ...] = (
    {"server_data": {"name": "in_domain", "samples": 40}},
    {"model": {"personal": ["head"]}},
    {"public": {"samples": 20}},
    {"local": {"steps": 1}},
    {"world": TIERED},
    {"model": {"lora": {"rank": 2}}},
    {"model": {"lora": {"rank": 2, "merge": True}}},
)


def trials(kind: Kind, part: type[Part], block: Raw) -> Iterator[Raw]:
    """Yields scenarios with the part, the plainest first. It is tried in the first one that is right."""
    with_part = placed(kind, block)
    base = merged(DIGITS, PEERS if for_peers(kind, part) else SERVER)
    if kind.key == "world.edge_delay":
        base = merged(base, ASYNCHRONOUS)
    if kind.key == "data":  # whose inputs may be large
        base = merged(base, {"local": {"lr": 0.001}})
    if kind.key.startswith("world.delay"):
        base = merged(base, PATIENT)
    if getattr(part, "needs", None) == "targets":  # a metric or a loss
        base = merged(base, REGRESSION)
    if issubclass(part, Quadratic):
        base = merged(base, {"model": "vector", "world": {"dispatch": {"per_round": 1}}})
    if issubclass(part, Vector):
        base = merged(base, {"data": ALIKE["data"]})
    if issubclass(part, ModelPart) and "text" in part.takes and "images" not in part.takes:
        base = merged(merged(base, TEXTS), TASKS.get(getattr(part, "task", None), {}))
    if kind.key == "data.tokenizer":  # last, for the example of a path is no file
        with_part = merged(with_part, TEXTS)
    if kind.key != "algorithm":
        yield merged(base, with_part)
        return
    base = base if for_peers(kind, part) else merged(base, OWN_MODELS)  # so that all methods are called
    for needs in sorted(product((False, True), repeat=len(NEEDS)), key=sum):
        raw = base
        for need, wanted in zip(NEEDS, needs, strict=True):
            raw = merged(raw, need) if wanted else raw
        yield merged(raw, with_part)


def quadratics(part: type[Part], block: Raw) -> Raw:
    """Returns a scenario in which an algorithm minimises quadratics that all have the same optimum."""
    world: Raw = {"topology": "ring"} if issubclass(part, Peer) else {"world": {"dispatch": {"per_round": 4}}}
    return merged(merged(ALIKE, world), {"algorithm": block})


def for_peers(kind: Kind, part: type[Part]) -> bool:
    """Whether a part can only be tried without a server."""
    of_peers = kind.key.startswith("topology") or kind.key == "world.edge_delay"
    return of_peers or (issubclass(part, Peer) and not issubclass(part, Central))


def merged(base: Raw, changes: Raw) -> Raw:
    """Returns a scenario with other keys. A part of another name replaces the one that was there."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        there = spell_out(result.get(key))
        alike = isinstance(there, dict) and isinstance(value, dict) and value.get("name") in (None, there.get("name"))
        result[key] = merged(there, value) if alike else copy.deepcopy(value)
    return result
