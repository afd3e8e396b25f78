"""The JSON Schema of scenario files, as the reference pages need it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from raysim.sweep.settings import ScenarioFile

Schema = dict[str, Any]


class Missing(Exception):
    """A key or a part without a description."""


class Option(NamedTuple):
    """A part that a key can name, such as the delay `half_normal`."""

    definition: str  # its key in the schema's definitions
    names: list[str]  # the names that scenario files can give it

    @property
    def schema(self) -> Schema:
        return definition(self.definition)


@cache
def root() -> Schema:
    """The schema of a whole scenario file."""
    return ScenarioFile.model_json_schema()


def definition(name: str) -> Schema:
    """The schema of a block or of a part."""
    found: Schema = root()["$defs"][name]
    return found


def reference(schema: Schema) -> str | None:
    """The name of the definition that a schema refers to, if it is a reference or null."""
    for alternative in [schema, *schema.get("anyOf", [])]:
        if "$ref" in alternative:
            return str(alternative["$ref"]).removeprefix("#/$defs/")
    return None


def block_name(schema: Schema) -> str:
    """The definition of the block that a key holds, or of the blocks in its list or under keys of the user's own."""
    inner = schema.get("additionalProperties") or schema.get("items")
    name = reference(schema) or (reference(inner) if isinstance(inner, dict) else None)
    if name is None:
        raise ValueError(f"must be the schema of a block, got {schema!r}")
    return name


def options(schema: Schema) -> list[Option]:
    """The parts that a key, or each item of its list, can name, in the schema's order; none where it names no part."""
    item = schema.get("items", {})
    for alternative in [schema, *schema.get("anyOf", []), item, *item.get("anyOf", [])]:
        if "discriminator" in alternative:
            names: dict[str, list[str]] = {}
            for name, target in alternative["discriminator"]["mapping"].items():
                names.setdefault(target.removeprefix("#/$defs/"), []).append(name)
            order = [choice["$ref"].removeprefix("#/$defs/") for choice in alternative["oneOf"]]
            return [Option(part, names[part]) for part in order]
    return []


def keys(schema: Schema) -> dict[str, Schema]:
    """The keys of a block or of a part, without the name that chooses the part."""
    properties = dict(schema.get("properties", {}))
    if "name" in properties and ("const" in properties["name"] or "enum" in properties["name"]):
        del properties["name"]
    return properties


def find(path: str) -> Schema:
    """The schema of the key at a dotted path, such as world.delay.flops_per_s.

    Where a key on the way names one of several parts, the first part that has the next key is followed.
    """
    schema = root()
    for key in path.split("."):
        blocks = [schema]
        if "properties" not in schema:
            name = reference(schema) or reference(schema.get("items", {}))
            blocks = [definition(name)] if name else [option.schema for option in options(schema)]
        schema = next(block["properties"][key] for block in blocks if key in block.get("properties", {}))
    return schema


def described(schema: Schema, path: str) -> str:
    """The description of a key. For a block, that of the block where the key has none.

    Raises Missing where there is neither.
    """
    name = reference(schema)
    text = schema.get("description") or (definition(name).get("description") if name else None)
    if not text:
        raise Missing(f"{path}: has no description; add a string below the field in its class")
    return str(text)
