"""The command `list`: everything that a scenario file can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from raysim.part import OneOf, Part


def list_parts() -> None:
    """List what a scenario can name: algorithms, data sets, models, delays and more."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from raysim.part import names_of
    from raysim.scenario import Scenario

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("key", "name", "what it is"):
        table.add_column(column)
    wrong = []
    for key, kind in _kinds(Scenario, {}).items():
        installed, of_kind = kind.installed()
        wrong += of_kind
        named = {", ".join(names_of(part)): part for part in kind.parts} | installed
        for place, (names, part) in enumerate(named.items()):
            shown_key = "" if place else f"[bold]{key}"
            table.add_row(shown_key, names, escape(_first_line(part)), end_section=place == len(named) - 1)
    Console().print(table)
    for text in wrong:
        typer.echo(text, err=True)


def _kinds(block: type[Part], found: dict[str, OneOf], path: str = "") -> dict[str, OneOf]:
    """Returns what each key of a scenario can name. Where several keys can name the same parts, the first one."""
    from raysim.part import one_of, parts_of

    for key, field in block.model_fields.items():
        annotation = field.rebuild_annotation()
        if (kind := one_of(annotation)) and not any(set(kind.parts) <= set(other.parts) for other in found.values()):
            found[path + key] = kind
        for part in parts_of(annotation):
            _kinds(part, found, f"{path}{key}.")
    return found


def _first_line(part: type[Part]) -> str:
    """Returns the first line of a part's docstring, which says what the part is."""
    return (part.__doc__ or "").strip().splitlines()[0]
