"""Feddle: anchors and coefficients searched on the server's samples, by hand and against autograd."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from conftest import Raw, server_task
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy, linear

from raysim.algorithms import Arrival, Feddle, Record
from raysim.local.samples import Samples
from raysim.local.server_task import ServerTask
from raysim.models import MLP
from raysim.models.build import initialise
from raysim.models.layout import Layout
from raysim.terms import ServerStep

SEARCH: Raw = {"server_optimizer": "sgd", "server_lr": 0.01, "server_epochs": 1, "server_batch_size": None}
HEAD: Raw = {"head_lr": 0.01, "head_epochs": 1}
STILL: Raw = {**SEARCH, "server_epochs": 0}
PARAMETERS = 64 * 16 + 16 + 16 * 10 + 10  # of the model of `digits`


def parabola(optimum: tuple[float, float] = (4.0, 4.0), version: int = 1, shards: int = 1) -> ServerTask:
    """A server whose loss is |w - optimum|^2 / 2: of four samples, two say where it is, and two nothing."""
    module = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(module.weight)
    x = torch.zeros(4, 2)
    x[0, 0] = x[1, 1] = 2.0
    return server_task(module, "squared_error", x, x @ torch.tensor(optimum), version=version, shards=shards)


def arriving(*clients: int, staleness: Sequence[float] = ()) -> list[Arrival]:
    late = staleness or [0.0] * len(clients)
    return [Arrival(client, client, 0, 0, s, 1) for client, s in zip(clients, late, strict=True)]


class After(dict[str, Tensor]):
    """A server's state after a step, which found and logged this."""

    def __init__(self, before: Record, given: ServerStep, logged: dict[str, float | None]) -> None:
        super().__init__({**before, **given.state})
        self.search, self.similarity = given.search, logged.get("similarity")


def step(
    feddle: Feddle, state: Record, task: ServerTask, deltas: Any, arrivals: list[Arrival], buffers: Tensor | None = None
) -> After:
    """The state after it, and what is for the tables."""
    none = task.received.buffers
    updates = {"delta": torch.as_tensor(deltas), "buffers": none if buffers is None else buffers}
    task.received = task.received.replace(w=state["w"])
    return After(state, feddle.step(state, arrivals, updates, task), {**task.logged.columns, **task.logged.own})


def before(feddle: Feddle, task: ServerTask) -> Record:
    return {"buffers": task.received.buffers, **feddle.init(task.received, task.population)}


def column(state: After, name: str) -> list[float]:
    return getattr(state.search, name).tolist()


