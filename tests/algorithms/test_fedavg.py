"""Hand-worked values, through scenario files and the command line."""

import math
from typing import Any

import pytest
from conftest import Raw, Simulate, quadratic

AT_ONCE: Raw = {"dispatch": {"picks": [[0, 1]]}}


def scripted(picks: list[list[int]], delays: list[list[float]]) -> Raw:
    return {"dispatch": {"picks": picks}, "delay": {"name": "scripted", "delays": delays}}


def x(simulate: Simulate, raw: Raw) -> float:
    """The final vector's only element."""
    (value,) = simulate(raw).vectors()["w"].tolist()
    return float(value)


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


@pytest.mark.parametrize(("weights", "expected"), [("samples", 2.5), ("uniform", 1.75)])
def test_fedavg_with_two_local_steps(simulate: Simulate, weights: str, expected: float) -> None:
    """y = (0.25, 3.25)."""
    local = {"lr": 0.5, "batch_size": None, "steps": 2}
    raw = quadratic([0.0, 4.0], {"name": "fedavg", "weights": weights}, AT_ONCE, 1, start=1.0, data__samples=[1, 3])
    assert x(simulate, {**raw, "local": local}) == pytest.approx(expected, abs=1e-6)


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


@pytest.mark.parametrize(("staleness", "expected"), [({"name": "poly"}, 2.0), ("none", 3.0)])
def test_fedbuff_divides_by_the_buffer_size(simulate: Simulate, staleness: Any, expected: float) -> None:
    """K = 2, (delta, s) = (2, 0), (4, 3)."""
    algorithm = {"name": "fedbuff", "buffer": 2, "staleness": staleness}
    world = scripted([[1], [], [], [0]], [[0.0], [3.0]])
    raw = quadratic([0.0, 0.0], algorithm, world, 4, data__curvatures=[0.0, 0.0], data__slopes=[-2.0, -4.0])
    assert x(simulate, raw) == pytest.approx(expected, abs=1e-6)


PICKS = [[0, 1], [2, 3], [0, 2]]
DELAYS = [[0.0, 1.0], [2.0], [0.0, 0.0], [0.0]]


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


def test_the_scripted_rounds_under_fedasync(simulate: Simulate) -> None:
    """Client models y = 10, alpha = 0.5: 5; 7.5, 8.75; 9.375, 9.6875."""
    algorithm = {"name": "fedasync", "alpha": 0.5, "staleness": "const"}
    got = [
        x(simulate, quadratic([10.0] * 4, algorithm, scripted(PICKS[:rounds], DELAYS), rounds)) for rounds in (1, 2, 3)
    ]
    assert got == pytest.approx([5.0, 8.75, 9.6875], abs=1e-6)


def test_fedbuff_of_a_whole_cohort_without_delay_is_uniform_fedavg(simulate: Simulate) -> None:
    """On real data, with batches and several rounds: the same vector, bit for bit."""
    from conftest import digits

    world = {"dispatch": {"per_round": 6}, "delay": "none"}
    buffered = simulate(digits(algorithm={"name": "fedbuff", "buffer": 6}, world=world))
    averaged = simulate(digits(algorithm={"name": "fedavg", "weights": "uniform"}, world=world))
    assert buffered.info["digest"]["model"] == averaged.info["digest"]["model"]


def test_fedasync_mixes_buffers_as_it_mixes_weights(simulate: Simulate) -> None:
    """With alpha = 0 nothing moves: neither weights nor BatchNorm statistics."""
    from conftest import digits

    model = {"name": "torchvision", "model": "resnet18", "image_size": 32}
    small = {"model": model, "data__clients": 4, "run__rounds": 1, "world": {"dispatch": {"per_round": 1}}}
    still, moving = (
        simulate(digits(algorithm={"name": "fedasync", "alpha": alpha}, local__steps=1, **small))
        for alpha in (0.0, 0.5)
    )
    start = [result.state_dict()["bn1.running_var"] for result in (still, moving)]
    assert (start[0] == 1).all()
    assert not (start[1] == 1).all()


def test_the_saved_tensors_make_the_module(simulate: Simulate) -> None:
    """Convolutions too, which lie in the flat vector in another order."""
    import torch
    from conftest import digits

    result = simulate(digits(model={"name": "cnn", "kernel": 3, "channels": [4], "hidden": 8}, run__rounds=1))
    tensors = result.state_dict()
    inputs = torch.linspace(-1, 1, 2 * 64).view(2, 1, 8, 8)
    convolved = torch.nn.functional.conv2d(inputs, tensors["conv1.weight"], tensors["conv1.bias"])
    module = result.module()
    assert module[0](inputs).detach() == pytest.approx(convolved, abs=1e-6)
    assert tensors["conv1.weight"].shape == (4, 1, 3, 3)
