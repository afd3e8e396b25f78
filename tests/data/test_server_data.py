"""What the server has: samples like the clients', taken from them or from the test set, or those of other data."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits
from data_sets import federation
from PIL import Image
from refusals import told

from raysim import ScenarioError, parse_scenario
from raysim.algorithms import Central, Record, Round
from raysim.data.sources.images import channel_statistics, fit


def in_domain(samples: int, **settings: Any) -> Raw:
    return {"name": "in_domain", "samples": samples, **settings}


def images_of(split: Any, rows: np.ndarray | slice = slice(None)) -> set[bytes]:
    return {image.tobytes() for image in split.x[rows]}


def test_what_the_server_has_of_the_test_set_does_not_evaluate() -> None:
    given = federation(in_domain(100))
    assert (len(given.server.split), len(given.evaluation_rows), given.server.num_classes) == (100, 259, 10)
    assert (given.server.mean, given.server.std) == (given.mean, given.std)
    whole, server = images_of(given.test), images_of(given.server.split)
    assert server <= whole
    assert not server & images_of(given.test, given.evaluation_rows)
    np.testing.assert_array_equal(given.held.rows, federation().held.rows)


def test_what_the_server_has_of_the_training_set_was_its_clients() -> None:
    """The others keep what they had, and what clients test on is not taken."""
    without, given = (federation(kind, local_test=0.2) for kind in ("none", in_domain(300, split="train")))
    assert len(given.server.split) == 300
    assert given.samples.sum() == without.samples.sum() - 300
    for client in range(10):
        assert set(given.train_rows(client)) < set(without.train_rows(client))
    np.testing.assert_array_equal(given.held_out.rows, without.held_out.rows)
    assert not images_of(given.server.split) & images_of(given.train, given.held.rows)
    assert len(given.evaluation_rows) == 359


def test_what_the_server_has_is_no_clients_test() -> None:
    without, given = (federation(kind, local_test="test") for kind in ("none", in_domain(100)))
    assert len(without.held_out.rows) == 359
    np.testing.assert_array_equal(np.sort(given.held_out.rows), given.evaluation_rows)
    assert len(given.evaluation_rows) == 259


def test_a_server_that_takes_everything_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"must be less than the 359 samples of the test set.*got 359"):
        federation(in_domain(359))
    with pytest.raises(ValueError, match=r"must be less than the 1438 samples of the train set.*got 1438"):
        federation(in_domain(1438, split="train"))


# Out of domain


@pytest.fixture
def colours(tmp_path: Any) -> Raw:
    """Other data: three kinds of colour images of 6 × 4 pixels, red, green and blue ones, four of each."""
    for label, name in enumerate(("red", "green", "blue")):
        (tmp_path / "colours" / "train" / name).mkdir(parents=True)
        (tmp_path / "colours" / "test" / name).mkdir(parents=True)
        for i in range(4):
            pixels = np.zeros((6, 4, 3), np.uint8)
            pixels[..., label] = 60 * (i + 1)
            Image.fromarray(pixels).save(tmp_path / "colours" / "train" / name / f"{i}.png")
        Image.fromarray(pixels).save(tmp_path / "colours" / "test" / name / "0.png")
    return {"name": "image_folder", "path": str(tmp_path / "colours"), "size": 5}


def test_other_data_are_made_as_the_clients_images_are(colours: Raw) -> None:
    """Grey, 8 × 8; with the labels, and on the scale, of the other data."""
    given = federation({"name": "out_of_domain", "data": colours})
    split = given.server.split
    assert split.x.shape == (12, 8, 8, 1)
    assert (given.num_classes, given.server.num_classes) == (10, 3)
    assert split.x[:, 0, 0, 0].tolist() == [20, 40, 60, 80] * 3
    assert split.y.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert (given.server.mean, given.server.std) == channel_statistics(split.x)
    assert (given.mean, given.std) == channel_statistics(given.train.x)
    assert len(given.evaluation_rows) == 359


def test_other_data_may_keep_their_form_for_a_model_that_resizes_them(colours: Raw, simulate: Simulate) -> None:
    """In colour, 5 × 5, though clients have grey images of 8 × 8: the network brings both to 16 × 16 in colour."""
    other = {"name": "out_of_domain", "data": colours, "fit": "model"}
    assert federation(other).server.split.x.shape == (12, 5, 5, 3)
    algorithm = {"name": "feddle", "server_epochs": 1, "server_batch_size": 4}
    small: Raw = {"data__clients": 4, "world": {"dispatch": {"per_round": 2}}, "run__rounds": 1, "local__steps": 1}
    raw = digits(algorithm=algorithm, server_data=other, **small)
    with pytest.raises(ScenarioError, match=r"server_data.fit: model needs a model that resizes images, got mlp"):
        parse_scenario(raw)
    raw["model"] = {"name": "torchvision", "model": "shufflenet_v2_x0_5", "image_size": 32}
    assert simulate(raw).info["status"] == "finished"


def test_some_of_the_other_data_are_drawn(colours: Raw) -> None:
    first, again, other = (
        federation({"name": "out_of_domain", "data": {**colours, "scale": "unit"}, "samples": 6}, seed=seed).server
        for seed in (0, 0, 1)
    )
    assert len(first.split) == 6
    assert (first.mean, first.std) == ((0.0,), (1.0,))
    np.testing.assert_array_equal(first.split.x, again.split.x)
    assert not np.array_equal(first.split.x, other.split.x)
    with pytest.raises(ValueError, match=r"server_data.samples: must be at most 12, the training samples of .*got 13"):
        federation({"name": "out_of_domain", "data": colours, "samples": 13})


def test_reference_samples_are_of_the_clients_kind_and_do_not_evaluate(colours: Raw) -> None:
    given = federation({"name": "out_of_domain", "data": colours, "reference": 50})
    assert (len(given.server.reference), len(given.evaluation_rows)) == (50, 309)
    reference = images_of(given.server.reference)
    assert reference <= images_of(given.test)
    assert not reference & images_of(given.test, given.evaluation_rows)
    assert not reference & images_of(given.server.split)
    without = federation({"name": "out_of_domain", "data": colours})
    assert len(without.server.reference) == 0
    np.testing.assert_array_equal(given.server.split.x, without.server.split.x)
    with pytest.raises(ValueError, match=r"server_data.reference: must be less than the 359 samples of .*got 359"):
        federation({"name": "out_of_domain", "data": colours, "reference": 359})


def test_images_are_fitted_in_size_and_channels() -> None:
    colour = np.array([[[[10, 20, 60]]]], np.uint8)
    assert fit(colour, 1, 1, 1).tolist() == [[[[30]]]]
    assert fit(np.array([[[[7]]]], np.uint8), 1, 1, 3).tolist() == [[[[7, 7, 7]]]]
    assert fit(colour, 3, 2, 3).tolist() == [[[[10, 20, 60]] * 2] * 3]
    halves = np.zeros((1, 4, 4, 1), np.uint8)
    halves[:, :, 2:] = 200
    np.testing.assert_array_equal(fit(halves, 2, 2, 1)[0, :, :, 0], [[29, 171], [29, 171]])  # smoothed


class Shown(Central):
    """The model is what the server sees: the mean of its labels, everywhere."""

    name: str = "shown"

    @property
    def trigger(self) -> Round:
        return Round(late="keep")

    def weigh(self, arrivals: Any, population: Any) -> list[float]:
        return [0.0] * len(arrivals)

    def step(self, state: Record, arrivals: Any, updates: Record, task: Any) -> Record:
        assert task.x.shape == (12, 1, 8, 8)
        assert abs(float(task.x.mean())) < 1e-6  # on its own scale
        return {"w": torch.full_like(state["w"], float(task.y.float().mean()))}


def test_a_server_step_works_on_the_other_data(simulate: Simulate, colours: Raw) -> None:
    raw = digits(algorithm="test_server_data:Shown", server_data={"name": "out_of_domain", "data": colours})
    raw |= {"world": {"dispatch": {"per_round": 2}}, "run": {"rounds": 1}}
    result = simulate(raw)
    (bias,) = (value for name, value in result.state_dict().items() if name == "head.bias")
    assert bias.tolist() == [1.0] * 10


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"data": {"name": "mnist", "clients": 3}}, "data.clients: must be left out, because the server"),
        ({"data": {"name": "femnist", "path": "x", "local_test": 0.1}}, "data.local_test: must be left out"),
        ({"data": "mnits"}, "server_data.data.name: must be one of 'digits', 'mnist'"),
        ({"data": {"name": "mnist", "train_samples": 3}}, "server_data.data: `train_samples` must be a multiple of"),
        ({"data": {"name": "image_folder", "path": "x"}}, "server_data.data.size: must be given, got nothing"),
    ],
)
def test_other_data_must_be_right_too(changes: Raw, expected: str) -> None:
    assert expected in told(digits(server_data={"name": "out_of_domain", **changes}))


def test_clients_of_an_out_of_domain_server_must_have_images() -> None:
    raw = digits(server_data={"name": "out_of_domain", "data": "digits"}, model={"name": "transformer"})
    raw["data"] = {"name": "shakespeare", "path": "plays.txt", "clients": 30}
    assert "server_data: out_of_domain holds images, so clients must hold images" in told(raw)