def three_anchors(shards: int = 1, **options: Any) -> tuple[Feddle, Record]:
    """(5, 0) of an earlier step, then (3, 0) and, stale by 3, (0, 4). In this order: of clients 3, 1, 2."""
    still = Feddle(atlas=3, fallback="none", **STILL)
    old = step(still, before(still, parabola()), parabola(), [[5.0, 0.0]], arriving(3))
    assert old["w"].tolist() == [0.0, 0.0]
    feddle = Feddle(atlas=3, **options)
    late = arriving(1, 2, staleness=[0.0, 3.0])
    return feddle, step(feddle, old, parabola(version=2, shards=shards), [[3.0, 0.0], [0.0, 4.0]], late)


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "fallback", "w"),
    [
        ({}, [0.0, 0.375, 0.25], [1.5, 1.0]),  # FedBuff's step: (a1 + a2 / 2) / 2
        ({"fallback_lr": 0.1}, [0.0, 0.0375, 0.025], [0.15, 0.1]),
        ({"fallback_buffer": 4}, [0.0, 0.1875, 0.125], [0.75, 0.5]),  # FedBuff with K = 4, of which two arrived
        ({"search_after": 4}, [0.0, 0.1875, 0.125], [0.75, 0.5]),
        ({"search_after": 4, "fallback_buffer": "arrivals"}, [0.0, 0.375, 0.25], [1.5, 1.0]),
        ({"staleness": "none"}, [0.0, 0.375, 0.5], [1.5, 2.0]),
        ({"normalize": False}, [0.0, 0.5, 0.25], [1.5, 1.0]),
        ({"fallback": "spread"}, [5 / 12, 0.25, 1 / 6], [8 / 3, 2 / 3]),
        ({"fallback": "uniform"}, [0.0, 0.5, 0.25], [2.0, 1.0]),
        ({"fallback": "none"}, [0.0, 0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_the_fallback_is_a_step_of_fedbuff_in_normalised_anchors(options: Raw, fallback: Any, w: Any) -> None:
    """Norms 5, 3, 4: normalised anchors (4, 0), (4, 0), (0, 4)."""
    _, after = three_anchors(**STILL, **options)
    assert column(after, "norm") == [5.0, 3.0, 4.0]
    assert column(after, "fallback") == pytest.approx(fallback)
    assert column(after, "coefficient") == pytest.approx(fallback)
    assert after["w"].tolist() == pytest.approx(w)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_search_is_gradient_descent_on_the_coefficients(shards: int) -> None:
    """Towards (4, 4): one step, and a second one that is drawn back to the fallback."""
    _, after = three_anchors(shards, **SEARCH)
    assert column(after, "coefficient") == pytest.approx([0.10, 0.475, 0.37])
    assert after["w"].tolist() == pytest.approx([2.3, 1.48])
    _, again = three_anchors(shards, **{**SEARCH, "server_epochs": 2}, regularization=0.01)
    assert column(again, "coefficient") == pytest.approx([0.16799, 0.54299, 0.470788])
    assert column(again, "fallback") == pytest.approx([0.0, 0.375, 0.25])


def test_the_smallest_coefficients_go_and_never_a_newcomer() -> None:
    """Coefficients are 0.10, 0.475 and 0.37: the first anchor goes, then the last."""
    feddle, after = three_anchors(**SEARCH)
    one = step(feddle, after, parabola(version=3), [[1.0, 1.0]], arriving(4))
    two = step(feddle, after, parabola(version=3), [[1.0, 1.0], [2.0, 1.0]], arriving(4, 5))
    assert column(one, "client") == [4, 1, 2]
    assert column(two, "client") == [4, 1, 5]
    assert column(two, "arrived") == [3, 2, 3]
    assert two["anchor_2"].tolist() == [2.0, 1.0]
    assert two["score"].tolist() == pytest.approx([abs(c) for c in column(two, "coefficient")])


def test_the_oldest_newcomers_go_where_more_arrive_than_there_are_places() -> None:
    feddle, after = three_anchors(**SEARCH)
    deltas = [[float(client), 1.0] for client in range(4, 9)]
    full = step(feddle, after, parabola(version=3), deltas, arriving(*range(4, 9)))
    assert sorted(column(full, "client")) == [6, 7, 8]
    assert {full[f"anchor_{place}"][0].item() for place in range(3)} == {6.0, 7.0, 8.0}


def test_an_anchor_of_norm_zero_is_left_out() -> None:
    feddle = Feddle(atlas=2, **SEARCH)
    after = step(feddle, before(feddle, parabola()), parabola(), [[0.0, 0.0], [0.0, 4.0]], arriving(0, 1))
    assert column(after, "coefficient")[0] == column(after, "fallback")[0] == 0.0
    assert after["w"][0] == 0.0
    assert 2.0 < after["w"][1] < 4.0


@pytest.mark.parametrize(("optimum", "similarity"), [((4.0, 4.0), 1.0), ((-4.0, -4.0), -1.0), ((4.0, -4.0), 0.0)])
def test_similarity_is_the_cosine_of_two_gradients(optimum: tuple[float, float], similarity: float) -> None:
    """The server has one and a reference the other, by coefficients of two anchors, (1, 0) and (0, 1), at 0."""
    feddle, task = Feddle(atlas=2, fallback="none", **SEARCH), parabola()
    without = step(feddle, before(feddle, task), task, torch.eye(2), arriving(0, 1))
    assert without.similarity is None
    of = parabola(optimum)
    task.reference = Samples.of(of.x, of.y)
    shown = step(feddle, before(feddle, task), task, torch.eye(2), arriving(0, 1))
    assert shown.similarity == pytest.approx(similarity, abs=1e-6)
    assert shown["w"].equal(without["w"])


# --- against autograd -------------------------------------------------------------------------------------------------


class Reference:
    """A network of two layers as a function of its flat vector."""

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(0)
        self.module = initialise(MLP(hidden=(16,)), (1, 8, 8), 10, 0)
        self.x = torch.randn(50, 1, 8, 8, generator=draw)
        self.y = torch.randint(0, 10, (50,), generator=draw)
        self.deltas = 0.1 * torch.randn(4, PARAMETERS, generator=draw)

    def task(self, version: int, **options: Any) -> ServerTask:
        self.module = initialise(MLP(hidden=(16,)), (1, 8, 8), 10, 0)
        task = server_task(self.module, "cross_entropy", self.x, self.y, version=version, **options)
        self.layout, self.start = Layout(self.module), task.received.w
        return task

    def parameters(self, w: Tensor) -> dict[str, Tensor]:
        return {entry.name: view for entry, view in zip(self.layout.entries, self.layout.views(w), strict=True)}

    def loss(self, w: Tensor) -> Tensor:
        return cross_entropy(functional_call(self.module, self.parameters(w), self.x), self.y)

    def features(self, w: Tensor) -> Tensor:
        body, found = self.module[:-1], self.parameters(w)
        return functional_call(body, {name: found[name] for name, _ in body.named_parameters()}, self.x)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


def minimise(start: Tensor, loss: Callable[[Tensor], Tensor], optimizer: str, lr: float, steps: int) -> Tensor:
    x = start.clone().requires_grad_()
    taking = OPTIMIZERS[optimizer]([x], lr=lr)
    for _ in range(steps):
        taking.zero_grad()
        loss(x).backward()
        taking.step()
    return x.detach()


def test_out_of_domain_a_surrogate_head_is_fitted_and_then_searched_with() -> None:
    """The head that clients use is moved like the rest, though it gives nothing to the surrogate loss."""
    reference = Reference()
    options: Raw = {"server_optimizer": "sgd", "server_lr": 0.5, "server_epochs": 5, "server_batch_size": None}
    feddle = Feddle(atlas=4, **options, head_lr=0.25, head_epochs=7)
    task = reference.task(1, in_domain=False, shards=2)
    state = step(feddle, before(feddle, task), task, reference.deltas, arriving(*range(4)))

    norms = reference.deltas.norm(dim=1)
    anchors = reference.deltas * (norms.quantile(0.5) / norms)[:, None]
    fallback = norms / norms.quantile(0.5) / 4
    features = reference.features(reference.start + fallback @ anchors)

    def surrogate(features: Tensor, head: Tensor) -> Tensor:
        return cross_entropy(linear(features, head[:, :-1], head[:, -1]), reference.y)

    head = minimise(torch.zeros(10, 17), lambda head: surrogate(features, head), "sgd", 0.25, 7)

    def loss(c: Tensor) -> Tensor:
        pull = (c - fallback).square().sum() * 0.01 / 2
        return surrogate(reference.features(reference.start + c @ anchors), head) + pull

    c = minimise(fallback, loss, "sgd", 0.5, 5)
    torch.testing.assert_close(state["head"], head, rtol=1e-4, atol=1e-5)
    assert column(state, "fallback") == pytest.approx(fallback.tolist(), rel=1e-5)
    assert column(state, "coefficient") == pytest.approx(c.tolist(), rel=1e-3)
    torch.testing.assert_close(state["w"], reference.start + c @ anchors, rtol=0, atol=1e-5)


def test_the_head_is_kept_from_search_to_search() -> None:
    reference = Reference()
    feddle = Feddle(atlas=4, **SEARCH, **HEAD)
    task = reference.task(1, in_domain=False)
    first = step(feddle, before(feddle, task), task, reference.deltas[:2], arriving(0, 1))
    task = reference.task(2, in_domain=False)
    second = step(feddle, first, task, reference.deltas[2:], arriving(2, 3))
    fresh = step(feddle, {**first, "head": torch.zeros(10, 17)}, task, reference.deltas[2:], arriving(2, 3))
    moved = (second["head"] - first["head"] - fresh["head"]).abs().max()
    assert 0 < moved < 0.1 * first["head"].abs().max()  # steps as long as those from zero, but from where it was
