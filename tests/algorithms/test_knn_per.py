"""kNN-Per: how neighbours vote, what an embedding is, and where it is FedAvg."""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate
from personal import headed, scores
from torch import Tensor, nn

from raysim import RunFailed, parse_scenario, run
from raysim.algorithms import KNNPer, Population
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.task import Task

CPU = torch.device("cpu")


def task_of(module: nn.Module, x: Tensor, y: Tensor, personal: tuple[str, ...] = ()) -> Task:
    net = Net(module, personal, "cross_entropy", CPU)
    return Task(net, net.model(), Samples.of(x, y), Local(), Population(1, len(y)), (0, 0, 0))


def constant(probabilities: list[float], features: int = 1) -> nn.Linear:
    """Gives these, whatever the features."""
    layer = nn.Linear(features, len(probabilities))
    nn.init.zeros_(layer.weight)
    layer.bias.data = torch.tensor(probabilities).log()
    return layer


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"distance": "euclidean"}, (13 / 30, 17 / 30)),
        ({}, (0.408927, 0.591073)),
        ({"distance": "euclidean", "k": 1}, (0.6, 0.4)),
        ({"mix": 0.0}, (0.2, 0.8)),
        ({"distance": "euclidean", "mix": 1.0, "scale": 0.5}, (0.8, 0.2)),
    ],
)
def test_neighbours_vote_by_distance(choice: Raw, expected: tuple[float, float]) -> None:
    """A neighbour of label 0 at distance 0, one of label 1 at ln 2; the global model says (0.2, 0.8)."""
    x = torch.tensor([[0.0], [np.log(2)]], dtype=torch.float32)
    task = task_of(nn.Sequential(constant([0.2, 0.8])), x, torch.tensor([0, 1]))
    predict = KNNPer(**choice).personal(task, {}, {})
    assert predict(torch.zeros(1, 1)).exp()[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_an_embedding_is_what_enters_the_personal_part_or_the_last_linear_layer() -> None:
    layers = OrderedDict(first=nn.Linear(4, 3), act=nn.ReLU(), second=nn.Linear(3, 3), out=nn.Linear(3, 2))
    x = torch.randn(600, 4)
    for personal, depth in (((), 3), (("out",), 3), (("out", "second"), 2), (("out.bias",), 3), (("first",), 0)):
        module = nn.Sequential(layers)
        task = task_of(module, x, torch.zeros(600, dtype=torch.int64), personal)
        with torch.no_grad():
            assert task.embed(task.received, x).equal(module[:depth](x)), personal


def test_an_embedding_may_be_what_enters_another_module(simulate: Simulate, tmp_path: Path) -> None:
    layers = OrderedDict(first=nn.Linear(4, 3), norm=nn.BatchNorm1d(3), out=nn.Linear(3, 2))
    x, module = torch.randn(600, 4), nn.Sequential(layers)
    task = task_of(module, x, torch.zeros(600, dtype=torch.int64))
    with torch.no_grad():
        assert task.embed(task.received, x, "norm").equal(module[:1](x))
    whole, hidden = (scores(simulate(headed({"name": "knn_per", **at}))) for at in ({}, {"embedding": "hidden1"}))
    assert not whole.equals(hidden)
    with pytest.raises(RunFailed, match="sub-module, got 'hidden'; nearest are 'hidden1'"):
        run(parse_scenario(headed({"name": "knn_per", "embedding": "hidden"})), out=tmp_path, inline=True)


def test_sequences_have_a_neighbourhood_at_each_place() -> None:
    """Inputs (n, 5, 1), labels (n, 5): as if each place were a sample."""
    x, y = torch.randn(8, 5, 1), torch.randint(0, 2, (8, 5))
    whole = task_of(nn.Sequential(constant([0.3, 0.7])), x, y)
    flat = task_of(nn.Sequential(constant([0.3, 0.7])), x.reshape(-1, 1), y.flatten())
    of_whole, of_flat = (KNNPer().personal(task, {}, {}) for task in (whole, flat))
    assert of_whole(x[:3]).reshape(-1, 2).equal(of_flat(x[:3].reshape(-1, 1)))
