"""Servers with their own samples: Fed+FT, HFCL, FedDF and training at the server alone."""

import math
from typing import Any

import pytest
import torch
from conftest import Raw, Simulate, digits, server_task
from torch import Tensor, nn

from raysim import ScenarioError, parse_scenario
from raysim.algorithms import HFCL, Arrival, Center, FedDF, FedFT
from raysim.local.server_task import ServerTask

ONE_STEP: Raw = {"server_optimizer": "sgd", "server_lr": 0.5, "server_epochs": 1, "server_batch_size": None}
SERVER: Raw = {"name": "in_domain", "samples": 100}


def parabola(optimum: float, start: float = 0.0, **local: Any) -> ServerTask:
    """A server with one sample, whose loss is (x - optimum)^2 / 2."""
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, start)
    return server_task(module, "squared_error", torch.ones(1, 1), torch.tensor([optimum]), **local)


def arrivals(*samples: int) -> list[Arrival]:
    return [Arrival(client, client, 0, 0, 0.0, number) for client, number in enumerate(samples)]


def hybrid(algorithm: Any, server_data: Any = SERVER, **more: Any) -> Raw:
    return digits(algorithm=algorithm, server_data=server_data, **more)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_the_average_is_fine_tuned() -> None:
    """From the average 1, half-way to 2."""
    task = parabola(2.0)
    updates = {"delta": torch.ones(1), "buffers": torch.empty(0)}
    after = FedFT(**ONE_STEP).step({"w": torch.zeros(1)}, arrivals(3), updates, task)
    assert after["w"].tolist() == [1.5]
    untouched = FedFT(**{**ONE_STEP, "server_epochs": 0}).step({"w": torch.zeros(1)}, arrivals(3), updates, task)
    assert untouched["w"].tolist() == [1.0]


def test_where_nobody_reports_the_model_is_fine_tuned_all_the_same() -> None:
    assert FedFT(**ONE_STEP).step({"w": torch.ones(1)}, [], {}, parabola(2.0, start=1.0))["w"].tolist() == [1.5]


def test_the_server_is_a_client_of_as_many_samples_as_it_has() -> None:
    """A client's model 1 of n = 3, the server's 5 of n = 1; and the server's alone."""
    task = parabola(5.0, lr=1.0)
    updates = {"delta": torch.ones(1), "buffers": torch.empty(0)}
    assert HFCL().step({"w": torch.zeros(1)}, arrivals(3), updates, task)["w"].tolist() == [2.0]
    assert HFCL().step({"w": torch.zeros(1)}, arrivals(1, 2), updates, task)["w"].tolist() == [2.0]
    assert HFCL().step({"w": torch.zeros(1)}, [], {}, task)["w"].tolist() == [5.0]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({}, 0.952574),
        ({"ensemble": "probabilities"}, 0.931405),
        ({"temperature": 2.0}, sigmoid(1.5)),
        ({"ensemble": "probabilities", "temperature": 2.0}, (sigmoid(1) + sigmoid(2)) / 2),
    ],
)
def test_a_student_learns_what_its_teachers_predict_together(options: Raw, target: float) -> None:
    """Teachers with logits (0, 2) and (0, 4), for every input, of n = (1, 3): the student starts at (0, 3.5)."""
    module = nn.Linear(1, 2)
    nn.init.zeros_(module.weight)
    task = server_task(module, "cross_entropy", torch.zeros(5, 1), torch.zeros(5, dtype=torch.int64))
    teachers = [task.received.replace(w=torch.tensor([0.0, 0.0, 0.0, logit])) for logit in (2.0, 4.0)]
    fit = {"server_optimizer": "sgd", "server_lr": 8.0, "server_epochs": 400, "server_batch_size": None}
    feddf = FedDF(**fit, **options)
    assert feddf.target([(1.0, task, one) for one in teachers])[:, 1].tolist() == pytest.approx([target] * 5, abs=1e-6)
    updates = {"w": torch.stack([teacher.w for teacher in teachers]), "statistics": torch.empty(2, 0)}
    start = feddf.model_copy(update={"server_epochs": 0}).step({}, arrivals(1, 3), updates, task)
    assert start["w"].tolist() == [0.0, 0.0, 0.0, 3.5]
    student = task.received.replace(w=feddf.step({}, arrivals(1, 3), updates, task)["w"])
    learned = (task.predict(student, task.x) / feddf.temperature).softmax(-1)
    assert learned[:, 1].tolist() == pytest.approx([target] * 5, abs=1e-4)
    alone = {key: values[:1] for key, values in updates.items()}
    assert torch.equal(feddf.step({}, arrivals(1), alone, task)["w"], teachers[0].w)  # nothing is learnt from itself


