"""What a part's schema says in words: types, values and the keys of a part; and an example of it."""

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_origin

from raysim.parts.part import Part, as_tuples, names_of
from raysim.scenario.kinds import Kind
from raysim.scenario.schema import Scenario
from raysim.schedules.schedulable import SCHEDULE
from results.keys import as_yaml

Schema = dict[str, Any]

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_KINDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}
_REFERENCE = "#/$defs/"


class Key(NamedTuple):
    """The description of a key of a part."""

    name: str  # its dotted path in the part
    type: str  # in words, such as whole number ≥ 1
    unit: str  # of a number; empty if it has none
    default: str  # as a scenario file spells it, or required
    meaning: str


def keys_of(part: type[Part]) -> list[Key]:
    """Returns the description of each key of a block or a part, and of the keys of blocks in it, by dotted path;
    except of the name that chooses the part. KEY stands for any key. Keys of parts that a key can name are not among
    them."""
    schema = part.model_json_schema()
    definitions = schema.get("$defs", {})
    if "properties" not in schema:  # it refers to itself
        schema = definitions[schema["$ref"].removeprefix(_REFERENCE)]
    hidden = {"name"} if names_of(part) else set()
    return [key for key in _keys(schema, definitions, "") if key.name not in hidden]


def _keys(schema: Schema, definitions: dict[str, Schema], above: str) -> Iterator[Key]:
    """Yields the keys of a block, and of the blocks that these hold. above: where the block is, with a dot."""
    for name, value in schema["properties"].items():
        block = definitions.get(value.get("$ref", "").removeprefix(_REFERENCE), {})
        meaning = value.get("description") or block.get("description", "")
        default = "required" if name in schema.get("required", ()) else _default(value, definitions)
        yield Key(above + name, kind(value), unit_of(value), default, meaning)
        for held, below in _blocks(value):
            if "properties" in definitions[held] and f".{name}." not in f".{above}":
                yield from _keys(definitions[held], definitions, f"{above}{name}.{below}")


def _blocks(value: Schema) -> Iterator[tuple[str, str]]:
    """Yields the name of each block that a key can hold, and what comes between the two: KEY. for blocks by key."""
    for part, below in ((value, ""), (value.get("items"), ""), (value.get("additionalProperties"), "KEY.")):
        if isinstance(part, dict):
            alternatives = [part, *part.get("anyOf", [])]
            yield from ((found["$ref"].removeprefix(_REFERENCE), below) for found in alternatives if "$ref" in found)


def unit_of(schema: Schema) -> str:
    """Returns the unit of a number, or of the numbers in a list; empty if it has none."""
    return next((found["unit"] for found in [schema, *schema.get("anyOf", [])] if "unit" in found), "")


def source_of(part: type[Part]) -> str:
    """Returns where an algorithm comes from: what follows the first paragraph of its module's docstring."""
    text = inspect.getdoc(inspect.getmodule(part)) or ""
    return text.partition("\n\n")[2].strip()


def kind(schema: Schema) -> str:
    """Returns the type of a key's value as plain text."""
    for alternative in [schema, *schema.get("anyOf", [])]:
        if "discriminator" in alternative:
            names = ", ".join(alternative["discriminator"]["mapping"])
            return f"one of {names}" + (", or null" if {"type": "null"} in schema.get("anyOf", []) else "")
    if "$ref" in schema:
        return "block"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(alternative) for alternative in schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        return " or ".join(yaml(value) for value in schema.get("enum", [schema.get("const")]))
    return type_words(schema, kind)


def type_words(schema: Schema, kind: Callable[[Schema], str]) -> str:
    """Returns the words for a schema that has a type. kind: gives the words for what lists and blocks hold."""
    of = schema.get("type")
    if of == "array":
        inner = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        pair = " of two" if schema.get("maxItems") == 2 else ""
        return f"list{pair}: {kind(inner)}" if inner else f"list{pair}"
    if of == "object":
        if schema.get("title") == SCHEDULE:
            return SCHEDULE
        inner = schema.get("additionalProperties")
        return f"block of {kind(inner)} by key" if isinstance(inner, dict) and inner else "block"
    if of is None:
        return "anything"
    bounds = [
        f"{sign} {schema[key]:g}" for key, sign in _BOUNDS.items() if key in schema and abs(schema[key]) < 2**31 - 1
    ]
    return " ".join([_KINDS[of], ", ".join(bounds)]).strip()


