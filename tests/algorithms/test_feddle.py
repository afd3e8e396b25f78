"""Feddle: anchors, coefficients searched on the server's samples, and what the tables show of it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import Raw, Simulate, digits, quadratic, server_task
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy, linear
from toys import Median

import raysim
from raysim import ScenarioError, parse_scenario
from raysim.algorithms import Arrival, Feddle, Population, Record
from raysim.local.samples import Samples
from raysim.local.server_task import ServerTask
from raysim.models import MLP
from raysim.models.build import initialise
from raysim.models.layout import Layout
from raysim.terms import ServerStep

SEARCH: Raw = {"server_optimizer": "sgd", "server_lr": 0.01, "server_epochs": 1, "server_batch_size": None}
STILL: Raw = {**SEARCH, "server_epochs": 0}
BARE: Raw = {"normalize": False, "score": "age", "fallback": "none", "regularization": 0.0}
SERVER: Raw = {"name": "in_domain", "samples": 100}
OTHER: Raw = {"name": "out_of_domain", "data": "digits", "samples": 200}
PARAMETERS = 64 * 16 + 16 + 16 * 10 + 10  # of the model of `digits`
FORWARD = 2 * (64 * 16 + 16 * 10)  # its FLOPs, a sample


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
    """A server's state after a step, which found this."""

    def __init__(self, before: Record, given: ServerStep) -> None:
        super().__init__({**before, **given.state})
        self.search, self.similarity = given.search, given.similarity


def step(
    feddle: Feddle, state: Record, task: ServerTask, deltas: Any, arrivals: list[Arrival], buffers: Tensor | None = None
) -> After:
    """The state after it, and what is for the tables."""
    none = task.received.buffers
    updates = {"delta": torch.as_tensor(deltas), "buffers": none if buffers is None else buffers}
    task.received = task.received.replace(w=state["w"])
    return After(state, feddle.step(state, arrivals, updates, task))


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
    """Of 0.10, 0.475 and 0.37 the first, then the last."""
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


def test_anchors_without_scores_go_by_age() -> None:
    """Whatever their coefficients: first the one of the first step, then the earlier one of the second step."""
    feddle, after = three_anchors(score="age", **SEARCH)
    two = step(feddle, after, parabola(version=3), [[1.0, 1.0], [2.0, 1.0]], arriving(4, 5))
    assert column(two, "client") == [4, 5, 2]
    three = step(feddle, two, parabola(version=4), [[3.0, 1.0]], arriving(6))
    assert column(three, "client") == [4, 5, 6]


def test_the_median_of_two_norms_is_their_mean() -> None:
    feddle = Feddle(atlas=2, **STILL)
    after = step(feddle, before(feddle, parabola()), parabola(), [[3.0, 0.0], [0.0, 4.0]], arriving(0, 1))
    assert column(after, "fallback") == pytest.approx([1.5 / 3.5, 2 / 3.5])


def test_an_anchor_of_norm_zero_is_left_out() -> None:
    feddle = Feddle(atlas=2, **SEARCH)
    after = step(feddle, before(feddle, parabola()), parabola(), [[0.0, 0.0], [0.0, 4.0]], arriving(0, 1))
    assert column(after, "coefficient")[0] == column(after, "fallback")[0] == 0.0
    assert after["w"][0] == 0.0
    assert 2.0 < after["w"][1] < 4.0


def test_norms_of_zero_do_not_count_in_the_median() -> None:
    """Which is 4, of the one anchor that is left, though most are zero: FedBuff's step is a third of it."""
    feddle = Feddle(atlas=3, **STILL)
    deltas = [[0.0, 0.0], [0.0, 0.0], [0.0, 4.0]]
    after = step(feddle, before(feddle, parabola()), parabola(), deltas, arriving(0, 1, 2))
    assert column(after, "fallback") == pytest.approx([0.0, 0.0, 1 / 3])
    assert after["w"].tolist() == pytest.approx([0.0, 4 / 3])


