"""FedAvg, by hand."""

import pytest
from by_hand import scripted, x
from conftest import Raw, Simulate, quadratic

AT_ONCE: Raw = {"dispatch": {"picks": [[0, 1]]}}


@pytest.mark.parametrize(("weights", "expected"), [("samples", 2.0), ("uniform", 1.5)])
def test_fedavg_averages_by_samples_or_uniformly(simulate: Simulate, weights: str, expected: float) -> None:
    """y = (0.5, 2.5), n = (1, 3)."""
    algorithm = {"name": "fedavg", "weights": weights}
    raw = quadratic([0.0, 4.0], algorithm, AT_ONCE, 1, start=1.0, data__samples=[1, 3], local__lr=0.5)
    assert x(simulate, raw) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("weights", "expected"), [("samples", 2.5), ("uniform", 2.5), ("population", 2.125), ("scaled", 3.75)]
)
def test_fedavg_when_only_one_client_reports(simulate: Simulate, weights: str, expected: float) -> None:
    """Client 1 of n = (1, 3) reports y = 2.5; client 0 is late and discarded."""
    algorithm = {"name": "fedavg", "weights": weights}
    world = scripted([[0, 1]], [[1.0], [0.0]])
    raw = quadratic([0.0, 4.0], algorithm, world, 1, start=1.0, data__samples=[1, 3], local__lr=0.5)
    assert x(simulate, raw) == pytest.approx(expected, abs=1e-6)
