"""What workers reply fits the tables that it is written to."""

import pytest
from conftest import Raw, Simulate, digits

from raysim.terms import SearchResult
from results import TABLES


def test_what_a_search_finds_are_columns() -> None:
    assert set(SearchResult._fields) - {"own"} <= set(TABLES["coefficients"].names)


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
