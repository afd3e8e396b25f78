"""The cases of a sweep: which of them are taken, and which have the keys that the command line sets."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from raysim.parts.errors import Problem, ScenarioError
from raysim.scenario.load import assign, read_back, set_case


def choose(block: dict[str, Any], cases: Sequence[str]) -> list[Problem]:
    """Removes all cases but these from the plain data of a sweep, in place. Returns a problem if one of them does
    not exist."""
    known = block.get("cases", {})
    if not known:
        text = f"must not be given, because the file has no cases, got {', '.join(cases)}; leave it out"
        return [Problem("--cases", text)]
    if strangers := [case for case in cases if case not in known]:
        text = f"must be some of {', '.join(known)}, got {', '.join(strangers)}"
        return [Problem("--cases", text)]
    block["cases"] = {case: known[case] for case in cases}
    return []


def missing(
    raw: dict[str, Any], source: str, cases: Mapping[str, dict[str, Any]], given: Mapping[str, Any]
) -> dict[str, frozenset[str]]:
    """Returns, for each case, the keys that another case has and it has not.

    A key that no case has is left out, so that it is refused like any unknown key.
    raw: the scenario file without its sweep.
    source: its name, for errors.
    given: keys that the command line sets, each with a value.
    """
    lacking: dict[str, set[str]] = {}
    for case, settings in cases.items():
        of_case = copy.deepcopy(raw)
        set_case(of_case, settings)
        lacking[case] = set()
        for key in sorted(given, key=lambda key: key.count(".")):  # a block comes before the keys in it
            if _lacks(of_case, key, source):
                lacking[case].add(key)
            else:
                assign(of_case, key, copy.deepcopy(given[key]), "--set")
    nobodys = set.intersection(*lacking.values()) if lacking else set()
    return {case: frozenset(keys - nobodys) for case, keys in lacking.items()}


def _lacks(raw: dict[str, Any], key: str, source: str) -> bool:
    """Returns whether a scenario, given as plain data, has no such key; False if the scenario itself is wrong."""
    try:
        found: Any = read_back(raw, source).resolved()
    except ScenarioError:
        return False  # the problems are reported when the runs are made
    for word in key.split("."):
        if not isinstance(found, dict):
            return False
        if word not in found:
            return True
        found = found[word]
    return False
