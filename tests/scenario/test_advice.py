"""The advice of refusals, where it can be followed without thinking, leads to a scenario that is right."""

import re
from typing import Any

import pytest
from conftest import Raw, digits
from refusals import problems
from ruamel.yaml import YAML

from raysim import ScenarioError, parse_scenario
from raysim.scenario.load import assign

STEPS = 5  # pieces of advice that may follow each other


def follow(raw: Raw, path: str, text: str) -> bool:
    """Does what a refusal says, and tells whether it could."""
    if found := re.search(r"set (\w+\.\w+)(?:, for example to| to a share, such as) ([\w.]+)", text):
        return put(raw, path, found[1], found[2])
    if found := re.search(r"(?:for example|try) `?(\{[^`}]+\})", text):
        return put(raw, "", path, found[1])
    if found := re.search(r"`([\w.]+): ([^`]+)`", text) or re.search(r"set ([\w.]+): (\w+)", text):
        return put(raw, path, found[1], found[2])
    if found := re.search(r"must (?:be|give a step) (?:at most|at least|[a-z ]+ or equal to) .*?(\d+)", text):
        return put(raw, "", path, found[1])
    *blocks, last = path.split(".")
    block: Any = raw
    for key in blocks:
        block = block[key]
    if "leave it out" in text:
        return block.pop(last, path) is not path
    if (found := re.search(r"did you mean '(\w+)'", text)) and "unknown key" in text:
        block[found[1]] = block.pop(last)
        return True
    if found := found or re.search(r"must be (\w+) for", text):
        return put(raw, "", path.removesuffix(".name"), found[1])
    found = re.search(r"for example (\[\w+\])$", text)
    return found is not None and put(raw, "", path, found[1])


def put(raw: Raw, path: str, key: str, value: str) -> bool:
    """Sets a key, which is that of a part of what the refusal is about, or a whole one."""
    block: Any = raw
    for step in path.split("."):
        block = block.get(step) if isinstance(block, dict) else None
    whole = f"{path}.{key}" if isinstance(block, dict) and key not in (path, *raw) and "." not in key else key
    return assign(raw, whole, YAML(typ="safe").load(value), "advice") is None


REFUSED: dict[str, Raw] = {
    "a key": {"algorithm": {"name": "fedbuff", "bufer": 5}},
    "a name": {"algorithm": "fedbuf"},
    "more than there are": {"world__dispatch__per_round": 600},
    "less than nothing": {"world__delay__sigma": -5},
    "personal parameters": {"algorithm": "fedrep"},
    "samples of the server": {"algorithm": "feddle"},
    "no server": {"algorithm": "decfedavg"},
    "an optimizer": {"algorithm": "scaffold", "local__optimizer": "adam"},
    "own test samples": {"run__evaluate_clients": "all"},
    "enough updates": {"algorithm": {"name": "fedbuff", "buffer": 10, "aggregate": {"name": "krum", "byzantine": 5}}},
    "a single step": {"algorithm": "d_psgd"},
    "public samples": {"algorithm": "fedf_admm"},
    "tiers": {"algorithm": "fedat"},
    "adapters": {"algorithm": "flora"},
    "the best on validation": {"run__keep_best": "validation accuracy"},
    "a target": {"run__until": {"metric": "accuracy", "at_least": 0.9}},
    "enough for Bulyan": {
        "algorithm": {"name": "fedbuff", "buffer": 5, "aggregate": {"name": "bulyan", "byzantine": 2}}
    },
    "no peers": {"topology": "ring"},
    "equal rates": {"algorithm": "dsgt"},
    "labels at the server": {"algorithm": "hfcl"},
    "chunks": {"resources__chunk": 0},
}


@pytest.mark.parametrize("what", REFUSED)
def test_advice_that_is_followed_leads_to_a_scenario_that_is_right(what: str) -> None:
    raw = digits(**REFUSED[what])
    told = []
    for _ in range(STEPS):
        found = problems(raw)
        told.append(found)
        followed = [follow(raw, path, text) for path, text in found.items()]
        assert any(followed), found
        try:
            parse_scenario(raw)
            return
        except ScenarioError:
            continue
    raise AssertionError(told)
