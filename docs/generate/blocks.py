"""Reference of the scenario file: lists of keys, and a section for each part that a key can name."""

from __future__ import annotations

import json
from collections import Counter

from generate import schema as of_file
from generate.schema import Missing, Option, Schema, find, keys, options
from generate.words import anchor, code, kind, plain

from raysim.scenario.words import unit_of

written: set[str] = set()  # the definitions that pages of this build describe


def block(path: str = "") -> str:
    """What the block at a path is, and its keys. An empty path stands for the whole file."""
    schema = of_file.root()
    if path:
        name = of_file.block_name(find(path))
        written.add(name)
        schema = of_file.definition(name)
    return f"{_about(schema, path)}\n\n{table(schema, path)}"


def heading(path: str) -> str:
    """A heading for a block, which the types of keys link to, and the block."""
    return f"### `{path}` {{ #{anchor(of_file.block_name(find(path)))} }}\n\n{block(path)}"


def parts(path: str) -> str:
    """A section for each part that the key at a path can name. Keys that most parts share get one table, first."""
    found = options(find(path))
    shared = _shared(found)
    out = []
    if shared:
        properties = {key: next(o.schema["properties"][key] for o in found if _same(o, key, shared)) for key in shared}
        required = [key for key in shared if any(key in o.schema.get("required", []) for o in found)]
        out.append(f"Most of them share these keys:\n\n{table({'properties': properties, 'required': required}, path)}")
    out += [_part(option, path, shared) for option in found]
    return "\n\n".join(out)


def _part(option: Option, path: str, shared: dict[str, str]) -> str:
    written.add(option.definition)
    title = f"### {', '.join(map(code, option.names))} {{ #{anchor(option.definition)} }}"
    text = [title, _about(option.schema, f"{path} {option.names[0]}")]
    common = [key for key in keys(option.schema) if _same(option, key, shared)]
    own = {key: schema for key, schema in keys(option.schema).items() if key not in common}
    if common:
        text.append(f"Shared keys: {', '.join(map(code, common))}.")
    if own:
        text.append(table({**option.schema, "properties": own}, path))
    return "\n\n".join(text)


def _about(schema: Schema, path: str) -> str:
    if "description" not in schema:
        raise Missing(f"{path}: has no description; add a docstring to its class")
    return plain(schema["description"])


def _shared(found: list[Option]) -> dict[str, str]:
    """The keys that at least three parts, and half of them, have alike; with their schema as text."""
    counts = Counter((key, _text(schema)) for option in found for key, schema in keys(option.schema).items())
    return {key: text for (key, text), count in counts.items() if count >= max(3, len(found) / 2)}


def _same(option: Option, key: str, shared: dict[str, str]) -> bool:
    return key in shared and _text(keys(option.schema).get(key, {})) == shared[key]


def _text(schema: Schema) -> str:
    return json.dumps(schema, sort_keys=True)


def table(schema: Schema, path: str) -> str:
    """An entry for each key: its path, type, unit and default, and its meaning below, across the page.

    Raises Missing for a key without description.
    """
    found = keys(schema)
    if not found:
        return "It has no keys."
    entries = []
    for key, value in found.items():
        full = f"{path}.{key}" if path else key
        default = "required" if key in schema.get("required", []) else f"default {_default(value)}"
        facts = " · ".join(filter(None, [kind(value), unit_of(value), default]))
        paragraphs = plain(of_file.described(value, full)).split("\n\n")
        meaning = "\n\n    ".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
        entries.append(f'`{full}` <span class="facts">{facts}</span>\n:   {meaning}')
    return "\n\n".join(entries)


def _default(schema: Schema) -> str:
    """A named part's default is spelled as short as a scenario file may; blocks show that they may be left out."""
    value = schema.get("default")
    if isinstance(value, dict):
        if "name" in value:
            usual = next(o.schema for o in options(schema) if value["name"] in o.names)["properties"]
            differing = {key: v for key, v in value.items() if key == "name" or usual[key].get("default") != v}
            return code(differing["name"] if len(differing) == 1 else differing)
        return "its defaults"
    return code(value) if "default" in schema else "empty"


def unwritten() -> list[str]:
    """The definitions that no page of this build describes."""
    return sorted(set(of_file.root()["$defs"]) - written)
