"""Samples that everybody has."""

from typing import Any

import numpy as np
import pytest
from conftest import digits
from witness import worker_of

from raysim import parse_scenario
from raysim.data import Public, divided, federate
from raysim.data.federation.partition import Iid
from raysim.data.federation.server import NoServerData
from raysim.data.sources.arrays import Arrays
from raysim.data.sources.images import Digits
from raysim.parts.errors import ScenarioError
from raysim.parts.rng import generator
from raysim.terms import Moment
from raysim.workers.workbench import Workbench

DIGITS = Digits.model_validate({"clients": 3, "partition": {"name": "iid"}})


def shared(seed: int = 0, **settings: Any) -> Any:
    return federate(DIGITS, NoServerData(), seed, Public(**settings))


def test_public_samples_are_of_the_training_set_and_everybody_still_evaluates_on_the_whole_test_set() -> None:
    federation = shared(samples=200)
    of_train = {image.tobytes() for image in federation.train.x}
    assert len(federation.public) == len({image.tobytes() for image in federation.public.x} & of_train) == 200
    assert len(federation.evaluation_rows) == len(federation.test)
    again, other = shared(samples=200), shared(seed=1, samples=200)
    assert np.array_equal(federation.public.x, again.public.x)
    assert not np.array_equal(federation.public.x, other.public.x)
    assert np.array_equal(federation.held.rows, shared().held.rows)
    assert len(shared().public) == 0


def test_public_samples_may_be_of_all_training_samples() -> None:
    """Also of those that nobody has, because `train_samples` leaves them out."""
    few = DIGITS.model_copy(update={"train_samples": 100})
    some, of_all = (
        federate(few, NoServerData(), 0, Public(samples=100, from_all=from_all)) for from_all in (False, True)
    )
    held = {image.tobytes() for image in some.train.x}
    assert {image.tobytes() for image in some.public.x} == held
    assert len({image.tobytes() for image in of_all.public.x} - held) > 80
    assert np.array_equal(of_all.held.rows, some.held.rows) and of_all.mean == some.mean
    aside = federate(
        few.model_copy(update={"validation": 0.5}), NoServerData(), 0, Public(samples=1000, from_all=True)
    ).validation
    assert 0 < len(aside) < 50  # public samples teach, so none of them validates
    assert not {image.tobytes() for image in aside.x} & {image.tobytes() for image in shared(samples=1000).public.x}
    with pytest.raises(ScenarioError, match=r"public\.from_all: must be false with `split: test`"):
        parse_scenario(digits(public={"samples": 5, "split": "test", "from_all": True}))


@pytest.mark.parametrize("scale", ["standard", "unit"])
def test_public_features_are_scaled_as_those_of_clients(scale: str) -> None:
    """Only the first ten samples of each label are used, and the others have other means."""
    y = np.repeat([0, 1], 50)
    x = generator(0, "test").normal(size=(100, 3)) + 100 * (np.arange(100) % 50 >= 10)[:, None]
    source = Arrays.of({"x_train": x, "y_train": y, "x_test": x, "y_test": y}, train_samples=20, scale=scale)
    some = divided(source, clients=2, partition=Iid())
    federation = federate(some, NoServerData(), 0, Public(samples=100, from_all=True))
    assert np.allclose(federation.public.x[federation.public.x[:, 0] < 10], federation.train.x, atol=1e-4)


@pytest.mark.parametrize(("alpha", "low", "high"), [(1e6, 0.099, 0.101), (10.0, 0.11, 0.3), (0.1, 0.3, 1.0)])
def test_alpha_skews_the_mix_of_labels(alpha: float, low: float, high: float) -> None:
    counts = np.array([np.bincount(shared(s, samples=100, alpha=alpha).public.labels, minlength=10) for s in range(8)])
    assert (counts.sum(1) == 100).all()
    expected = counts.max(1).mean() / 100
    assert low - 0.06 * (alpha > 1e5) <= expected <= high + 0.06 * (alpha > 1e5)


@pytest.mark.parametrize(("settings", "most"), [({"samples": 1439}, 1438), ({"samples": 359, "split": "test"}, 358)])
def test_there_must_be_as_many_samples(settings: dict[str, Any], most: int) -> None:
    with pytest.raises(ValueError, match=f"public.samples: must be at most {most}"):
        shared(**settings)
    assert len(shared(**{**settings, "samples": most}).public) == most


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"public": {}}, "public.samples"),
        ({"data": {"name": "linear_regression", "clients": 3}, "model": "linear"}, "algorithm.outputs"),
        (
            {"data": {"name": "linear_regression", "clients": 3}, "model": "linear", "public": {"alpha": 1.0}},
            "public.alpha",
        ),
        ({"data": {"name": "quadratic", "centers": [1.0, 2.0]}, "model": "vector"}, "public"),
    ],
)
@pytest.mark.parametrize("name", ["cmfd", "fedf_admm"])
def test_what_distillation_needs_is_checked(name: str, changes: dict[str, Any], path: str) -> None:
    raw = digits(algorithm=name, topology="ring", **{"public": {"samples": 5}, **changes})
    del raw["world"]
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw)
    assert path in [problem.path for problem in caught.value.problems]


def test_all_tasks_of_a_worker_have_the_same_public_inputs_as_modules_take_them() -> None:
    bench = worker_of(digits(public={"samples": 7}), Workbench)
    bench.at(Moment())
    first, other = (bench.task(client, 0, bench.start).public for client in (0, 5))
    assert first is other
    images, _ = bench.loader(bench.federation.public, np.arange(7))
    assert first.shape == (7, 1, 8, 8)
    assert first.equal(images)
