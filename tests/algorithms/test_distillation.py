"""CMFD and FedF-ADMM: with outputs that are parameters, by hand; and whole runs beside the same in numpy."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from conftest import Raw

from raysim.algorithms import CMFD, FedFADMM, Inbox
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.models import Linear

# --- functions: a linear model on the input 1, so that its output is its parameter ------------------------------------


class Functions:
    """Peers that learn nothing but each other's outputs. f(x) = w x, over the given public inputs."""

    def __init__(
        self, algorithm: Any, start: list[float], near: list[list[int]], inputs: tuple[float, ...] = (1.0,)
    ) -> None:
        net = Net(Linear().build((1,), 1), (), "squared_error", torch.device("cpu"))
        public = torch.tensor(inputs)[:, None]
        self.algorithm, self.near = algorithm, near
        self.task = Task(
            net, net.model(), Samples.of(public, public[:, 0]), Local(batch_size=None), None, (0, 0, 0), lambda: public
        )
        first = algorithm.init(self.task)
        self.states = [{**first, "w": torch.tensor([w]), "buffers": torch.empty(0)} for w in start]

    def mix(self) -> list[float]:
        """One exchange of all; gives their w."""
        models = [self.task.received.replace(w=state["w"]) for state in self.states]
        sent = [{"outputs": self.task.predict(model, self.task.public)} for model in models]
        inboxes = [Inbox(sent[i], [sent[j] for j in near], [0.0] * len(near)) for i, near in enumerate(self.near)]
        self.states = [self.algorithm.mix(self.task, *pair) for pair in zip(self.states, inboxes, strict=True)]
        return [float(state["w"]) for state in self.states]

    @property
    def multipliers(self) -> list[float]:
        return [float(state["multiplier"]) for state in self.states]


TRIANGLE = [[1, 2], [0, 2], [0, 1]]


def test_cmfd_moves_towards_the_mean_of_the_others() -> None:
    """Targets 4.5, 3, 1.5 of outputs 0, 3, 6."""
    peers = Functions(CMFD(rho=0.1, outputs="logits"), [0.0, 3.0, 6.0], TRIANGLE)
    assert peers.mix() == pytest.approx([0.45, 3.0, 5.55])


def test_the_squared_error_is_summed_over_public_inputs() -> None:
    """w x on inputs 1, 1, 2, 2, with targets 3: the gradient at 0 is -18."""
    peers = Functions(CMFD(rho=0.1, outputs="logits"), [0.0, 0.0], [[1], [0]], (1.0, 1.0, 2.0, 2.0))
    task, wanted = peers.task, {"outputs": torch.full((4, 1), 3.0)}
    after = peers.algorithm.mix(task, peers.states[0], Inbox(wanted, [wanted], [0.5]))
    assert float(after["w"]) == pytest.approx(1.8)


def test_fedf_admm_makes_its_target_with_the_new_multiplier() -> None:
    """Outputs 0, 3, 6; means 4.5, 3, 1.5; multipliers -4.5, 0, 4.5; targets 9, 3, -3."""
    peers = Functions(FedFADMM(rho=0.1, nu=0.1, outputs="logits"), [0.0, 3.0, 6.0], TRIANGLE)
    assert peers.mix() == pytest.approx([0.9, 3.0, 5.1])
    assert peers.multipliers == pytest.approx([-4.5, 0.0, 4.5])
    assert peers.mix() == pytest.approx([1.935, 3.0, 4.065])  # targets 11.25, 3, -5.25
    assert peers.multipliers == pytest.approx([-7.2, 0.0, 7.2])


@pytest.mark.parametrize("algorithm", [CMFD(rho=0.1, outputs="logits"), FedFADMM(rho=0.1, nu=0.2, outputs="logits")])
def test_distillation_keeps_the_mean_weighted_by_degree(algorithm: Any) -> None:
    """On any graph; and multipliers, so weighted, sum to zero."""
    graph = nx.gnm_random_graph(7, 11, seed=3)
    near = [sorted(graph[peer]) for peer in range(7)]
    degrees = np.array([len(peers) for peers in near])
    assert len(set(degrees)) > 2
    start = np.arange(7.0) ** 2
    peers = Functions(algorithm, start.tolist(), near)
    for _ in range(5):
        assert degrees @ peers.mix() == pytest.approx(degrees @ start, rel=1e-5)
        if isinstance(algorithm, FedFADMM):
            assert degrees @ peers.multipliers == pytest.approx(0, abs=1e-3)
            assert np.abs(peers.multipliers).max() > 1


# --- distillation, the whole of it, beside the same in numpy ----------------------------------------------------------


def distillation(data: Raw, **more: Any) -> Raw:
    """A scenario of linear models on a ring, with mini-batches of 4 unless it says otherwise."""
    usual: Raw = {
        "name": "paper",
        "data": data,
        "public": {"samples": 9},
        "model": "linear",
        "topology": "ring",
        "local": {"lr": 0.05, "batch_size": 4},
        "run": {"rounds": 3},
    }
    return {**usual, **more}