@pytest.mark.parametrize(("optimum", "similarity"), [((4.0, 4.0), 1.0), ((-4.0, -4.0), -1.0), ((4.0, -4.0), 0.0)])
def test_similarity_is_the_cosine_of_two_gradients(optimum: tuple[float, float], similarity: float) -> None:
    """Of the coefficients of two anchors, (1, 0) and (0, 1), at 0: of the server's loss and of a reference."""
    feddle, task = Feddle(atlas=2, fallback="none", **SEARCH), parabola()
    without = step(feddle, before(feddle, task), task, torch.eye(2), arriving(0, 1))
    assert without.similarity is None
    of = parabola(optimum)
    task.reference = Samples.of(of.x, of.y)
    shown = step(feddle, before(feddle, task), task, torch.eye(2), arriving(0, 1))
    assert shown.similarity.item() == pytest.approx(similarity, abs=1e-6)
    assert shown["w"].equal(without["w"])


def test_a_search_sees_the_arrivals_statistics_of_batch_normalisation() -> None:
    """Means (1, 2), variances (4, 1), in eval mode: of the inputs (3, 2) and (1, 3), that makes (1, 0) and (0, 1)."""
    module = nn.Sequential(nn.BatchNorm1d(2, affine=False, eps=0.0), nn.Linear(2, 1, bias=False))
    nn.init.zeros_(module[1].weight)
    task = server_task(module, "squared_error", torch.tensor([[3.0, 2.0], [1.0, 3.0]]), torch.tensor([6.0, 8.0]))
    feddle, statistics = Feddle(atlas=2, fallback="none", **SEARCH), torch.tensor([1.0, 2.0, 4.0, 1.0])
    after = step(feddle, before(feddle, task), task, torch.eye(2), arriving(0, 1), statistics)
    assert column(after, "coefficient") == pytest.approx([0.03, 0.04])


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


@pytest.mark.parametrize(("optimizer", "lr"), [("sgd", 0.5), ("adam", 0.05)])
@pytest.mark.parametrize("shards", [1, 3])
def test_without_its_parts_it_is_descent_on_the_coefficients(optimizer: str, lr: float, shards: int) -> None:
    """Two searches, of two anchors and then of four."""
    reference = Reference()
    feddle = Feddle(**BARE, atlas=4, server_optimizer=optimizer, server_lr=lr, server_epochs=5, server_batch_size=None)
    task = reference.task(1, shards=shards)
    state = step(feddle, before(feddle, task), task, reference.deltas[:2], arriving(0, 1))
    state = step(feddle, state, reference.task(2, shards=shards), reference.deltas[2:], arriving(2, 3))

    w = reference.start
    for anchors in (reference.deltas[:2], reference.deltas):
        c = minimise(torch.zeros(len(anchors)), lambda c, w=w, a=anchors: reference.loss(w + c @ a), optimizer, lr, 5)
        w = w + c @ anchors
    assert column(state, "coefficient") == pytest.approx(c.tolist(), rel=1e-4)
    torch.testing.assert_close(state["w"], w, rtol=0, atol=2e-6)
    assert (c != 0).all()


def test_out_of_domain_a_surrogate_head_is_fitted_and_then_searched_with() -> None:
    """The head that clients use is moved like the rest, though it gives nothing to the surrogate loss."""
    reference = Reference()
    options: Raw = {"server_optimizer": "sgd", "server_lr": 0.5, "server_epochs": 5, "server_batch_size": None}
    feddle = Feddle(atlas=4, **options)
    task = reference.task(1, in_domain=False, shards=2)
    state = step(feddle, before(feddle, task), task, reference.deltas, arriving(*range(4)))

    norms = reference.deltas.norm(dim=1)
    anchors = reference.deltas * (norms.quantile(0.5) / norms)[:, None]
    fallback = norms / norms.quantile(0.5) / 4
    features = reference.features(reference.start + fallback @ anchors)

    def surrogate(features: Tensor, head: Tensor) -> Tensor:
        return cross_entropy(linear(features, head[:, :-1], head[:, -1]), reference.y)

    head = minimise(torch.zeros(10, 17), lambda head: surrogate(features, head), "sgd", 0.5, 5)

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
    feddle = Feddle(atlas=4, **SEARCH)
    task = reference.task(1, in_domain=False)
    first = step(feddle, before(feddle, task), task, reference.deltas[:2], arriving(0, 1))
    task = reference.task(2, in_domain=False)
    second = step(feddle, first, task, reference.deltas[2:], arriving(2, 3))
    fresh = step(feddle, {**first, "head": torch.zeros(10, 17)}, task, reference.deltas[2:], arriving(2, 3))
    moved = (second["head"] - first["head"] - fresh["head"]).abs().max()
    assert 0 < moved < 0.1 * first["head"].abs().max()  # steps as long as those from zero, but from where it was


