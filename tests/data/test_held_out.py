"""Samples that do not train: a client's part of the test split, those set aside for validation, and public ones."""

from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, digits
from data_sets import SERVER, federation, part
from refusals import problems
from witness import worker_of

from raysim import ScenarioError, parse_scenario
from raysim.data import Public, Split, divided, federate
from raysim.data.federation.holdings import divide_alike, hold_out
from raysim.data.federation.partition import Iid
from raysim.data.federation.server import NoServerData
from raysim.data.sources.arrays import Arrays
from raysim.data.sources.images import Digits
from raysim.parts.rng import generator
from raysim.terms import Moment
from raysim.workers.workbench import Workbench

# --- a client's part of the test split --------------------------------------------------------------------------------


def labelled(labels: list[int], **columns: list[int]) -> Split:
    y = np.array(labels, dtype=np.int64)
    return Split(np.zeros((len(y), 1), np.float32), y, {name: np.array(values) for name, values in columns.items()})


def parts_of(*rows: list[int]) -> list[np.ndarray]:
    return [np.array(of_client, dtype=np.int64) for of_client in rows]


def test_a_client_never_trains_on_what_it_tests_on_though_it_holds_it_twice() -> None:
    held, held_out = hold_out(parts_of([0, 0, 1, 1, 2, 3], [3, 4], [5, 5]), 0.5, seed=0)
    assert held_out.sizes.tolist() == [2, 1, 0]
    for client, rows in enumerate([{0, 1, 2, 3}, {3, 4}, {5}]):
        assert set(held[client]) == rows - set(held_out[client])
    assert held[2].tolist() == [5, 5]


def test_labels_of_the_test_split_are_cut_in_the_proportions_of_the_training_split() -> None:
    """Clients hold 2, 1 and 1 of 4 samples of label 0, which 8 test; the last holds all of label 1, which 3 test."""
    train, test = labelled([0, 0, 0, 0, 1, 1]), labelled([0] * 8 + [1] * 3)
    tests = divide_alike(train, parts_of([0, 1], [2], [3, 4, 5]), test, "label", generator(0, "tests"))
    counts = [np.bincount(test.y[rows], minlength=2).tolist() for rows in tests]
    assert counts == [[4, 0], [2, 0], [2, 3]]
    assert np.sort(tests.rows).tolist() == list(range(11))


def test_cuts_are_rounded_down_and_give_all_to_those_who_hold_some() -> None:
    """Thirds of ten: 3, 3 and 4; the last client holds nothing, and gets nothing."""
    train, test = labelled([0, 0, 0]), labelled([0] * 10)
    tests = divide_alike(train, parts_of([0], [1], [2], []), test, "label", generator(0, "tests"))
    assert [len(rows) for rows in tests] == [3, 3, 4, 0]


def test_test_samples_of_what_nobody_holds_are_nobodys() -> None:
    train, test = labelled([0, 1, 2]), labelled([0, 1, 2, 3])
    tests = divide_alike(train, parts_of([0], [2]), test, "label", generator(0, "tests"))
    assert [rows.tolist() for rows in tests] == [[0], [2]]


def test_users_get_their_own_test_samples() -> None:
    train = labelled([0, 1, 0, 1], user=[7, 7, 5, 6])
    test = labelled([1, 1, 0, 0, 1], user=[5, 7, 7, 8, 6])
    tests = divide_alike(train, parts_of([2], [0, 1]), test, "user", generator(0, "tests"))
    assert [sorted(rows.tolist()) for rows in tests] == [[0], [1, 2]]


def test_test_samples_without_the_column_are_told_as_such() -> None:
    train = labelled([0, 0, 1], user=[5, 6, 6])
    with pytest.raises(ValueError, match=r"local_test: must be a share, .* because the test samples have no column"):
        divide_alike(train, parts_of([0], [1, 2]), labelled([0, 1]), "user", generator(0, "tests"))


