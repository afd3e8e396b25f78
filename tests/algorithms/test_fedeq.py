"""FeDEQ, by hand and where it is FedRep."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Raw, quadratic
from personal import after_rounds, bilinear_clients, with_head
from torch import Tensor, nn

from raysim.models import Vector


@pytest.fixture
def bilinear(monkeypatch: pytest.MonkeyPatch) -> Raw:
    return bilinear_clients(monkeypatch)


@pytest.mark.parametrize(
    ("choice", "head", "theta", "dual"),
    [
        ({}, 1.578125, 1.115921, 0.120461),
        ({"reset_local_theta": True}, 1.578125, 1.177826, None),
        ({"head_on_global": False}, 1.45703125, None, None),
    ],
)
def test_fedeq_by_hand(
    bilinear: Raw, tmp_path: Path, choice: Raw, head: float, theta: float | None, dual: float | None
) -> None:
    """A step for the head, one for theta_i: (1.375, 1.125), so theta = 1.25; then client 0 alone."""
    algorithm = {"name": "fedeq", "rho": 0.5, "head_epochs": 1, **choice}
    server, clients = after_rounds(bilinear, algorithm, [[0, 1]], tmp_path / "first")
    assert [float(client["w"][0]) for client in clients] == pytest.approx([1.375, 1.125], abs=1e-6)
    assert float(clients[0]["w"][-1]) == pytest.approx(1.5, abs=1e-6)
    assert float(clients[0]["dual"][0]) == pytest.approx(0.1875, abs=1e-6)
    assert float(server["w"][0]) == pytest.approx(1.25, abs=1e-6)
    _, (client, other) = after_rounds(bilinear, algorithm, [[0, 1], [0]], tmp_path / "second")
    assert float(client["w"][-1]) == pytest.approx(head, abs=1e-6)
    assert theta is None or float(client["w"][0]) == pytest.approx(theta, abs=1e-6)
    assert dual is None or float(client["dual"][0]) == pytest.approx(dual, abs=1e-6)
    assert float(other["w"][0]) == pytest.approx(1.125, abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "rounds", "theta", "own"),
    [
        ("mean", 1, 1.0, [0.5, 1.5]),
        ("mean", 2, 1.0, [0.75, 1.25]),
        ("mean", 12, 1.0, [1.0, 1.0]),  # (2 + rho * 0) / (1 + rho)
        ("admm", 1, 2.0, [0.5, 1.5]),
        ("admm", 12, 2.0, [2.0, 2.0]),  # the optimum
    ],
)
def test_fedeq_averages_with_or_without_duals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rule: str, rounds: int, theta: float, own: list[float]
) -> None:
    """f_i = (theta - a_i)^2 / 2, a = (1, 3), rho = 1: a step of 0.5 is an exact solve. The head is of no matter."""
    build = Vector.build
    monkeypatch.setattr(Vector, "build", lambda *given: with_head(build(*given), _Bystander()))
    raw = quadratic([1.0, 3.0], "", {}, 1, model__personal=["head"], local__lr=0.5)
    algorithm = {"name": "fedeq", "rho": 1.0, "server_rule": rule}
    server, clients = after_rounds(raw, algorithm, [[0, 1]] * rounds, tmp_path)
    assert float(server["w"][0]) == pytest.approx(theta, abs=2e-3)
    assert [float(client["w"][0]) for client in clients] == pytest.approx(own, abs=2e-3)


class _Bystander(nn.Module):
    """A parameter that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize(("picks", "same"), [([[0, 1]] * 3, False), ([[0], [1], [0], [1], [0]], True)])
def test_a_client_starts_at_theta_after_a_pause(
    bilinear: Raw, tmp_path: Path, picks: list[list[int]], same: bool
) -> None:
    """Then it is one that always does; and without a pause one that never does."""
    algorithm = {"name": "fedeq", "rho": 0.5, "head_epochs": 1}
    one, other = (
        after_rounds(bilinear, {**algorithm, "reset_local_theta": reset}, picks, tmp_path / str(reset))
        for reset in ("after_pause", same)
    )
    for client, as_client in zip(one[1], other[1], strict=True):
        assert all(np.array_equal(client[key], as_client[key]) for key in as_client)
    assert np.array_equal(one[0]["w"], other[0]["w"])


def test_duals_may_start_elsewhere(bilinear: Raw, tmp_path: Path) -> None:
    """theta_i = 1.375 - 0.5 * 0.1, lambda_i = 0.1 + 0.5 * 0.325."""
    algorithm = {"name": "fedeq", "rho": 0.5, "head_epochs": 1, "first_dual": 0.1}
    _, (client, _) = after_rounds(bilinear, algorithm, [[0]], tmp_path)
    assert [float(client[key][0]) for key in ("w", "dual")] == pytest.approx([1.325, 0.2625], abs=1e-6)
