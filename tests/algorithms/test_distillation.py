"""CMFD and FedF-ADMM: with outputs that are parameters, by hand; and whole runs beside the same in numpy."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from conftest import Raw, Simulate
from witness import worker_of

import raysim
from raysim import parse_scenario
from raysim.algorithms import CMFD, FedFADMM, Inbox
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.models import Linear
from raysim.parts.rng import generator
from raysim.workers.peers import PeersWorker

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


class Twin:
    """CMFD or FedF-ADMM on a linear model whose outputs are its logits, or their softmax."""

    def __init__(self, raw: Raw) -> None:
        self.scenario = parse_scenario(raw)
        self.algorithm, self.local = self.scenario.algorithm, self.scenario.local
        bench = worker_of(raw, PeersWorker)
        tasks = [bench.task(peer, 0, bench.start) for peer in range(self.scenario.data.clients)]
        self.own = [(flat(task.x), task.y.double().numpy()) for task in tasks]
        self.public = flat(bench.public)
        self.softmax = self.algorithm.outputs == "probabilities"

    def run(self) -> np.ndarray:
        """The last models, (peers, features, outputs)."""
        peers = len(self.own)
        near = [list(of_one.peers) for of_one in self.scenario.topology.neighbours(peers, self.scenario.seed)]
        classes = 10 if self.softmax else 1
        w = np.zeros((peers, self.public.shape[1], classes))
        multipliers = np.zeros((peers, len(self.public), classes))
        for round in range(self.scenario.run.rounds):
            w = np.stack([self.trained(peer, round, w[peer]) for peer in range(peers)])
            f = np.stack([self.f(self.public, of_one) for of_one in w])
            targets = np.stack([f[others].mean(0) for others in near])
            if self.algorithm.name == "fedf_admm":
                multipliers = (1 - self.algorithm.nu) * multipliers + f - targets
                targets = targets - multipliers
            w = np.stack([self.distilled(peer, round, w[peer], targets[peer]) for peer in range(peers)])
        return w

    def f(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        if not self.softmax:
            return x @ w
        exponentials = np.exp(x @ w)
        return exponentials / exponentials.sum(-1, keepdims=True)

    def gradient(self, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
        wanted = np.eye(10)[y.astype(int)] if self.softmax else y[:, None]
        return x.T @ (self.f(x, w) - wanted) / len(x)  # of the cross-entropy, or of half the squared error

    def trained(self, peer: int, round: int, w: np.ndarray) -> np.ndarray:
        (x, y), local = self.own[peer], self.local
        for rows in self.batches(0, peer, round, len(x), local.batch_size):
            g = self.gradient(x[rows], y[rows], w)
            for sam in local.gradients:
                g = self.gradient(x[rows], y[rows], w + sam.radius * g / np.linalg.norm(g))
            g = g + local.weight_decay * w
            w = w - local.lr * (g / (np.abs(g) + 1e-8) if local.optimizer.name == "adam" else g)  # its first step
        return w

    def distilled(self, peer: int, round: int, w: np.ndarray, target: np.ndarray) -> np.ndarray:
        size = self.algorithm.batch_size or self.local.batch_size
        for rows in self.batches(1, peer, round, len(target), size):
            x = self.public[rows]
            f = self.f(x, w)
            slope = f - target[rows]  # of half the squared error, by outputs; then by logits
            if self.softmax:
                slope = f * (slope - (slope * f).sum(-1, keepdims=True))
            w = w - self.algorithm.rho * x.T @ slope
        return w

    def batches(self, stream: int, peer: int, round: int, samples: int, size: int | None) -> list[np.ndarray]:
        order = generator(self.scenario.seed, f"train {stream}", peer, round)
        order.integers(2**63)  # the seed of dropout
        size = size or samples
        shuffled = np.arange(samples) if size >= samples else order.permutation(samples)
        return [shuffled[first : first + size] for first in range(0, samples, size)]


def flat(x: torch.Tensor) -> np.ndarray:
    return x.flatten(1).double().numpy()


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


REGRESSION: Raw = {"name": "linear_regression", "clients": 4, "samples": 40, "features": 3}
DIGITS: Raw = {"name": "digits", "clients": 4, "partition": {"name": "classes", "per_client": 2}, "train_samples": 100}


@pytest.mark.parametrize("topology", ["ring", "star"])
@pytest.mark.parametrize("algorithm", [{"name": "cmfd", "rho": 0.02}, {"name": "fedf_admm", "rho": 0.01, "nu": 0.1}])
def test_distillation_of_linear_regressions_is_its_formulas(simulate: Simulate, algorithm: Raw, topology: str) -> None:
    raw = distillation(REGRESSION, algorithm={**algorithm, "outputs": "logits"}, topology=topology)
    agrees(simulate(raw), Twin(raw).run())


@pytest.mark.parametrize("algorithm", [{"name": "cmfd", "rho": 0.02}, {"name": "fedf_admm", "rho": 0.01, "nu": 0.1}])
@pytest.mark.parametrize("share", ["outputs", "parameters"])
def test_distillation_of_softmax_regressions_is_its_formulas(simulate: Simulate, algorithm: Raw, share: str) -> None:
    raw = distillation(DIGITS, algorithm={**algorithm, "share": share})
    agrees(simulate(raw), Twin(raw).run())


@pytest.mark.parametrize("algorithm", [{"name": "cmfd", "rho": 0.02}, {"name": "fedf_admm", "rho": 0.01}])
@pytest.mark.parametrize(
    "local",
    [
        {},
        {"optimizer": {"name": "sgd", "momentum": 0.9}},
        {"weight_decay": 0.5},
        {"gradients": [{"name": "sam", "radius": 0.2}]},
        {"optimizer": "adam"},
        {"drop_last": True},
    ],
    ids=str,
)
def test_distillation_has_batches_of_its_own_and_nothing_of_how_peers_train(
    simulate: Simulate, algorithm: Raw, local: Raw
) -> None:
    """Peers take one step on all of their samples, with which momentum does nothing."""
    algorithm = {**algorithm, "outputs": "logits", "batch_size": 2}
    raw = distillation(REGRESSION, algorithm=algorithm, local={"lr": 0.05, "batch_size": None, **local})
    agrees(simulate(raw), Twin(raw).run())


def agrees(result: raysim.Result, w: np.ndarray) -> None:
    """The final models of peers, who must differ, (peers, features, outputs)."""
    found = result.vectors()["w"].reshape(len(w), -1)[:, : w[0].size]
    assert found.reshape(len(w), w.shape[2], w.shape[1]).swapaxes(1, 2) == pytest.approx(w, rel=1e-4, abs=1e-6)
    assert np.ptp(w, axis=0).max() > 0.01
