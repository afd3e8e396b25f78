"""What MkDocs does beside rendering: it writes what follows from the code into the reference pages.

A line `{{ generate: ... }}` in a page is replaced by what the functions below make of it. The build fails where a key,
a part, a table or a column has no description, and where no page describes one of the parts.
"""

import re
from collections.abc import Callable
from typing import Any

from generate import algorithms, blocks, command_line, fields, instruments, tables

GENERATORS: dict[str, Callable[..., str]] = {
    "algorithms": algorithms.algorithms,
    "block": blocks.block,
    "heading": blocks.heading,
    "parts": blocks.parts,
    "commands": command_line.commands,
    "fields": fields.fields,
    "instruments": instruments.instruments,
    "tables": tables.tables,
}
MARKER = re.compile(r"^\{\{ generate: (\w+) ?(.*?) \}\}$", re.MULTILINE)


def on_pre_build(**_: Any) -> None:
    blocks.written.clear()


def on_page_markdown(markdown: str, **_: Any) -> str:
    return fill(markdown)


def on_post_build(**_: Any) -> None:
    if lacking := blocks.unwritten():
        raise RuntimeError(f"docs/reference: no page describes {', '.join(lacking)}; add a line with `generate:`")


def fill(markdown: str) -> str:
    """A page with everything that is generated in it."""
    return MARKER.sub(lambda found: GENERATORS[found[1]](*found[2].split()), markdown)
