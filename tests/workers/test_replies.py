"""What workers reply fits the tables that it is written to."""

import pytest

from raysim.terms import SearchResult
from raysim.workers.replies import StepReply, TrainedClient, TrainingColumns
from raysim.workers.workbench import LOGGED
from results import TABLES


@pytest.mark.parametrize(
    ("fields", "table"),
    [
        (TrainingColumns._fields, "updates"),
        (set(TrainedClient._fields) - {"columns", "diverged", "own", "predicted"}, "updates"),
        (set(SearchResult._fields) - {"own"}, "coefficients"),
        (set(StepReply._fields) - {"coefficients", "diverged", "own", "own_coefficients", "compared"}, "steps"),
    ],
)
def test_every_field_is_a_column(fields: tuple[str, ...], table: str) -> None:
    assert set(fields) <= set(TABLES[table].names)


def test_what_updates_carry_for_the_tables_are_columns_of_training() -> None:
    assert set(LOGGED) <= set(TrainingColumns._fields)