def yaml(value: Any) -> str:
    """Returns a value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(yaml, value)) + "]"
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _default(schema: Schema, definitions: dict[str, Schema]) -> str:
    """Spells a default. That of a named part is spelled as short as a scenario file may."""
    value = schema.get("default", {})  # what makes a new block each time is not in the schema
    if not isinstance(value, dict):
        return yaml(value)
    if "name" not in value:
        return "its defaults" if value else "{}"
    for alternative in [schema, *schema.get("anyOf", [])]:
        if "discriminator" in alternative:
            target = alternative["discriminator"]["mapping"][value["name"]]
            usual = definitions[target.removeprefix(_REFERENCE)]["properties"]
            differing = {key: v for key, v in value.items() if key == "name" or usual[key].get("default") != v}
            return yaml(differing["name"] if len(differing) == 1 else differing)
    return yaml(value)


def example(kind: Kind, part: type[Part], name: str) -> str:
    """Returns a part as YAML, below the keys that lead to it, with all its keys that have a value.

    name: the name that chooses the part, such as fedbuff or my_module:MyClass.
    """
    block = {key: value for key, value in filled(part, name).items() if value is not None}
    return as_yaml(placed(kind, block))


def placed(kind: Kind, block: Any) -> dict[str, Any]:
    """Returns a block below the keys that lead to its kind, with the part that owns the key where there are several."""
    *way, last = kind.key.split(".")
    in_list = get_origin(kind.owner.model_fields[last].annotation) is tuple
    nested: dict[str, Any] = {last: [block] if in_list else block}
    of_list = bool(way) and get_origin(Scenario.model_fields[way[0]].annotation) is tuple
    if of_list:
        return {way[0]: [{"name": "some", **required(kind.owner), **nested}]}
    if way and (own := names_of(kind.owner)):
        nested = {"name": own[0], **required(kind.owner), **nested}
    for key in reversed(way):
        nested = {key: nested}
    return nested


def filled(part: type[Part], name: str) -> dict[str, Any]:
    """Returns a part's keys, with examples for those that must be given, and defaults for the others."""
    made = part.model_validate(as_tuples({"name": name, **required(part)}))
    dump: dict[str, Any] = made.model_dump(mode="json", serialize_as_any=True)
    return {"name": dump["name"], **dump}


def required(part: type[Part]) -> dict[str, Any]:
    """Returns an example for each key that must be given, and for each other one whose class gives an example."""
    schema = part.model_json_schema()
    definitions, needed = schema.get("$defs", {}), schema.get("required", [])
    return {
        key: _value(value, definitions)
        for key, value in schema["properties"].items()
        if key != "name" and (key in needed or "examples" in value)
    }


def _value(schema: Schema, definitions: dict[str, Schema]) -> Any:
    """Returns a value that a piece of JSON Schema allows."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return _block(definitions[schema["$ref"].removeprefix(_REFERENCE)], definitions)
    if "oneOf" in schema:
        parts = [definitions[choice["$ref"].removeprefix(_REFERENCE)] for choice in schema["oneOf"]]
        easy = [part for part in parts if not part.get("required")]
        return _block((easy or parts)[0], definitions)
    if "anyOf" in schema:
        return _value(next((a for a in schema["anyOf"] if "oneOf" in a), schema["anyOf"][0]), definitions)
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "array":
        items = schema.get("prefixItems") or [schema["items"]] * schema.get("minItems", 1)
        return [_value(item, definitions) for item in items]
    if schema["type"] in ("integer", "number"):
        least = max(schema.get("minimum", 1), 1)
        return least if schema["type"] == "integer" else 0.5 if schema.get("maximum", 2) <= 1 else float(least)
    return {"boolean": True, "object": {}}.get(schema["type"], "...")


def _block(part: Schema, definitions: dict[str, Schema]) -> dict[str, Any]:
    """Returns the smallest block that a part's schema allows."""
    name = part["properties"].get("name", {})
    chosen = {"name": name.get("const") or name["enum"][0]} if name else {}
    needed = [key for key in part.get("required", []) if key != "name"]
    return chosen | {key: _value(part["properties"][key], definitions) for key in needed}
