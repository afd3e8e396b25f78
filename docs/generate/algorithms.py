"""Reference of the algorithms: what each is, its source, its keys, how it differs from the paper, and its code."""

from __future__ import annotations

import inspect
import re

from generate.blocks import table, written
from generate.schema import Missing, Option, find, options
from generate.words import anchor, code, plain

import raysim.algorithms
from raysim.algorithms import Central
from raysim.parts.part import Part

DIFFERENCES = re.compile(r"Differences\s+from\s+the\s+papers?:\s+")


def algorithms(family: str) -> str:
    """A section for each algorithm with a server (family `server`) or without one (`peers`)."""
    found = [(option, _class(option.definition)) for option in options(find("algorithm"))]
    with_server = family == "server"
    return "\n\n".join(_section(option, part) for option, part in found if issubclass(part, Central) == with_server)


def _class(name: str) -> type[Part]:
    found: type[Part] = getattr(raysim.algorithms, name)
    return found


def _section(option: Option, part: type[Part]) -> str:
    written.add(option.definition)
    names = ", ".join(map(code, option.names))
    source, differences = citation(part)
    text = [f"### {part.__name__} {{ #{anchor(option.definition)} }}", f"Name in scenario files: {names}."]
    text.append(plain(inspect.getdoc(part) or ""))
    text.append(f"**Source.** {plain(source)}")
    if differences:
        text.append(f"**Differences.** {plain(differences)}")
    text.append(table(option.schema, "algorithm"))
    module = inspect.getmodule(part)
    assert module is not None
    body = inspect.getsource(module).split('"""', 2)[2].strip()
    listing = "\n".join(f"    {line}".rstrip() for line in f"```python\n{body}\n```".splitlines())
    text.append(f'??? quote "The whole of it, {len(body.splitlines())} lines"\n\n{listing}')
    return "\n\n".join(text)


def citation(part: type[Part]) -> tuple[str, str]:
    """Where an algorithm comes from, and how it differs from there: what follows the first line of its module's
    docstring. Raises Missing where nothing follows."""
    text = inspect.getdoc(inspect.getmodule(part)) or ""
    _, _, rest = text.partition("\n\n")
    if not rest.strip():
        raise Missing(f"{part.__module__}: must say in its docstring where the algorithm comes from")
    source, *found = DIFFERENCES.split(rest.strip(), maxsplit=1)
    differences = "".join(found)
    return source.strip(), differences[:1].upper() + differences[1:]
