"""Turns pydantic's errors about a scenario into problems in terms of the keys of its file."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from raysim.parts.errors import BadValue, Problem, nearest, quoted
from raysim.parts.own import WrongClass
from raysim.parts.part import Part, names_of, one_of, parts_of, spell_out

# What must hold, by the type of pydantic's error. Pydantic's own texts for these types speak of Python, not of YAML.
_MUST = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a block of keys",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
    "string_type": "must be text",
    "string_too_long": "must have at most {max_length} letters",
    "string_pattern_mismatch": "must be text that matches {pattern}",
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "int_parsing_size": "must be an integer of fewer digits",
    "float_type": "must be a number",
    "model_type": "must be a block of keys",
    "model_attributes_type": "must be a name, or a block of keys with one",
    "union_tag_not_found": "must have a name, of those that `raysim list` shows",
    "union_tag_invalid": "must be one of {expected_tags}, or a custom class, as module:Class",
    "literal_error": "must be {expected}",
}


def explain(error: ValidationError, schema: type[Part], raw: dict[str, Any]) -> list[Problem]:
    """Returns one problem for each path.

    If a value may be of several kinds, pydantic has an error for each kind; their texts are joined by "or".
    """
    texts: dict[str, list[str]] = {}
    for details in error.errors():
        path, text = _problem(details, schema, raw)
        texts.setdefault(path, []).append(text)
    return [Problem(path, ", or ".join(alternatives)) for path, alternatives in texts.items()]


def _problem(details: ErrorDetails, schema: type[Part], raw: dict[str, Any]) -> tuple[str, str]:
    """Returns the path of an error in the file, and what is wrong there."""
    keys, part, value = _locate(details, schema, raw)
    kind, context = details["type"], details.get("ctx", {})
    path = ".".join(map(shown, keys))
    if kind == "invalid_key":
        return path, f"must be a key of text, got {quoted(details['input'])}; put it in quotes"
    if kind == "extra_forbidden":
        known = list(part.model_fields) if part else []
        paths = _elsewhere(str(keys[-1]), path.rpartition(".")[0], schema)
        meant = f" (did you mean {' or '.join(map(repr, paths[:3]))}?)" if paths else nearest(keys[-1], known)
        owners = _places(schema).get(str(keys[-1]), {}).get(path, [])
        meant = f" (a key of {', '.join(dict.fromkeys(owners))})" if owners else meant
        return path, f"unknown key{meant}; known here: {', '.join(known)}"
    if kind == "missing":
        return path, "must be given, got nothing"
    if kind == "value_error":  # raised by one of raysim's validators
        if isinstance(error := context.get("error"), BadValue) and error.key:
            return ".".join(filter(None, (path, error.key))), error.text
        return path, details["msg"].removeprefix("Value error, ")
    if kind == "wrong_class":
        return (path if isinstance(value, Part) else f"{path}.name"), details["msg"]
    must = _MUST[kind].format_map(context) if kind in _MUST else details["msg"].replace("Input should", "must")
    if kind == "union_tag_invalid":
        path, value = f"{path}.name", value["name"] if isinstance(value, dict) else value
    options = re.findall("'([^']*)'", must) if kind in ("union_tag_invalid", "literal_error") else []
    return path, f"{must}, got {quoted(value)}{nearest(value, options)}"


def _elsewhere(key: str, at: str, root: type[Part]) -> list[str]:
    """Returns the paths that are probably meant by an unknown key: the shortest ones of the same last word, within the
    block if there are some, and rather of blocks than of parts. None where another part has the key just there.

    at: the path of the block that has it.
    """
    known = _places(root).get(key, {})
    if (f"{at}.{key}" if at else key) in known:
        return []
    near = [path for path in known if at and path.startswith(f"{at}.")] or [*known]
    found = [path for path in near if not known[path]] or near
    words = min((path.count(".") for path in found), default=0)
    return [path for path in found if path.count(".") == words]


@cache  # because going through all parts takes ten times as long as checking a file
def _places(root: type[Part]) -> dict[str, dict[str, list[str]]]:
    """Returns the dotted paths of all keys, by their last words, each with the names of the parts that have it; none
    for a block."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, owner, _ in walk(root):
        found.setdefault(path.rpartition(".")[2], {}).setdefault(path, []).extend(names_of(owner))
    return found


def walk(owner: type[Part], above: str = "") -> Iterator[tuple[str, type[Part], Any]]:
    """Yields (dotted path, the block or part that has it, annotation) of all keys of a block, and of the blocks and
    parts below it."""
    for key, field in owner.model_fields.items():
        annotation = field.rebuild_annotation()
        yield above + key, owner, annotation
        for part in parts_of(annotation):
            yield from walk(part, f"{above}{key}.")


def shown(key: int | str) -> str:
    """Returns a key as paths show it. A strange one is quoted, so that a path is always one short line."""
    text = str(key)
    return text if text.isprintable() and len(text) <= 100 else quoted(key)


def _locate(
    details: ErrorDetails, schema: type[Part], raw: dict[str, Any]
) -> tuple[list[int | str], type[Part] | None, Any]:
    """Returns the keys that lead to an error, the part that the last key belongs to, and the value there.

    Pydantic's location also holds names of alternatives of unions, which are not keys of the file and are left out.
    """
    keys: list[int | str] = []
    part: type[Part] | None = schema  # the part that `value` is checked against; None if that is not known yet
    owner = part
    options: list[type[Part]] = []  # the parts that `value` may be, if there are several
    annotation: Any = None  # annotation of the field that holds `value`, or that holds the list with it
    mapping = False  # whether `value` holds such parts under keys that the user chooses
    value: Any = raw
    last = len(details["loc"]) - 1
    for place, key in enumerate(details["loc"]):
        if options and isinstance(value, str):  # a bare name
            value = {"name": value}
        chosen = [option for option in options if key in names_of(option)]
        if chosen and part is None:
            part = chosen[0]
        elif mapping and _holds(value, key):
            keys.append(key)
            value, mapping = value[key], False
        elif _holds(value, key) or (place == last and details["type"] in ("missing", "invalid_key")):
            keys.append(key)
            owner = part
            field = part.model_fields.get(str(key)) if part else None
            value = value[key] if _holds(value, key) else None
            annotation = field.rebuild_annotation() if field else annotation if isinstance(key, int) else None
            options = _options(annotation, value)
            mapping = field is not None and get_origin(field.annotation) is dict
            part = options[0] if len(options) == 1 else None
    return keys, owner, value


def _options(annotation: Any, value: Any) -> list[type[Part]]:
    """Returns the parts that a value may be, where a field has this annotation. A class from outside is the only one.

    Pydantic's location has no name for that one, since its errors are not those of an alternative of a union.
    """
    block = spell_out(value)
    name = block.get("name") if isinstance(block, dict) else None
    if (choice := one_of(annotation)) and isinstance(name, str):
        with suppress(WrongClass):
            if (part := choice.find(name)) and part not in choice.parts:
                return [part]
    return parts_of(annotation)


def _holds(value: Any, key: int | str) -> bool:
    return key in value if isinstance(value, dict) else isinstance(value, list) and key in range(len(value))
