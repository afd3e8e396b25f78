"""Data that are drawn, or given in the scenario: quadratics and a linear regression."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, override
from data_sets import NO_SERVER, part
from pydantic import ValidationError
from refusals import problem

from raysim.data import Dataset, divided, federate
from raysim.data.federation.server import NoServerData
from raysim.data.sources.synthetic import LinearRegression
from raysim.local.net import Net
from raysim.local.outputs import squared_error
from raysim.models import MLP, Linear, ModelPart
from raysim.models.build import initialise


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


SMALL = {"samples": 300, "features": 10}
EVERYBODY = {"dispatch": {"per_round": 10}}


def load(**settings: Any) -> Dataset:
    return LinearRegression(**settings).load()


def regression(rounds: int, **more: Any) -> Raw:
    """Everybody takes one full-batch step in each round: gradient descent on the mean over all samples."""
    raw: Raw = {
        "name": "regression",
        "data": {"name": "linear_regression", "clients": 10, **SMALL},
        "model": "linear",
        "algorithm": "fedavg",
        "local": {"lr": 0.2, "batch_size": None},
        "world": EVERYBODY,
        "run": {"rounds": rounds, "evaluate_every": rounds},
    }
    return override(raw, **more)


def loss(dataset: Dataset, w: np.ndarray) -> float:
    """1/(2 d) sum_j (<a_j, w> - b_j)^2."""
    return float(np.square(dataset.train.x @ w - dataset.train.y).mean() / 2)


# Data


def test_each_third_of_the_rows_has_the_moments_of_its_distribution() -> None:
    """Student-t with 5 degrees of freedom, uniform on [-5, 5], standard normal: in x and y alike."""
    dataset = load(samples=8998, features=20)
    rows = np.column_stack([dataset.train.x, dataset.train.y]).astype(np.float64)
    student, uniform, normal = rows[:3000], rows[3000:6000], rows[6000:]
    for third, variance in ((student, 5 / 3), (uniform, 25 / 3), (normal, 1.0)):
        assert third.mean() == pytest.approx(0, abs=0.05)
        assert third.var() == pytest.approx(variance, rel=0.05)
        assert third[:, -1].var() == pytest.approx(variance, rel=0.25)
    assert np.abs(uniform).max() <= 5
    assert (np.abs(uniform) > 4).mean() == pytest.approx(0.2, abs=0.01)
    assert (np.abs(student) > 4.032143).mean() == pytest.approx(0.01, abs=0.002)  # of the t distribution's tables
    assert (np.abs(normal) > 1.959964).mean() == pytest.approx(0.05, abs=0.005)


def test_the_samples_are_a_function_of_their_own_seed() -> None:
    first, again, other = load(**SMALL), load(**SMALL), load(**SMALL, seed=1)
    assert (first.train.x.shape, first.train.y.shape) == ((300, 10), (300,))
    assert first.train.x.dtype == first.train.y.dtype == np.float32
    np.testing.assert_array_equal(first.train.x, again.train.x)
    np.testing.assert_array_equal(first.train.y, again.train.y)
    assert not np.array_equal(first.train.x, other.train.x)
    whole = LinearRegression()
    assert (whole.samples, whole.features) == (10_000, 1_000)


def test_the_scenario_s_seed_shuffles_the_samples_among_clients_of_equal_size() -> None:
    data = divided(LinearRegression(**SMALL), clients=10)
    first, other = (federate(data, NoServerData(), seed) for seed in (0, 1))
    np.testing.assert_array_equal(first.train.x, other.train.x)
    assert first.samples.tolist() == [30] * 10
    assert first.train_rows(0).tolist() != other.train_rows(0).tolist()
    thirds = first.train_rows(0) // 100
    assert set(thirds.tolist()) == {0, 1, 2}


# Loss and gradient


@pytest.mark.parametrize("model", [Linear(), MLP(hidden=())])
def test_the_loss_and_its_gradient_are_those_of_the_formula(model: ModelPart) -> None:
    """a = (1, 2), (3, -1), b = (2, 0), u = (1, 1): residuals 1 and 2, loss 5/4, gradient (1 + 6, 2 - 2) / 2."""
    module = initialise(model, (2,), 1, seed=0)
    net = Net(module, (), "squared_error", torch.device("cpu"))
    net.w.zero_()
    net.w[:2] = 1  # of an mlp, the bias comes after
    x, y = torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([2.0, 0.0])
    value, gradients = net.gradients(x, y, net.parameters)
    assert value.item() == 1.25
    assert gradients[0].tolist() == [[3.5, 0.0]]


def test_outputs_of_shape_n_1_and_n_are_the_same_and_others_are_refused() -> None:
    target, flat = torch.tensor([0.0, 1.0, 5.0]), torch.tensor([1.0, 1.0, 2.0])
    for output in (flat, flat[:, None]):
        assert squared_error(output, target, reduction="sum").item() == 5.0
        assert squared_error(output, target).item() == pytest.approx(5 / 3)
    with pytest.raises(RuntimeError, match="invalid for input of size 9"):
        squared_error(torch.zeros(3, 3), target)


# Runs


def test_it_converges_to_the_least_squares_solution_and_the_table_has_its_loss(simulate: Simulate) -> None:
    dataset = load(**SMALL)
    best, *_ = np.linalg.lstsq(dataset.train.x.astype(np.float64), dataset.train.y, rcond=None)
    result = simulate(regression(100))
    np.testing.assert_allclose(result.vectors()["w"], best, atol=1e-5)
    rows = [row for row in result.table("evaluations").to_pylist() if row["step"] == 100]
    assert [row["metric"] for row in rows] == ["loss"]
    assert rows[0]["value"] == pytest.approx(loss(dataset, best), rel=1e-6)
    assert rows[0]["samples"] == 300
    assert result.module()(torch.from_numpy(dataset.train.x)).shape == (300, 1)


def test_weight_decay_is_the_ridge_term(simulate: Simulate) -> None:
    """Its solution is that of (AᵀA / d + c) u = Aᵀb / d."""
    x, y = (values.astype(np.float64) for values in (load(**SMALL).train.x, load(**SMALL).train.y))
    ridge = np.linalg.solve(x.T @ x / 300 + 0.5 * np.eye(10), x.T @ y / 300)
    result = simulate(regression(100, local={"lr": 0.2, "batch_size": None, "weight_decay": 0.5}))
    np.testing.assert_allclose(result.vectors()["w"], ridge, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"data__partition": {"name": "shards"}}, "data: partition shards: needs 'label', and linear_regression has"),
        ({"model": "cnn"}, "model.name: cnn takes images, and linear_regression holds features; take another of them"),
        ({"model": "vector"}, "model.name: vector takes functions, and linear_regression holds features; take another"),
        ({"server_data": {"name": "in_domain", "samples": 5}}, "server_data: the linear_regression data has no"),
    ],
)
def test_what_does_not_go_with_a_regression_is_refused(changes: Raw, expected: str) -> None:
    assert expected in problem(override(regression(1), **changes))
