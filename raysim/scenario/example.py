"""An example of each part, as a block of a scenario file."""

from typing import Any, get_origin

from raysim.parts.part import Part, names_of
from raysim.parts.plain import as_tuples
from raysim.scenario.kinds import Kind
from raysim.scenario.schema import Scenario
from raysim.scenario.words import Schema
from results.yaml import as_yaml


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
        return _block(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    if "oneOf" in schema:
        parts = [definitions[choice["$ref"].removeprefix("#/$defs/")] for choice in schema["oneOf"]]
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
