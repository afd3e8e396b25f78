"""From pieces of JSON Schema to words: types, defaults, and text that Markdown leaves as it is."""

from __future__ import annotations

import re
from typing import Any

from generate.schema import Schema, options, reference

from raysim.scenario.words import type_words, yaml


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


def kind(schema: Schema) -> str:
    """The type of a key's value, as Markdown."""
    if found := options(schema):
        names = ", ".join(f"[`{'`, `'.join(option.names)}`][{anchor(option.definition)}]" for option in found)
        of = "list of " if schema.get("type") == "array" else ""
        return of + names + (", or null" if {"type": "null"} in schema.get("anyOf", []) else "")
    others = [one for one in schema.get("anyOf", []) if "$ref" not in one and one != {"type": "null"}]
    if (name := reference(schema)) and not others:
        return f"[block][{anchor(name)}]" + (", or null" if {"type": "null"} in schema.get("anyOf", []) else "")
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(alternative) for alternative in schema["anyOf"]))
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    return type_words(schema, kind)


def anchor(definition: str) -> str:
    """The id of the heading where a block or part is described."""
    return f"part-{definition}"