def test_the_divergence_is_a_mean_over_inputs() -> None:
    logits, target = torch.tensor([[0.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assert FedDF().divergence(logits, target).item() == pytest.approx(math.log(2) / 2)


def test_each_teacher_predicts_with_statistics_of_its_own() -> None:
    """Two teachers differ in running means: they put out -1 and -3 for the input 0. The student has their mean."""
    module = nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 1, bias=False))
    nn.init.ones_(module[1].weight)
    task = server_task(module, "squared_error", torch.zeros(3, 1), torch.zeros(3))
    updates = {"w": torch.stack([task.received.w] * 2), "statistics": torch.tensor([[1.0, 1.0], [3.0, 1.0]])}
    seen: list[Tensor] = []

    class Watched(FedDF):
        def target(self, teachers: Any) -> Tensor:
            seen.extend(of.predict(teacher, of.x) for _, of, teacher in teachers)
            return super().target(teachers)

    Watched(server_epochs=1).step({}, arrivals(1, 3), updates, task)
    assert [outputs.mean().item() for outputs in seen] == pytest.approx([-1.0, -3.0], abs=1e-4)
    after = FedDF(server_epochs=0).step({}, arrivals(1, 3), updates, task)
    assert after["buffers"].tolist() == [2.5, 1.0]


# --- in a run ---------------------------------------------------------------------------------------------------------


def test_feddf_learns_from_inputs_of_other_data(simulate: Simulate) -> None:
    """Whatever their labels are."""
    other = {"name": "out_of_domain", "data": "digits", "samples": 200}
    averaged, distilled = (
        simulate(hybrid({"name": "feddf", "server_epochs": epochs}, server_data=other)).vectors()["w"]
        for epochs in (0, 1)
    )
    assert distilled.shape == averaged.shape
    assert (distilled != averaged).any()


@pytest.mark.parametrize("algorithm", ["fed_ft", "hfcl", "feddf", "center"])
def test_the_server_must_have_samples(algorithm: str) -> None:
    with pytest.raises(ScenarioError, match=f"server_data: must not be none, because the server of {algorithm}"):
        parse_scenario(digits(algorithm=algorithm))


@pytest.mark.parametrize("algorithm", ["fed_ft", "hfcl", "center"])
def test_who_learns_labels_needs_those_of_the_clients(algorithm: str) -> None:
    other = {"name": "out_of_domain", "data": "fashion_mnist"}
    with pytest.raises(ScenarioError, match=r"server_data: must be in_domain, .*, got out_of_domain; take in_domain"):
        parse_scenario(hybrid(algorithm, server_data=other))
    assert parse_scenario(hybrid("feddf", server_data=other))
    assert parse_scenario(hybrid(algorithm, server_data={"name": "toys_parts:FirstRows"}))


def test_the_servers_training_is_its_own() -> None:
    """Nothing of `local` gets into it."""
    start = Center(**{**ONE_STEP, "server_epochs": 3})
    others: Raw = {"optimizer": {"name": "sgd", "momentum": 0.9}, "gradients": ({"name": "sam", "radius": 0.1},)}
    plain, other = (
        start.fit(task, task.received).w.item()
        for task in (parabola(2.0), parabola(2.0, **others, weight_decay=1.0, steps=7, lr=0.01))
    )
    assert plain == other == 1.75
