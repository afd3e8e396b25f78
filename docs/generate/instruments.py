"""Table of what runs measure for dashboards."""

from __future__ import annotations

from generate.words import cell, plain

from actors.instrument import OF_POOLS, Instrument
from raysim.observers.gauges import OF_RUNS

HEADER = "| Name in Prometheus | Kind | Labels | Unit | Meaning |\n|---|---|---|---|---|"


def instruments() -> str:
    """A row for each gauge and counter."""
    return "\n".join([HEADER, *map(_row, (*OF_RUNS, *OF_POOLS))])


def _row(instrument: Instrument) -> str:
    labels = ", ".join(f"`{label}`" for label in ("run", *instrument.tags))
    unit, meaning = plain(instrument.unit or ""), plain(instrument.description)
    return (
        "| " + " | ".join(map(cell, [f"`{instrument.in_prometheus}`", instrument.kind, labels, unit, meaning])) + " |"
    )
