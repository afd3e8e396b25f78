"""The command `list`: everything that a scenario file can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, get_args

if TYPE_CHECKING:
    from raysim.part import Part


def list_parts() -> None:
    """List what a scenario can name: algorithms, data sets, models, delays and more."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("key", "name", "what it is"):
        table.add_column(column)
    for key, parts in _parts_by_key().items():
        for place, part in enumerate(parts):
            names = ", ".join(get_args(part.model_fields["name"].annotation))
            shown_key = "" if place else f"[bold]{key}"
            table.add_row(shown_key, names, escape(_first_line(part)), end_section=part is parts[-1])
    Console().print(table)


def _parts_by_key() -> Mapping[str, Sequence[type[Part]]]:
    """All parts that can stand at a key of a scenario, by key."""
    from raysim.algorithms import ALGORITHMS, PEERS
    from raysim.algorithms.staleness import Staleness
    from raysim.data import DATA_SETS, PARTITIONS, SERVER_DATA
    from raysim.models import MODELS, AnySolver
    from raysim.part import parts_of
    from raysim.world import AVAILABILITY, DELAYS, TOPOLOGIES
    from raysim.world.distribution import AnyDistribution
    from raysim.world.mixing import AnyWeighting

    return {
        "algorithm": (*ALGORITHMS, *PEERS),
        "algorithm.staleness": parts_of(Staleness),
        "data": DATA_SETS,
        "data.partition": PARTITIONS,
        "server_data": SERVER_DATA,
        "model": MODELS,
        "model.solver": parts_of(AnySolver),
        "world.delay": DELAYS,
        "world.delay.flops_per_s": parts_of(AnyDistribution),
        "world.availability": AVAILABILITY,
        "topology": TOPOLOGIES,
        "topology.weights": parts_of(AnyWeighting),
    }


def _first_line(part: type[Part]) -> str:
    """Returns the first line of a part's docstring, which says what the part is."""
    return (part.__doc__ or "").strip().splitlines()[0]
