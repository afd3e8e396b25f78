"""Ditto, by hand and where it is training alone."""

import pytest
import torch
from conftest import quadratic
from plain_run import PlainRun


@pytest.mark.parametrize(("start", "own"), [("own", 1.0), ("global", 0.375)])
def test_ditto_pulls_towards_the_received_model(start: str, own: float) -> None:
    """f = x^2 / 2, w = 1, v = 3, lambda = 0.5, a step of 0.5; the update is 0.5 - 1."""
    algorithm = {"name": "ditto", "lam": 0.5, "start": start}
    raw = quadratic([0.0], algorithm, {"dispatch": {"per_round": 1}}, 1, start=1.0, local__lr=0.5)
    plain = PlainRun(raw)
    state = {"w": torch.tensor([3.0]), "buffers": plain.start.buffers}
    sent, after = plain.algorithm.update(plain.task(0, plain.message), plain.message, state)
    assert float(sent["delta"]) == pytest.approx(-0.5)
    assert float(after["w"]) == pytest.approx(own)
