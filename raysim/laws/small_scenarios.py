"""Small scenarios in which parts are tried: a few clients with a few handwritten digits, quadratics, or texts."""

import copy
from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from raysim.algorithms import Central, Peer
from raysim.algorithms.sliced import Deep, Sliced
from raysim.data.sources.synthetic import Quadratic
from raysim.models.part import ModelPart, Vector
from raysim.parts.part import Part, spell_out
from raysim.scenario.kinds import Kind
from raysim.scenario.words import placed
from raysim.uplink.noise import LocalNoise
from results.yaml import parse

Raw = dict[str, Any]

SMALL: dict[str, Any] = parse((files("raysim.laws") / "small_scenarios.yaml").read_text(encoding="utf-8"))
SMALL["texts"]["data"]["path"] = str(files("raysim.laws") / "texts.jsonl")


def trials(kind: Kind, part: type[Part], block: Raw) -> Iterator[Raw]:
    """Yields scenarios with the part, the plainest first. It is tried in the first one that is right."""
    with_part = placed(kind, block)
    base = merged(SMALL["digits"], SMALL["peers"] if for_peers(kind, part) else SMALL["server"])
    if kind.key in ("world.edge_delay", "world.links"):
        base = merged(base, SMALL["asynchronous"])
    if kind.key == "data":  # whose inputs may be large
        base = merged(base, {"local": {"lr": 0.001}})
    if kind.key.startswith("world.delay"):
        base = merged(base, SMALL["patient"])
    if getattr(part, "needs", None) == "targets":  # a metric or a loss
        base = merged(base, SMALL["regression"])
    if getattr(part, "needs", None) == "several labels":
        x = np.random.default_rng(0).standard_normal((160, 5), np.float32)
        base = merged(base, {"data": {"name": "arrays", "arrays": {"x": x, "y": (x[:, :3] > 0).astype(int)}}})
        base = merged(base, {"data": {"clients": 8, "partition": "iid", "task": "multi_label"}})
    if kind.key == "release":
        base = merged(base, SMALL["released"])
    if issubclass(part, Quadratic):
        base = merged(base, {"model": "vector", "world": {"dispatch": {"per_round": 1}}})
    if issubclass(part, Vector):
        base = merged(base, {"data": SMALL["alike"]["data"]})
    if issubclass(part, ModelPart) and "text" in part.takes and "images" not in part.takes:
        base = merged(merged(base, SMALL["texts"]), SMALL["tasks"].get(getattr(part, "task", None), {}))
    if issubclass(part, LocalNoise):  # whose size may follow from a bound
        with_part["uplink"] = [{"name": "clip_norm", "max": 1.0, "order": part.order}, *with_part["uplink"]]
    if kind.key == "data.tokenizer":  # last, because the example of a path is no file
        with_part = merged(with_part, SMALL["texts"])
    if issubclass(part, Deep) or issubclass(kind.owner, Deep):
        base = merged(base, SMALL["deep"])
    if issubclass(part, Sliced):
        base = merged(base, SMALL["sliced"])
    if kind.key != "algorithm":
        yield merged(base, with_part)
        return
    base = merged(base, SMALL["asynchronous"]) if getattr(part, "pairs", False) else base
    base = base if for_peers(kind, part) else merged(base, SMALL["own_models"])  # so that all methods are called
    for needs in sorted(product((False, True), repeat=len(SMALL["needs"])), key=sum):
        raw = base
        for need, wanted in zip(SMALL["needs"], needs, strict=True):
            raw = merged(raw, need) if wanted else raw
        yield merged(raw, with_part)


def quadratics(part: type[Part], block: Raw) -> Raw:
    """Returns a scenario in which an algorithm minimises quadratics that all have the same optimum."""
    world: Raw = {"topology": "ring"} if issubclass(part, Peer) else {"world": {"dispatch": {"per_round": 4}}}
    alike = merged(SMALL["alike"], SMALL["asynchronous"]) if getattr(part, "pairs", False) else SMALL["alike"]
    return merged(merged(alike, world), {"algorithm": block})


def for_peers(kind: Kind, part: type[Part]) -> bool:
    """Whether a part can only be tried without a server."""
    of_peers = kind.key.startswith(("topology", "world.edge_delay", "world.links"))
    return of_peers or (issubclass(part, Peer) and not issubclass(part, Central))


def merged(base: Raw, changes: Raw) -> Raw:
    """Returns a scenario with other keys. A part of another name replaces the one that was there."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        there = spell_out(result.get(key))
        alike = isinstance(there, dict) and isinstance(value, dict) and value.get("name") in (None, there.get("name"))
        result[key] = merged(there, value) if alike else copy.deepcopy(value)
    return result