# --- in a run ---------------------------------------------------------------------------------------------------------


def feddle(options: Raw | None = None, server_data: Any = SERVER, **more: Any) -> Raw:
    return digits(algorithm={"name": "feddle", **(options or {})}, server_data=server_data, **more)


def test_some_coefficients_are_negative_and_the_model_learns(simulate: Simulate) -> None:
    result = simulate(feddle({"server_lr": 0.05}))
    found = result.pandas("coefficients")
    assert (found.coefficient < 0).any()
    assert result.pandas("evaluations").query("metric == 'accuracy'").value.iloc[-1] > 0.6


def same_updates(one: raysim.Result, other: raysim.Result) -> None:
    """But for weights, which a search has none of, the time of a step, which is a round's end, and rounding."""
    but = ["run", "weight", "virtual_time", "seconds"]
    mine, theirs = (result.pandas("updates").drop(columns=but) for result in (one, other))
    pd.testing.assert_frame_equal(mine, theirs, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(one.vectors()["w"], other.vectors()["w"], atol=1e-4)


@pytest.mark.parametrize(
    ("options", "buffer", "world"),
    [
        ({}, 6, {"dispatch": {"per_round": 6}}),
        ({"search_after": 4}, 4, {"dispatch": {"per_round": 6}, "delay": {"name": "half_normal", "sigma": 3}}),
        ({"search_after": 4, "atlas": 4}, 4, {"dispatch": {"concurrency": 9}, "delay": {"name": "uniform", "high": 4}}),
    ],
)
def test_without_an_epoch_it_is_fedbuff(simulate: Simulate, options: Raw, buffer: int, world: Raw) -> None:
    searched = simulate(feddle({"server_epochs": 0, **options}, world=world))
    buffered = simulate(digits(algorithm={"name": "fedbuff", "buffer": buffer}, server_data=SERVER, world=world))
    same_updates(searched, buffered)


def test_the_table_of_coefficients_has_a_row_an_anchor(simulate: Simulate) -> None:
    """The atlas has twice as many places as clients are picked in a round."""
    result = simulate(feddle())
    found, used = result.pandas("coefficients"), result.pandas("updates").query("status == 'used'")
    arrived = 0
    for number, anchors in found.groupby("step"):
        now = used[used.step == number]
        arrived += len(now)
        assert len(anchors) == min(arrived, 12)
        assert anchors.anchor.tolist() == list(range(len(anchors)))
        assert set(anchors["round"]) == set(now["round"])
        fresh = anchors[anchors.arrived == number]
        assert sorted(fresh.client) == sorted(now.client)
        assert (anchors.arrived <= number).all()
        assert (anchors.fallback[anchors.arrived < number] == 0).all()
        assert (fresh.fallback > 0).all()
    assert found.step.nunique() == result.info["totals"]["steps"]
    assert arrived > 12
    assert (found.norm > 0).all()


def test_similarity_is_told_where_there_is_a_reference(simulate: Simulate) -> None:
    small: Raw = {"server_epochs": 1, "server_lr": 0.01}
    plain, compared = (
        simulate(feddle(small, {**OTHER, "reference": reference}, run__rounds=4)) for reference in (0, 50)
    )
    assert plain.pandas("steps").similarity.isna().all()
    assert compared.pandas("steps").similarity.between(-1, 1).all()
    assert compared.vectors()["w"].tolist() == plain.vectors()["w"].tolist()  # it changes nothing


def costs(result: raysim.Result) -> list[tuple[float, float]]:
    steps = result.pandas("steps")
    return list(zip(steps.server_flops, steps.cache_bytes, strict=True))


def test_what_the_server_computes_and_keeps(simulate: Simulate) -> None:
    """Of a vector summed, an addition and a product an element; a gradient is worth three passes."""
    rounds: Raw = {"world": {"dispatch": {"per_round": 3}}, "run__rounds": 3}
    model, summed = 4 * PARAMETERS, 2 * 3 * PARAMETERS
    for name, kept in (("fedavg", 1), ({"name": "fedbuff", "buffer": 3}, 1 + 3), ({"name": "ca2fl", "buffer": 3}, 35)):
        assert costs(simulate(digits(algorithm=name, **rounds))) == [(summed, kept * model)] * 3, name
    searched = simulate(feddle({"server_epochs": 2, "server_batch_size": 30}, **rounds))
    expected = []
    for anchors in (3, 6, 6):
        passes = 2 * 100 * 3 * FORWARD
        vectors = 4 * anchors * PARAMETERS * 2 * 4  # added to the model and projected on, in each of four batches
        numbers = 6 * (4 + 4 + 8 + 8)  # the places' scores, discounts, clients and steps
        expected.append((passes + summed + vectors, model * (1 + anchors) + numbers))
    assert costs(searched) == expected


def test_statistics_of_batch_normalisation_stay_finite_and_positive(simulate: Simulate) -> None:
    """They are averaged, whatever the coefficients are."""
    small: Raw = {"model": {"name": "resnet", "depth": 14, "personal": []}, "data__clients": 8, "local__steps": 2}
    result = simulate(feddle({"server_lr": 0.5, "server_epochs": 2}, **small, run__rounds=3))
    assert (result.pandas("coefficients").coefficient < 0).any()
    variances = [value for name, value in result.state_dict().items() if name.endswith("running_var")]
    assert variances
    assert all(((value > 0) & value.isfinite()).all() for value in variances)
    assert not all((value == 1).all() for value in variances)


def test_updates_that_are_not_finite_end_no_run(simulate: Simulate) -> None:
    """No more than FedBuff's."""
    diverging: Raw = {"local__lr": 1e20, "run__rounds": 4, "world": {"dispatch": {"per_round": 3}}}
    searched = simulate(feddle(**diverging))
    buffered = simulate(digits(algorithm={"name": "fedbuff", "buffer": 3}, **diverging))
    assert not searched.pandas("coefficients").norm.map(np.isfinite).all()
    for result in (searched, buffered):
        assert (result.info["status"], result.info["totals"]["steps"]) == ("finished", 4)
        assert not np.isfinite(result.vectors()["w"]).all()


def test_out_of_domain_the_model_needs_a_body_to_steer(tmp_path: Any) -> None:
    """Coefficients change nothing that the surrogate head sees where nothing before the model's head trains."""
    raw = feddle(server_data=OTHER, model={"name": "mlp", "hidden": []})
    expected = r"model: must have trainable parameters before its personal part, .*, got none; take another model"
    with pytest.raises(raysim.RunFailed, match=expected):
        raysim.run(parse_scenario(raw), out=tmp_path, inline=True)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (feddle(server_data="none"), "server_data: must not be none, for the server of feddle works on samples"),
        (
            feddle({"search_after": 4}, world={"dispatch": {"concurrency": 9}}),
            "algorithm.atlas: must be given if no fixed number of clients is picked in a round (null is twice that",
        ),
        (
            feddle({"search_after": 10, "atlas": 3}),
            "algorithm.atlas: must be at least search_after, 10, or some updates never become anchors, got 3; raise",
        ),
        (feddle({"atlas": 0}), "algorithm.atlas: "),
        (feddle({"regularization": -0.1}), "algorithm.regularization: "),
        (
            feddle(resources={"aggregators": 3, "shards": 2}),
            "resources.aggregators: must be at most resources.shards, 2, for aggregators take whole shards, got 3",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(raw: Raw, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw)
    assert expected in str(caught.value)


# --- what a step gives ------------------------------------------------------------------------------------------------


class Steady(Median):
    """Keeps what it does not give, and counts its steps."""

    name: str = "steady"

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "kept": model.w.new_tensor([3.0]), "steps": model.w.new_zeros(())}

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        assert state["kept"].tolist() == [3.0]
        return {"w": state["w"] * 0 + state["steps"] + state["kept"], "steps": state["steps"] + 1}


class Strange(Median):
    """Gives an entry that it did not begin with."""

    name: str = "strange"

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {**super().step(state, arrivals, updates, task), "new": state["w"]}


def test_a_step_keeps_what_it_leaves_out(simulate: Simulate) -> None:
    raw = quadratic([1.0, 2.0], "test_feddle:Steady", {"dispatch": {"per_round": 2}}, 4)
    assert simulate(raw).vectors()["w"].tolist() == [6.0]


def test_a_step_must_give_entries_that_there_were(tmp_path: Any) -> None:
    raw = quadratic([1.0, 2.0], "test_feddle:Strange", {"dispatch": {"per_round": 2}}, 1)
    expected = r"must return only entries that `init` returned, \['buffers', 'w'\], got also \['new'\]"
    with pytest.raises(raysim.RunFailed, match=expected):
        raysim.run(parse_scenario(raw), out=tmp_path, inline=True)
