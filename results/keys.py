"""Scenarios as plain data: texts in YAML, and keys, which are dotted paths such as `world.delay.sigma`, with values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from io import StringIO
from typing import Any, TypeAlias

import pyarrow as pa
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError

Value: TypeAlias = str | int | float | bool | None

_LONGEST = 400  # letters of a message
_OF_SCHEDULES = {"name", "over", "warmup", "warmup_from"}  # keys that all schedules have
# Keys that are newer than others, with the values by which runs of older versions, which lack them, went. They do not
# count in hashes, so that those of older scenarios stay.
LATER: dict[str, Any] = {
    "uplink": [],
    "downlink": [],
    "release": None,
    "privacy": None,
    "capacity": None,
    "local.batches": "shuffled",
    "run.until.up_bytes": None,
    "run.until.down_bytes": None,
    "world.dispatch.probability": None,
    "topology.step": 1.0,
    "topology.directed": False,
    "topology.period_s": None,
    "world.on_loss": "gone",
    "world.leave": "wait",
    "world.join": "first",
    "world.links": {"name": "always"},
}


class UnknownKey(ValueError):
    """Raised for a key that no scenario of these runs has."""


def flatten(block: Mapping[str, Any], prefix: str = "") -> dict[str, Value]:
    """Returns a scenario's values by dotted path. A list is given as its JSON text.

    A schedule, which stands where a number may, has a text, such as `exponential(start=0.1, factor=0.998)`, beside the
    values of its own keys.
    """
    keys: dict[str, Value] = {}
    for name, value in block.items():
        if isinstance(value, Mapping):
            if value.keys() >= _OF_SCHEDULES:
                keys[prefix + name] = _schedule(value)
            keys |= flatten(value, f"{prefix}{name}.")
        else:
            keys[prefix + name] = json.dumps(value) if isinstance(value, list) else value
    return keys


def with_later(keys: dict[str, Value]) -> dict[str, Value]:
    """Returns a run's keys, and those that are newer than the version that ran it, of the blocks that it has."""
    blocks = {key[:end] for key in keys for end, letter in enumerate(key) if letter == "."}
    newer = {
        path: default for path, default in LATER.items() if path not in blocks and path.rpartition(".")[0] in blocks
    }
    return flatten(newer) | keys


def _schedule(block: Mapping[str, Any]) -> str:
    """Returns a schedule as a text, with the keys that tell it from others of its name."""
    silent = {"over": "rounds", "warmup": 0.0} | ({} if block["warmup"] else {"warmup_from": block["warmup_from"]})
    shown = {key: value for key, value in block.items() if key != "name" and value not in (silent.get(key), None, [])}
    settings = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in shown.items())
    return f"{block['name']}({', '.join(settings)})"


def spell_out(key: str, known: Iterable[str]) -> str:
    """Returns the key's whole path: `algorithm` is short for `algorithm.name`.

    Raises UnknownKey, naming the nearest keys, if no scenario has it.
    """
    names = set(known)
    for candidate in (key, f"{key}.name"):
        if candidate in names:
            return candidate
    nearest = get_close_matches(key, names, 3, 0.4) or sorted(names)[:3]
    raise UnknownKey(f"{key}: must be a key of the runs' scenarios, got none of that name; nearest are {nearest}")


def varying(scenarios: Sequence[Mapping[str, Value]]) -> list[str]:
    """Returns the keys whose values differ between the scenarios, in order of appearance. A key within a schedule is
    left out, for the schedule's own text says as much."""
    order = dict.fromkeys(key for scenario in scenarios for key in scenario)
    differ = [key for key in order if len({_distinct(scenario, key) for scenario in scenarios}) > 1]
    within = {key for scenario in scenarios for key in scenario if key.rpartition(".")[0] in scenario}
    return [key for key in differ if key not in within]


def _distinct(scenario: Mapping[str, Value], key: str) -> str:
    """Returns what differs for different values: 1 is not true, but 1 and 1.0 are one value, and so are null, an empty
    list and a missing key, which only some versions or other parts have."""
    value = scenario.get(key)
    return repr(None) if value == "[]" else repr(float(value)) if type(value) is int else repr(value)


def column(values: Sequence[Value]) -> pa.Array[Any]:
    """Returns a key's values over runs, null where it is missing.

    The array holds integers, numbers or booleans if all values are of that kind, and else texts.
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array([value if value is None else float(value) for value in values], pa.float64())
    if kinds <= {int, float} or kinds == {bool}:
        return pa.array(values)
    return pa.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values])


# --- YAML -------------------------------------------------------------------------------------------------------------


class _Composer(Composer):
    """Makes the nodes of a text."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False  # YAML allows an anchor to be defined again


def parse(text: str) -> Any:
    """Returns what a text in YAML 1.2 holds. Raises ValueError, with a message of one line, if it is no such text."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Composer
    try:
        return yaml.load(text)
    except TypeError:
        raise ValueError("keys must be text; put them in quotes") from None
    except RecursionError:
        raise ValueError("blocks must not be nested so deep") from None
    except Exception as error:  # the library lets errors of functions such as chr() through
        raise ValueError(_one_line(error)) from error


def as_yaml(value: Any) -> str:
    """Returns plain data as YAML, with the innermost blocks and lists in one line."""
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 100
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue()


def _one_line(error: Exception) -> str:
    if not isinstance(error, MarkedYAMLError):
        text = " ".join(str(error).split()) or type(error).__name__
    else:
        mark, what = error.problem_mark, ", ".join(part for part in (error.context, error.problem) if part)
        text = f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