@pytest.mark.parametrize("assignment", ["cyclic", "collins"])
def test_clients_with_blocks_of_labels_test_on_blocks_of_the_same_labels(assignment: str) -> None:
    partition = {"name": "classes", "per_client": 2, "assignment": assignment}
    divided = federation(partition=partition, local_test="test", train_samples=1000, test_samples=200)
    assert divided.samples.tolist() == [100] * 10
    for client in range(10):
        split, rows = divided.local_test(client)
        assert split is divided.test
        trained = np.bincount(divided.train.y[divided.train_rows(client)], minlength=10)
        assert trained.tolist() == (5 * np.bincount(split.y[rows], minlength=10)).tolist()
    assert len(np.unique(divided.held_out.rows)) == 200


def test_what_is_nobodys_test_does_not_evaluate() -> None:
    """Five clients with a label each: the test samples of five labels are left."""
    divided = federation(clients=5, partition={"name": "classes", "per_client": 1}, local_test="test")
    assert set(divided.test.y[divided.evaluation_rows]) == {0, 1, 2, 3, 4}
    np.testing.assert_array_equal(np.sort(divided.held_out.rows), divided.evaluation_rows)


def test_public_samples_of_the_test_split_are_no_clients_test() -> None:
    divided = federation(local_test="test", public={"samples": 100, "split": "test"})
    assert len(divided.evaluation_rows) == 259
    np.testing.assert_array_equal(np.sort(divided.held_out.rows), divided.evaluation_rows)


def test_clients_are_evaluated_on_their_part_of_the_test_split(simulate: Simulate) -> None:
    raw = digits(data__local_test="test", run__evaluate_clients="all", run__rounds=2)
    evaluations = simulate(raw).pandas("evaluations").query("metric == 'accuracy' and step == step.max()")
    clients = evaluations.query("subject == 'client'")
    (of_global,) = evaluations.query("subject == 'global'").itertuples()
    assert clients.samples.sum() == of_global.samples == 359
    together = (clients.value * clients.samples).sum() / 359  # every client has the server's model here
    assert together == pytest.approx(of_global.value)


# --- validation -------------------------------------------------------------------------------------------------------


IN_DOMAIN: Raw = {"name": "in_domain", "samples": 50}


def test_clients_and_server_set_a_share_aside() -> None:
    """The others stay where they were, and noise in labels does not reach what is set aside."""
    plain, given = federation(IN_DOMAIN, local_test=0.2), federation(IN_DOMAIN, local_test=0.2, validation=0.1)
    for client in range(10):
        kept, aside = given.train_rows(client), given.aside[client]
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, aside])), plain.train_rows(client))
        assert len(aside) == len(plain.train_rows(client)) // 10
    assert len(given.server.split) == 45
    assert len(given.validation) == len(given.aside.rows) + 5
    np.testing.assert_array_equal(given.validation.x[:-5], plain.train.x[given.aside.rows])
    whole = {image.tobytes() for image in plain.server.split.x}
    assert {image.tobytes() for image in (*given.server.split.x, *given.validation.x[-5:])} == whole
    np.testing.assert_array_equal(given.held_out.rows, plain.held_out.rows)
    np.testing.assert_array_equal(given.evaluation_rows, plain.evaluation_rows)
    noisy = federation(IN_DOMAIN, local_test=0.2, validation=0.1, label_noise=1.0)
    np.testing.assert_array_equal(noisy.validation.y, given.validation.y)
    for client in range(10):
        split, rows = noisy.evaluates_on(client)["validation"]
        np.testing.assert_array_equal(split.y[rows], plain.train.y[given.aside[client]])
    table = given.partition_table()
    assert table["samples"][table["split"] == "validation"].sum() == len(given.aside.rows)


def test_public_samples_and_those_of_unseen_clients_stay() -> None:
    given = federation(public={"samples": 1000}, validation=0.5, unseen=0.2)
    assert not {image.tobytes() for image in given.public.x} & {image.tobytes() for image in given.validation.x}
    assert given.aside.sizes[:8].all()
    assert not given.aside.sizes[8:].any()


