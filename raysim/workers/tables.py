"""What a server step gives for the tables only, beside the state after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from raysim.terms import Record


class Shown(TypedDict):
    """steps: columns of the step's row. coefficients: columns of equal length, an element an anchor."""

    steps: dict[str, float]
    coefficients: dict[str, list[float]]


def take(given: Record) -> tuple[Record, Shown]:
    """The state, and what was for the tables: entries named after a table and a column, such as `steps.similarity`."""
    state: Record = {}
    shown: dict[str, dict[str, Any]] = {"steps": {}, "coefficients": {}}
    for key, value in given.items():
        table, _, column = key.partition(".")
        if table in shown and column:
            shown[table][column] = value.tolist()
        else:
            state[key] = value
    return state, Shown(steps=shown["steps"], coefficients=shown["coefficients"])
