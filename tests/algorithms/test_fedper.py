"""FedPer and FedRep: head and body together or in turn, by hand and where they are FedAvg."""

from pathlib import Path

import pytest
from conftest import Raw, Simulate
from personal import after_rounds, bilinear_clients, headed


@pytest.fixture
def bilinear(monkeypatch: pytest.MonkeyPatch) -> Raw:
    return bilinear_clients(monkeypatch)


@pytest.mark.parametrize(
    ("algorithm", "body", "head"),
    [
        ({"name": "fedper"}, 1.5, 1.5),
        ({"name": "fedper", "head_epochs": 1}, 1.375, 1.75),
        ({"name": "fedrep", "head_epochs": 1}, 1.375, 1.5),
        ({"name": "fedrep", "head_epochs": 0}, 1.5, 1.0),
    ],
)
def test_head_and_body_together_or_in_turn(
    bilinear: Raw, tmp_path: Path, algorithm: Raw, body: float, head: float
) -> None:
    server, (client, other) = after_rounds(bilinear, algorithm, [[0]], tmp_path)
    assert server["w"][0] == pytest.approx(body, abs=1e-6)
    assert client["head"] == pytest.approx([head], abs=1e-6)
    assert other["head"] == pytest.approx([1.0], abs=1e-6)


def test_the_scenarios_steps_are_those_of_the_shared_part(simulate: Simulate) -> None:
    """Epochs of the head stay epochs."""
    local = {"lr": 0.1, "batch_size": 16, "steps": 3}
    algorithm = {"name": "fedrep", "head_epochs": 2}
    used = simulate(headed(algorithm, local=local)).pandas("updates").query("status == 'used'")
    assert (used.local_steps == 2 * -(-used.samples // 16) + 3).all()
