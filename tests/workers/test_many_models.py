"""Evaluating many clients' models together gives the bits of evaluating one after another."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from conftest import digits
from torch import nn

from actors import Value
from raysim.algorithms import LocalOnly
from raysim.data import federate
from raysim.engine.families import family_of
from raysim.local.many import ManyModels
from raysim.local.net import Net
from raysim.scenario.load import scenario_of
from raysim.terms import ClientState, Moment
from raysim.workers import records
from raysim.workers.requests import EvaluateClientsRequest, OwnModels, Served

CLIENTS = tuple(range(12))
PERSONAL = {"fedper": "head", "fedrep": "head", "lg_fedavg": "first"}
ALGORITHMS = ("fedper", "local_only", "fedavg", "lg_fedavg", "fedrep", "ditto", "pfedme")
MODELS = [
    {"name": "mlp", "hidden": [24, 10], "activation": "tanh"},
    {"name": "mlp", "hidden": [64]},
    {"name": "cnn", "channels": [4], "kernel": 3, "hidden": 9},
]
DATA = [
    {"partition": "iid", "local_test": 0.2},
    {"partition": {"name": "dirichlet", "alpha": 0.3, "min_size": 8}, "local_test": 0.3, "validation": 0.2},
]


def asked(raw: dict[str, Any], seed: int = 0) -> tuple[Any, EvaluateClientsRequest]:
    """Returns a worker of a scenario, and a request to evaluate clients whose states are random."""
    scenario = scenario_of({**raw, "seed": seed})
    worker = family_of(scenario).worker(federate(scenario.data, scenario.server_data, scenario.seed, scenario.public))
    message = Value(records.send(worker.models.message(worker.models.first_state())))
    drawn, first = np.random.default_rng(seed), records.send(worker.models.first_client().algorithm)

    def state() -> dict[str, np.ndarray]:
        return {key: one + drawn.normal(0, 0.1, one.shape).astype(one.dtype) for key, one in first.items()}

    states = tuple(Value(ClientState(state(), {})) for _ in CLIENTS)
    ones = (1.0,) * len(CLIENTS)
    own = OwnModels(CLIENTS, ones, 1, Moment(), False, (Served(message, 1),), states if first else ())
    return worker, EvaluateClientsRequest(own)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_many_models_have_the_bits_of_one_after_another(
    algorithm: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model, data in itertools.product(MODELS, DATA):
        first = "conv1" if model["name"] == "cnn" else "hidden1"
        personal = [PERSONAL[algorithm].replace("first", first)] if algorithm in PERSONAL else []
        raw = digits(algorithm=algorithm, model={**model, "personal": personal})
        raw["data"] = {"name": "digits", "clients": len(CLIENTS), **data}
        worker, request = asked(raw, seed)
        assert worker.models.many(request.own)
        together = [worker.evaluate_clients(request) for _ in range(3)]  # alone, tried, and together
        with monkeypatch.context() as patched:
            patched.setattr(worker.models, "many", lambda own: None)
            alone = worker.evaluate_clients(request)
        assert together == [alone] * 3
        assert all(one["test"].samples for one in alone)


@pytest.mark.parametrize("sizes", [(10,) * 25, (1,) * 50, (3, 10, 1, 30, 2, 7)])
@pytest.mark.parametrize("outputs", [1, 2, 10])
def test_rows_of_few_numbers_are_tried_until_a_difference_shows(outputs: int, sizes: tuple[int, ...]) -> None:
    for seed in range(4):
        torch.manual_seed(seed)
        act = nn.ReLU()  # twice in the network, as one object
        module = nn.Sequential(nn.Linear(60, 32), act, nn.Linear(32, 16), act, nn.Linear(16, outputs))
        net = Net(module, (), "cross_entropy", torch.device("cpu"))
        models, x = ManyModels(net), torch.randn(sum(sizes), 60)
        with torch.no_grad():
            alone = [module(piece.clone()) for piece in x.split(sizes)]
            for _ in range(3):
                assert all(map(torch.equal, models(x, sizes, [net.w[:0]] * len(sizes)), alone))


def test_an_algorithm_that_makes_its_own_models_otherwise_is_asked() -> None:
    class Halved(LocalOnly):
        def own(self, task: Any, state: Any) -> Any:
            return super().own(task, {**state, "w": state["w"] / 2})

    raw = digits(data__local_test=0.2)
    worker, request = asked({**raw, "algorithm": Halved()})
    assert worker.models.many(request.own) is None


def test_a_model_whose_bits_would_differ_is_computed_alone() -> None:
    worker, request = asked(digits(algorithm="fedper", model__personal=["head"], data__local_test=0.2))
    models, vectors = worker.models.many(request.own)
    shared, sizes, x = models._shared, (2, 3, 4), torch.rand(9, 64)
    models._shared = lambda given: shared(given) + (len(given) > 4) * 1e-6 * (torch.arange(len(given)) < 5)[:, None]
    with worker.net.evaluating(worker.start):
        alone, *others = (models(x, sizes, vectors[:3]) for _ in range(3))
    assert models._differ[sizes] == [0, 1]
    for outputs in others:
        assert all(map(torch.equal, alone, outputs))


@pytest.mark.parametrize(
    "given",
    [
        {"run__metrics": ["f1"], "algorithm": "local_only"},
        {"algorithm": "apfl"},
        {"algorithm": "fedper", "model": {"name": "resnet", "depth": 14, "personal": ["head"]}},
        {"data__skew": {"name": "noise", "sigma": 0.1}, "algorithm": "local_only"},
    ],
    ids=["metrics", "a model that is computed", "another architecture", "inputs that differ"],
)
def test_what_does_not_fit_is_evaluated_one_by_one(given: dict[str, Any]) -> None:
    worker, request = asked(digits(data__local_test=0.2, **given))
    assert worker.models.many(request.own) is None
    assert len(worker.evaluate_clients(request)) == len(CLIENTS)


def test_layers_that_draw_in_evaluations_are_evaluated_one_by_one() -> None:
    for layer, fits in ((nn.MaxPool2d(2), True), (nn.FractionalMaxPool2d(2, 3), False)):
        module = nn.Sequential(nn.Conv2d(1, 2, 3), layer, nn.Flatten(), nn.Linear(18, 2))
        assert ManyModels.fits(Net(module, (), "cross_entropy", torch.device("cpu"))) == fits
