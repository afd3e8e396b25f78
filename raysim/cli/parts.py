"""The command `list`: everything that a scenario file can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raysim.part import Part


def list_parts() -> None:
    """List what a scenario can name: algorithms, data sets, models, delays and more."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from raysim.part import names_of

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("key", "name", "what it is"):
        table.add_column(column)
    for key, parts in _parts_by_key().items():
        for place, part in enumerate(parts):
            names, shown_key = ", ".join(names_of(part)), "" if place else f"[bold]{key}"
            table.add_row(shown_key, names, escape(_first_line(part)), end_section=part is parts[-1])
    Console().print(table)


def _parts_by_key() -> Mapping[str, Sequence[type[Part]]]:
    """Returns all parts that a key of a scenario can name, by key."""
    from raysim.algorithms import ALGORITHMS
    from raysim.algorithms.staleness import STALENESS
    from raysim.data import DATA_SETS, PARTITIONS, SERVER_DATA
    from raysim.models import MODELS, SOLVERS
    from raysim.world import AVAILABILITY, DELAYS, TOPOLOGIES
    from raysim.world.distribution import DISTRIBUTIONS
    from raysim.world.mixing import WEIGHTINGS

    return {
        "algorithm": ALGORITHMS,
        "algorithm.staleness": STALENESS,
        "data": DATA_SETS,
        "data.partition": PARTITIONS,
        "server_data": SERVER_DATA,
        "model": MODELS,
        "model.solver": SOLVERS,
        "world.delay": DELAYS,
        "world.delay.flops_per_s": DISTRIBUTIONS,
        "world.availability": AVAILABILITY,
        "topology": TOPOLOGIES,
        "topology.weights": WEIGHTINGS,
    }


def _first_line(part: type[Part]) -> str:
    """Returns the first line of a part's docstring, which says what the part is."""
    return (part.__doc__ or "").strip().splitlines()[0]
