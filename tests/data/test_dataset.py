"""Splits of a data set, and the parts of scenarios that name one."""

import numpy as np
import pytest
from data_sets import digits, part

from raysim.data import SERVER_DATA, SOURCES, Split


def test_columns_of_unequal_length_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"same length, got .*'y': 2"):
        Split(np.zeros((3, 1, 1, 1), np.uint8), np.zeros(2, np.int64))


def test_taking_rows_takes_them_of_every_column() -> None:
    split = Split(np.arange(8, dtype=np.uint8).reshape(4, 2, 1, 1), np.arange(4), {"user": np.array(list("abca"))})
    taken = split.take(np.array([3, 1]))
    assert taken.x[:, 0, 0, 0].tolist() == [6, 2]
    assert (taken.y.tolist(), taken.columns["user"].tolist(), len(taken)) == ([3, 1], ["a", "b"], 2)


def test_every_part_says_in_one_line_what_it_is() -> None:
    for kind in (*SOURCES, *SERVER_DATA):
        assert (kind.__doc__ or "").splitlines()[0].endswith((".", ":"))


def test_problems_are_those_of_the_partition() -> None:
    collins = {"name": "classes", "per_client": 1, "assignment": "collins"}
    assert "multiple" in digits(partition=collins, clients=7).division_problems()[0]
    assert not digits().division_problems()
    assert not part(name="quadratic", centers=[1]).division_problems()
