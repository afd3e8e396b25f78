"""FedAsync, by hand."""

from typing import Any

import pytest
from by_hand import scripted, x
from conftest import Simulate, digits, quadratic


@pytest.mark.parametrize(
    ("staleness", "delay", "expected"),
    [
        ("const", 0.0, 2.6),
        ("const", 3.0, 2.6),
        ({"name": "poly", "exponent": 0.5}, 3.0, 1.8),
        ({"name": "hinge", "slope": 10.0, "grace": 4.0}, 3.0, 2.6),
        ({"name": "hinge", "slope": 10.0, "grace": 4.0}, 5.0, 1 + 1.6 / 11),
    ],
)
def test_fedasync_mixes_by_staleness(simulate: Simulate, staleness: Any, delay: float, expected: float) -> None:
    """x = 1, y = 3, alpha = 0.8."""
    algorithm = {"name": "fedasync", "alpha": 0.8, "staleness": staleness}
    world = scripted([[0], [], [], [], [], []], [[delay]])
    assert x(simulate, quadratic([3.0], algorithm, world, 6, start=1.0)) == pytest.approx(expected, abs=1e-6)


def test_fedasync_mixes_simultaneous_arrivals_one_by_one(simulate: Simulate) -> None:
    """Two with s = 3: 1.8, then 2.28."""
    algorithm = {"name": "fedasync", "alpha": 0.8}
    world = scripted([[0, 1], [], [], []], [[3.0], [3.0]])
    result = simulate(quadratic([3.0, 3.0], algorithm, world, 4, start=1.0))
    assert result.vectors()["w"].tolist() == pytest.approx([2.28], abs=1e-6)
    assert result.pandas("updates").staleness.tolist() == [3.0, 3.0]


def test_fedasync_pulls_towards_the_received_model(simulate: Simulate) -> None:
    """f = x^2 / 2, rho = 1, lr = 0.5, two steps from 1: 0.5, then 0.5 - 0.5 (0.5 + (0.5 - 1)) = 0.5."""
    algorithm = {"name": "fedasync", "alpha": 1.0, "rho": 1.0}
    raw = quadratic([0.0], algorithm, {"dispatch": {"picks": [[0]]}}, 1, start=1.0)
    assert x(simulate, {**raw, "local": {"lr": 0.5, "steps": 2, "batch_size": None}}) == pytest.approx(0.5, abs=1e-6)


def test_fedasync_mixes_buffers_as_it_mixes_weights(simulate: Simulate) -> None:
    """With alpha = 0 nothing moves: neither weights nor BatchNorm statistics."""
    model = {"name": "module", "module": "own_modules:Net", "args": {"hidden": 4}}
    small = {"model": model, "data__clients": 4, "run__rounds": 1, "world": {"dispatch": {"per_round": 1}}}
    still, moving = (
        simulate(digits(algorithm={"name": "fedasync", "alpha": alpha}, local__steps=1, **small))
        for alpha in (0.0, 0.5)
    )
    start = [result.state_dict()["norm.running_var"] for result in (still, moving)]
    assert (start[0] == 1).all()
    assert not (start[1] == 1).all()
