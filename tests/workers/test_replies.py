"""What workers reply fits the tables that it is written to."""

from typing import Any

import pytest
from conftest import Raw, Simulate, digits

from raysim.terms import SearchResult
from raysim.workers.replies import StepNumbers, UpdateNumbers
from results import TABLES


@pytest.mark.parametrize(
    ("kind", "table"), [(SearchResult, "coefficients"), (UpdateNumbers, "updates"), (StepNumbers, "steps")]
)
def test_what_workers_measure_are_columns(kind: Any, table: str) -> None:
    assert set(kind._fields) - {"own"} <= set(TABLES[table].names)


@pytest.mark.parametrize(
    "raw",
    [digits(run__compare_updates=False), digits(algorithm="decfedavg", topology="ring", world={})],
    ids=["server", "peers"],
)
def test_what_is_measured_has_columns(simulate: Simulate, raw: Raw) -> None:
    """A number of any other name would be in a column of the algorithm's own, and these algorithms have none."""
    result = simulate(raw)
    for table in ("steps", "updates"):
        assert result.table(table).schema.names == TABLES[table].names