def test_without_a_sample_to_set_aside_it_is_an_error() -> None:
    single = part(name="digits", clients=1438, partition="iid", validation=0.5)
    with pytest.raises(ValueError, match=r"data.validation: must set a sample aside, got none for 0.5"):
        federate(single, SERVER.validate_python("none"), 0)
    with pytest.raises(ScenarioError, match=r"run.evaluate_on: has validation, for which no samples are set aside"):
        parse_scenario(digits(run__evaluate_on=["validation"]))


@pytest.mark.parametrize("peers", [False, True])
def test_models_are_evaluated_on_it(simulate: Simulate, peers: bool) -> None:
    raw = digits(data__validation=0.1, run__rounds=2, run__evaluate_every=1)
    if peers:
        raw = digits(
            data__validation=0.1,
            data__clients=3,
            algorithm="d_psgd",
            topology="ring",
            run={"rounds": 2},
            local__steps=1,
        )
        del raw["world"]
    evaluations = simulate(raw).pandas("evaluations").query("metric == 'accuracy'")
    samples = evaluations.groupby("split").samples.max()
    assert sorted(samples.index) == ["test", "validation"]
    assert evaluations.split.iloc[0] == "validation"
    assert 0 < samples["validation"] < (3 if peers else 1) * 144


def test_clients_own_models_are_evaluated_on_what_they_set_aside(simulate: Simulate) -> None:
    """With FedAvg every client's own model is the server's. Unseen clients set nothing aside."""
    settings: Raw = {"data__local_test": 0.2, "data__validation": 0.1, "data__unseen": 0.1, "run__rounds": 2}
    evaluations = simulate(digits(**settings, run__evaluate_clients="all")).pandas("evaluations")
    last = evaluations.query("metric == 'accuracy' and step == step.max()")
    clients, of_global = (last.query(f"subject == '{of}' and split == 'validation'") for of in ("client", "global"))
    assert len(clients) > 1
    assert clients.samples.sum() == of_global.samples.item()
    assert (clients.value * clients.samples).sum() / clients.samples.sum() == pytest.approx(of_global.value.item())
    assert set(last.query("subject == 'unseen'").split) == {"test"}


# --- public samples ---------------------------------------------------------------------------------------------------


DIGITS = Digits.model_validate({"clients": 3, "partition": {"name": "iid"}})


def shared(seed: int = 0, **settings: Any) -> Any:
    return federation(seed=seed, public=settings, clients=3)


def test_public_samples_are_of_the_training_set_and_everybody_still_evaluates_on_the_whole_test_set() -> None:
    found = shared(samples=200)
    of_train = {image.tobytes() for image in found.train.x}
    assert len(found.public) == len({image.tobytes() for image in found.public.x} & of_train) == 200
    assert len(found.evaluation_rows) == len(found.test)
    again, other = shared(samples=200), shared(seed=1, samples=200)
    assert np.array_equal(found.public.x, again.public.x)
    assert not np.array_equal(found.public.x, other.public.x)
    assert np.array_equal(found.held.rows, shared().held.rows)
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
    found = federate(some, NoServerData(), 0, Public(samples=100, from_all=True))
    assert np.allclose(found.public.x[found.public.x[:, 0] < 10], found.train.x, atol=1e-4)


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
    assert path in problems(raw)


def test_all_tasks_of_a_worker_have_the_same_public_inputs_as_modules_take_them() -> None:
    bench = worker_of(digits(public={"samples": 7}), Workbench)
    bench.at(Moment())
    first, other = (bench.task(client, 0, bench.start).public for client in (0, 5))
    assert first is other
    images, _ = bench.loader(bench.federation.public, np.arange(7))
    assert first.shape == (7, 1, 8, 8)
    assert first.equal(images)
