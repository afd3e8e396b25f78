"""Personalised algorithms at work: on digits, and on two clients that can be followed with pencil and paper.

Bilinear: clients predict h b from the input 1, where b is the body and h the head, both 1 at first, and minimise
(h b - y)^2 / 2; client 0 has y = 2, client 1 has y = sqrt(2).
"""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, digits, override
from torch import nn
from witness import Arrays, WitnessPool, execute

from raysim import Result
from raysim.data import Dataset, Source, Split
from raysim.data.sources.synthetic import LinearRegression
from raysim.models import MLP

PERSONAL = ["local_only", "fedavg_ft", "ditto", "fedper", "fedrep", "knn_per", "fedeq"]
WITH_HEADS = ["fedper", "fedrep", "fedeq"]
HEADED: Raw = {"name": "mlp", "hidden": [16], "personal": ["head"]}


def headed(algorithm: Any, **more: Any) -> Raw:
    """Digits, of whose model the head is each client's own; all clients' own models are evaluated."""
    world = {"dispatch": {"per_round": 6}}
    own: Raw = {"model": HEADED, "world": world, "data__local_test": 0.3, "run__evaluate_clients": "all"}
    return digits(algorithm=algorithm, **own | more)


def own_models(result: Result) -> np.ndarray:
    """(clients, size)"""
    saved: np.ndarray = result.clients()["w"]
    return saved


def scores(result: Result, subject: str = "client") -> Any:
    """The last accuracy of each client's own model."""
    rows = result.pandas("evaluations").query("subject == @subject and metric == 'accuracy'")
    last = rows[rows["round"] == rows["round"].max()]
    return last.set_index(last.member.astype(int)).value


def with_head(body: nn.Module, head: Any) -> nn.Module:
    return nn.Sequential(OrderedDict(body=body, head=head))


def normalised(model: MLP, shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """A network with batch normalisation, to be built instead of an MLP."""
    body = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 8), nn.ReLU())
    return with_head(body, nn.Linear(8, num_classes))


def bilinear_clients(monkeypatch: pytest.MonkeyPatch) -> Raw:
    """A scenario of the bilinear clients, whose steps are 0.5, without its algorithm."""

    def build(model: MLP, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        body, head = (nn.Linear(1, 1, bias=False) for _ in range(2))
        for layer in (body, head):
            nn.init.ones_(layer.weight)
        return with_head(body, head)

    split = Split(np.ones((2, 1), dtype=np.float32), np.array([2.0, 2**0.5], dtype=np.float32))
    dataset = Dataset(train=split, test=split, num_classes=1, loss="squared_error")
    monkeypatch.setattr(MLP, "build", build)
    monkeypatch.setattr(LinearRegression, "load", lambda data: dataset)
    monkeypatch.setattr(Source, "divide", lambda data, train, generator: [np.array([0]), np.array([1])])
    return {
        "name": "bilinear",
        "data": {"name": "linear_regression", "clients": 2},
        "model": {"name": "mlp", "personal": ["head"]},
        "local": {"lr": 0.5, "batch_size": None},
    }


def after_rounds(raw: Raw, algorithm: Any, picks: list[list[int]], folder: Path) -> tuple[Arrays, list[Arrays]]:
    """The last state of the server, and of each client."""
    run, pool = {"rounds": len(picks), "save_clients": True}, WitnessPool()
    execute(override(raw, algorithm=algorithm, world__dispatch={"picks": picks}, run=run), folder, pool)
    return pool.server_state, [state for _, state in sorted(pool.client_states.items())]


def saved(simulate: Simulate, algorithm: Any, **more: Any) -> Result:
    return simulate(headed(algorithm, run__save_clients=True, **more))
