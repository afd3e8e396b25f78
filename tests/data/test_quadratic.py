"""Quadratic data: one sample a client, which is its loss."""

from typing import Any

import numpy as np
import pytest
from data_sets import NO_SERVER, part
from pydantic import ValidationError

from raysim.data import federate


def test_quadratic_samples_hold_center_slope_and_curvature() -> None:
    data = part(
        name="quadratic", centers=[[1, 2], [3, 4]], curvatures=[1, 5], slopes=[[0, 0.5], [0, 0]], samples=[1, 2]
    )
    dataset = data.load()
    assert (data.clients, data.size, dataset.loss, dataset.num_classes) == (2, 2, "quadratic", 0)
    assert dataset.train.x.dtype == np.float32
    assert dataset.train.x.tolist() == [[1, 2, 0, 0.5, 1], [3, 4, 0, 0, 5], [3, 4, 0, 0, 5]]
    assert dataset.train.columns["client"].tolist() == dataset.test.y.tolist() == [0, 1, 1]
    federation = federate(data, NO_SERVER, seed=0)
    assert federation.samples.tolist() == [1, 2]
    assert federation.train_rows(1).tolist() == [1, 2]


def test_a_bare_number_is_a_quadratic_of_one_variable() -> None:
    data = part(name="quadratic", centers=[1, [3.0]])
    assert data.load().train.x.tolist() == [[1, 0, 1], [3, 0, 1]]
    assert data.size == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"centers": [1, 2], "curvatures": [1]}, "`curvatures` must have an entry for each of 2 centers, got 1"),
        ({"centers": [1, 2], "slopes": [1, 2, 3]}, "`slopes` must have an entry for each of 2 centers, got 3"),
        ({"centers": [1, [2, 3]]}, r"`centers` must all be as long as the first center, 1, got lengths \[1, 2\]"),
        ({"centers": [[1, 2]], "slopes": [1]}, r"`slopes` must all be as long .* 2, got lengths \[1\]"),
        ({"centers": []}, "at least 1 item"),
    ],
)
def test_quadratics_that_do_not_fit_together_are_errors(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        part(name="quadratic", **settings)
