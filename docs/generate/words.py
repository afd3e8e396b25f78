"""From pieces of JSON Schema to words: types, defaults, and text that Markdown leaves as it is."""

from __future__ import annotations

import json
import re
from typing import Any

from generate.schema import Schema, options, reference

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_KINDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}


def plain(text: str) -> str:
    """Text in which Markdown sees nothing but code between backticks, which it keeps."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*_<>\[\]])", r"\\\1", piece) for piece in pieces)


def cell(text: str) -> str:
    """Markdown for a cell of a table: one line, in which a bar separates nothing."""
    return text.replace("|", "\\|").replace("\n\n", "<br>").replace("\n", " ")


def code(value: Any) -> str:
    """A value as a scenario file spells it."""
    return f"`{yaml(value)}`"


def yaml(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(yaml, value)) + "]"
    if isinstance(value, str):
        return value
    return json.dumps(value)


def kind(schema: Schema) -> str:
    """The type of a key's value, as Markdown."""
    if found := options(schema):
        names = ", ".join(f"[`{'`, `'.join(option.names)}`][{anchor(option.definition)}]" for option in found)
        return names + (", or null" if {"type": "null"} in schema["anyOf"] else "")
    if name := reference(schema):
        return f"[block][{anchor(name)}]" + (", or null" if {"type": "null"} in schema.get("anyOf", []) else "")
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(alternative) for alternative in schema["anyOf"]))
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    return _of_type(schema)


def _of_type(schema: Schema) -> str:
    of = schema.get("type")
    if of == "array":
        inner = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        pair = " of two" if schema.get("maxItems") == 2 else ""
        return f"list{pair}: {kind(inner)}" if inner else f"list{pair}"
    if of == "object":
        inner = schema.get("additionalProperties")
        return f"block of {kind(inner)} by key" if isinstance(inner, dict) and inner else "block"
    if of is None:
        return "anything"
    bounds = [f"{sign} {schema[key]:g}" for key, sign in _BOUNDS.items() if key in schema and abs(schema[key]) < 2**62]
    return " ".join([_KINDS[of], ", ".join(bounds)]).strip()


def anchor(definition: str) -> str:
    """The id of the heading where a block or part is described."""
    return f"part-{definition}"
