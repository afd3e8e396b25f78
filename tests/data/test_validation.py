"""Samples that are set aside for validation: they neither train nor test."""

from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, digits
from data_sets import SERVER, part
from data_sets import digits as images

from raysim import ScenarioError, parse_scenario
from raysim.data import Federation, federate
from raysim.data.federation.server import Public

IN_DOMAIN: Raw = {"name": "in_domain", "samples": 50}


def federation(server_data: Any = "none", public: Raw | None = None, **settings: Any) -> Federation:
    return federate(images(**settings), SERVER.validate_python(server_data), 0, Public(**(public or {})))


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
