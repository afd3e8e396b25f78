"""Samples that everybody has."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import Simulate, digits

from raysim import parse_scenario
from raysim.algorithms import Inbox, Peer, Record
from raysim.data import Public, federate
from raysim.data.digits import Digits
from raysim.data.server import NoServerData
from raysim.errors import ScenarioError
from raysim.local.samples import Loader

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


def test_public_samples_of_the_test_set_do_not_evaluate() -> None:
    federation = shared(samples=100, split="test")
    evaluated = {image.tobytes() for image in federation.test.x[federation.evaluation_rows]}
    assert len(federation.evaluation_rows) == len(federation.test) - 100
    assert not evaluated & {image.tobytes() for image in federation.public.x}


@pytest.mark.parametrize(("alpha", "low", "high"), [(1e6, 0.099, 0.101), (10.0, 0.11, 0.3), (0.1, 0.3, 1.0)])
def test_alpha_skews_the_mix_of_labels(alpha: float, low: float, high: float) -> None:
    counts = np.array([np.bincount(shared(s, samples=100, alpha=alpha).public.labels, minlength=10) for s in range(8)])
    assert (counts.sum(1) == 100).all()
    expected = counts.max(1).mean() / 100
    assert low - 0.06 * (alpha > 1e5) <= expected <= high + 0.06 * (alpha > 1e5)


@pytest.mark.parametrize(("settings", "most"), [({"samples": 1439}, 1438), ({"samples": 359, "split": "test"}, 358)])
def test_there_must_be_as_many_samples(settings: dict[str, Any], most: int) -> None:
    with pytest.raises(ValueError, match=f"`samples` must be at most {most}"):
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


class Seeing(Peer):
    """Its parameters are the public inputs that it sees, and where they lie in memory."""

    name: str = "seeing"

    def init(self, task: Any) -> Record:
        assert task.public.shape == (7, 1, 8, 8)
        w = task.received.w.clone()
        w[:448] = task.public.flatten()
        return {"w": w, "buffers": task.received.buffers, "place": torch.tensor(task.public.data_ptr())}

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        assert task.public.data_ptr() == state["place"]
        return {}, dict(state)

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        assert all(message["place"].equal(inbox.own["place"]) for message in inbox.messages)
        return dict(inbox.own)


def test_all_tasks_of_a_worker_have_the_same_public_inputs_as_modules_take_them(simulate: Simulate) -> None:
    raw = digits(algorithm="test_public:Seeing", topology="ring", public={"samples": 7}, world={}, run__rounds=2)
    scenario = parse_scenario(raw)
    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    images, _ = Loader(federation.mean, federation.std, torch.device("cpu"))(federation.public, np.arange(7))
    seen = simulate(raw).vectors()["w"][:, :448]
    assert np.array_equal(seen, np.tile(images.flatten(), (30, 1)))
