"""FedBuff, by hand and where it is FedAvg."""

import math
from typing import Any

import pytest
from by_hand import DELAYS, PICKS, scripted, x
from conftest import Raw, Simulate, quadratic


@pytest.mark.parametrize(("staleness", "expected"), [({"name": "poly"}, 2.0), ("none", 3.0)])
def test_fedbuff_divides_by_the_buffer_size(simulate: Simulate, staleness: Any, expected: float) -> None:
    """K = 2, (delta, s) = (2, 0), (4, 3)."""
    algorithm = {"name": "fedbuff", "buffer": 2, "staleness": staleness}
    world = scripted([[1], [], [], [0]], [[0.0], [3.0]])
    raw = quadratic([0.0, 0.0], algorithm, world, 4, data__curvatures=[0.0, 0.0], data__slopes=[-2.0, -4.0])
    assert x(simulate, raw) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ({"name": "fedavg", "weights": "uniform"}, [1.0, 2.0, 3.0]),
        ({"name": "fedbuff", "buffer": 2, "staleness": "none"}, [0.0, 1.0, 2.0]),
        ({"name": "fedbuff", "buffer": 2}, [0.0, 1.0, 1 + (1 + 1 / math.sqrt(3)) / 2]),
    ],
)
def test_the_scripted_rounds_of_feddle(simulate: Simulate, algorithm: Raw, expected: list[float]) -> None:
    """Four clients that always send delta = +1, for one, two and three rounds."""
    constant = {"data__curvatures": [0.0] * 4, "data__slopes": [-1.0] * 4}
    got = [
        x(simulate, quadratic([0.0] * 4, algorithm, scripted(PICKS[:rounds], DELAYS), rounds, **constant))
        for rounds in (1, 2, 3)
    ]
    assert got == pytest.approx(expected, abs=1e-6)
