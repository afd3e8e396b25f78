"""What MkDocs does beside rendering: it writes what follows from the code into the reference pages.

A line `{{ generate: ... }}` in a page is replaced by what the functions below make of it, and every algorithm gets a
page. The build fails where a key, a part, a table or a column has no description, where no page describes one of the
parts, and where an algorithm has no equations or no curve.
"""

import re
from collections.abc import Callable
from typing import Any

from generate import algorithms, blocks, command_line, fields, images, tables
from generate.math import equations

GENERATORS: dict[str, Callable[..., str]] = {
    "algorithms": algorithms.index,
    "block": blocks.block,
    "heading": blocks.heading,
    "parts": blocks.parts,
    "commands": command_line.commands,
    "fields": fields.fields,
    "tables": tables.tables,
}
MARKER = re.compile(r"^\{\{ generate: (\w+) ?(.*?) \}\}$", re.MULTILINE)


def on_config(config: Any, **_: Any) -> None:
    for section in config.nav:
        if "Algorithms" in section:
            section["Algorithms"] += algorithms.navigation()


def on_pre_build(**_: Any) -> None:
    blocks.written.clear()


def on_files(files: Any, config: Any, **_: Any) -> None:
    from mkdocs.structure.files import File

    for place, text in algorithms.pages().items():
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, "colours.css", content=images.colours()))


def on_page_markdown(markdown: str, **_: Any) -> str:
    return fill(markdown)


def on_page_content(html: str, **_: Any) -> str:
    return images.inlined(equations(html))


def on_post_build(**_: Any) -> None:
    if lacking := blocks.unwritten():
        raise RuntimeError(f"docs/reference: no page describes {', '.join(lacking)}; add a line with `generate:`")


def fill(markdown: str) -> str:
    """A page with everything that is generated in it."""
    return MARKER.sub(lambda found: GENERATORS[found[1]](*found[2].split()), markdown)
