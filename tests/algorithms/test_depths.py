"""Clients with the first layers of the server's model, by hand, and where they are FedAvg, FedBuff or FedDyn."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, computed, digits
from pytest import approx
from test_levels import server

from actors import Gang
from raysim import ScenarioError, parse_scenario
from raysim.algorithms.depthfl import disagreement, rise
from raysim.local.outputs import cross_entropy
from raysim.parts.errors import BadInput
from raysim.terms import Arrival
from raysim.workers.server import ServerWorker

WORLD: Raw = {"dispatch": {"per_round": 6}}
NET: Raw = {"name": "mlp", "hidden": [8, 8, 8]}
CNN: Raw = {"name": "cnn", "channels": [3, 3], "kernel": 3, "padding": "same", "hidden": 6}
IID: Raw = {"data__partition": "iid", "data__clients": 10, "model": CNN, "run__rounds": 4}
CLIP: Raw = {"name": "clip_norm", "max": 1.0}
LEVELS: Raw = {"levels": [1.0, 0.66, 0.33]}
DEPTHS: list[Raw] = [{"name": f"depth-{d}", "members": [3 - d], "model": {"depth": d}} for d in (3, 2, 1)]


def three(**changes: Any) -> Raw:
    """Three clients with one, two and three hidden layers, which all take one step on all samples."""
    raw = digits(data__clients=3, model=NET, clients=DEPTHS, world={"dispatch": {"per_round": 3}}, run={"rounds": 1})
    return {**raw, "local": {"lr": 0.5, "batch_size": None, "steps": 1}, **changes}


def test_losses_are_of_all_exits_and_of_what_they_teach_each_other() -> None:
    """C6-1: exits (0, 1), (0, 2) and (0, 4) on label 1."""
    exits = [torch.tensor([[0.0, one]]) for one in (1.0, 2.0, 4.0)]
    assert sum(cross_entropy(one, torch.tensor([1])).item() for one in exits) == approx(0.458340, abs=1e-6)
    assert disagreement(exits).item() == approx(0.552519, abs=1e-6)
    assert [rise(step / 300) for step in (0, 150, 300, 400)] == approx([0.006738, 0.286505, 1, 1], abs=1e-6)


def networks(worker: ServerWorker, w: torch.Tensor, x: torch.Tensor, depth: int) -> list[torch.Tensor]:
    """The logits of the exits of the first hidden layers, from the server's parameters by name."""
    named = dict(zip((entry.name for entry in worker.net.layout.entries), worker.net.layout.views(w), strict=True))
    exits = ["exits.0", "exits.1", "body.head"]
    found = []
    for place in range(depth):
        x = torch.relu(x @ named[f"body.hidden{place + 1}.weight"].T + named[f"body.hidden{place + 1}.bias"])
        found.append(x @ named[f"{exits[place]}.weight"].T + named[f"{exits[place]}.bias"])
    return found


@pytest.mark.parametrize("name", ["depthfl", "inclusivefl"])
def test_a_round_is_that_of_autograd_by_hand(simulate: Simulate, name: str) -> None:
    """Each parameter moves by the mean over the clients that hold it; with dynamic regularisation, by that and a third
    of it for each of these. Layers 2 and 3 are alike, so layer 2 of the second client follows layer 3 of the third."""
    raw = three(algorithm={"name": name, "exits": 3, **({"weights": "uniform"} if name == "inclusivefl" else {})})
    worker, result = server(parse_scenario(raw)), simulate(raw)
    w = worker.start.w
    deltas, held = [], torch.zeros(3, len(w))
    for client, depth in enumerate((3, 2, 1)):
        task = worker.task(client, 0, worker.start)
        start = w.clone().requires_grad_()
        exits = networks(worker, start, task.x.flatten(1), depth)
        if name == "depthfl":
            loss = sum(cross_entropy(one, task.y) for one in exits)
            loss = loss + (rise(0) * disagreement(exits) if depth > 1 else 0)
        else:
            loss = cross_entropy(exits[-1], task.y)
        (gradient,) = torch.autograd.grad(loss, start)
        deltas.append(-0.5 * gradient)
        for entry in worker.net.layout.entries:
            last = entry.name.split(".")[1]
            place = int(last[-1]) - 1 if "hidden" in last else 2 if last == "head" else int(last)
            of_exit = "hidden" not in last and name == "inclusivefl"
            held[client, entry.offset : entry.offset + entry.size] = place == depth - 1 if of_exit else place < depth
    if name == "inclusivefl":
        of = {entry.name: slice(entry.offset, entry.offset + entry.size) for entry in worker.net.layout.entries}
        for kind in ("weight", "bias"):
            own, above = of[f"body.hidden2.{kind}"], of[f"body.hidden3.{kind}"]
            deltas[1][own] = 0.8 * deltas[1][own] + 0.2 * deltas[0][above]
    count = held.sum(0)
    mean = (torch.stack(deltas) * held).sum(0) / count
    expected = w + (mean * (1 + count / 3) if name == "depthfl" else mean)
    torch.testing.assert_close(torch.tensor(result.vectors()["w"]), expected, rtol=1e-4, atol=1e-6)


def stepped(algorithm: Raw, moved: list[dict[str, float]], **changes: Any) -> dict[str, float]:
    """How far a step moves each tensor, where clients of levels 1/3, 2/3 and 1 move theirs by what is given."""
    worker = server(parse_scenario(three(algorithm={"exits": 3, **algorithm}, **changes)))
    arrivals, deltas, buffers = [], {}, torch.zeros_like(worker.start.buffers)
    weigh = []
    for client, by in enumerate(moved):
        level = by["level"]
        arrivals.append(Arrival(client, client, 0, 0, 0.0, 10, level=level))
        net = worker.variant(level).net
        delta = torch.zeros(len(net.w))
        for entry in net.layout.entries:
            delta[entry.offset : entry.offset + entry.size] = by.get(entry.name.rpartition(".")[0], 0.0)
        weigh.append(worker.variant(level).widen({"delta": delta})["delta"])
    weights = worker.algorithm.weigh(arrivals, worker.population)
    for name, of in (weights if isinstance(weights, dict) else {"": weights}).items():
        key = f"{name}.delta".lstrip(".")
        deltas[key] = sum(weight * one for weight, one in zip(of, weigh, strict=True))
    state = worker.algorithm.init(worker.start, worker.population) | {"buffers": buffers}
    found = worker.algorithm.step(state, arrivals, deltas, worker.server_task(Gang(), 1, state))
    assert isinstance(found, dict)
    change = found["w"] - worker.start.w
    return {entry.name.rpartition(".")[0]: change[entry.offset].item() for entry in worker.net.layout.entries}


def test_layers_are_averaged_over_those_that_hold_them() -> None:
    """C6-2: layer A of three clients 1, 2 and 3; B of two 4 and 6; C of one 5."""
    one, two, three = ({"level": n / 3, "body.hidden1": n} for n in (1, 2, 3))
    moved = [one, {**two, "body.hidden2": 4.0}, {**three, "body.hidden2": 6.0, "body.hidden3": 5.0, "body.head": 7.0}]
    for algorithm in ({"name": "depthfl", "alpha": 0}, {"name": "inclusivefl", "weights": "uniform", "momentum": 0}):
        found = stepped(algorithm, moved)
        layers = [found[f"body.{name}"] for name in ("hidden1", "hidden2", "hidden3", "head")]
        assert layers == approx([2, 5, 5, 7], abs=1e-5)


@pytest.mark.parametrize(("own", "above", "expected"), [(0.2, (0.1, 0.3), 0.2), (0.2, (0.5, 0.7), 0.4)])
def test_the_last_layer_of_small_models_follows_those_above_it(
    own: float, above: tuple[float, float], expected: float
) -> None:
    """C6-3, with b = 0.5: half of its own, and half of the mean above. The large model's first layer stays, and is in
    the mean with it; the larger model's layers move as they do."""
    moved = [{"level": 1 / 3, "body.hidden1": own}, {"level": 1.0, "body.hidden2": above[0], "body.hidden3": above[1]}]
    algorithm = {"name": "inclusivefl", "momentum": 0.5}
    found = stepped(algorithm, moved, model={"name": "mlp", "hidden": [64, 64, 64]})
    layers = [found[f"body.{name}"] for name in ("hidden1", "hidden2", "hidden3")]
    assert layers == approx([expected / 2, *above], abs=1e-6)


def test_statistics_are_averaged_over_those_that_hold_them(simulate: Simulate) -> None:
    """With a learning rate of almost nothing, statistics of the first BatchNorm are the mean of all clients', and those
    of the second the deep client's alone."""
    raw = three(
        algorithm={"name": "depthfl", "exits": 2, "alpha": 0},
        model={"name": "module", "module": "test_depths:Normed"},
        clients=[{"name": "deep", "members": [2], "model": {"depth": 2}}],
        capacity={"levels": [0.5]},
    )
    raw["local"]["lr"] = 1e-9
    worker, result = server(parse_scenario(raw)), simulate(raw)
    means = []
    for client in range(3):
        task, body = worker.task(client, 0, worker.start), worker.net.module.body
        with torch.no_grad(), worker.net.evaluating(worker.start):
            first = body[0](task.x.flatten(1))
            norm = (first - first.mean(0)) / (first.var(0, unbiased=False) + 1e-5).sqrt()
            means.append((first.mean(0), body[3](torch.relu(norm)).mean(0)))
    saved = result.state_dict()
    torch.testing.assert_close(saved["body.1.running_mean"], sum(one for one, _ in means) / 30, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(saved["body.4.running_mean"], means[2][1] / 10, rtol=1e-4, atol=1e-6)


class Normed(torch.nn.Sequential):
    """Two hidden layers with BatchNorm."""

    def __init__(self, classes: int) -> None:
        super().__init__(
            torch.nn.Linear(64, 5),
            torch.nn.BatchNorm1d(5),
            torch.nn.ReLU(),
            torch.nn.Linear(5, 5),
            torch.nn.BatchNorm1d(5),
            torch.nn.ReLU(),
            torch.nn.Linear(5, classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.flatten(1))


# --- identities -------------------------------------------------------------------------------------------------------


def test_several_exits_change_nothing_else_of_inclusivefl(simulate: Simulate) -> None:
    """But for exits that nobody has, it is FedAvg, as `test_levels` has it with one."""
    plain = simulate(digits(algorithm={"name": "fedavg", "weights": "uniform"}, world=WORLD, **IID))
    many = simulate(digits(algorithm={"name": "inclusivefl", "weights": "uniform", "exits": 3}, world=WORLD, **IID))
    w = plain.vectors()["w"]
    assert np.array_equal(many.vectors()["w"][: len(w)], w)
    assert many.pandas("evaluations").value.equals(plain.pandas("evaluations").value)
    assert many.pandas("updates").up_bytes.equals(plain.pandas("updates").up_bytes)


def test_one_exit_with_regularisation_is_feddyn(simulate: Simulate) -> None:
    both = ({"name": "feddyn", "alpha": 0.1}, {"name": "depthfl", "exits": 1})
    one, other = (simulate(digits(algorithm=of, world=WORLD, **IID)).vectors()["w"] for of in both)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


# --- what is evaluated, left and known beforehand ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["depthfl", "inclusivefl"])
def test_shallow_models_are_evaluated_and_left(simulate: Simulate, name: str) -> None:
    """Sizes and delays are known before anything is trained, and a saved model predicts as it was evaluated."""
    algorithm = {"name": name, "exits": 3}
    world = {**WORLD, "delay": computed(1e5, 1e5, 1e5)}
    raw = digits(algorithm=algorithm, model=NET, capacity={**LEVELS, "by": "speed"}, world=world, run={"rounds": 2})
    result, dry = simulate(raw), simulate(raw, "--dry")
    assert dry.pandas("updates").arrived_at.equals(result.pandas("updates").arrived_at)
    assert dry.info["levels"] == result.info["levels"]
    body = {0.33: 65 * 8, 0.66: 65 * 8 + 72, 1.0: 65 * 8 + 2 * 72}
    numbers = {
        level: size + 90 * (place + 1 if name == "depthfl" else 1) for place, (level, size) in enumerate(body.items())
    }
    found = {float(level): facts for level, facts in result.info["levels"].items()}
    assert {level: facts["parameters"] for level, facts in found.items()} == numbers
    assert found[0.33]["forward_flops"] < found[0.66]["forward_flops"] < found[1.0]["forward_flops"]
    assert found[0.33]["memory_bytes"] < found[0.66]["memory_bytes"] < found[1.0]["memory_bytes"]
    updates = result.pandas("updates").query("status == 'used'")
    assert all(row.up_bytes == row.down_bytes == 4 * numbers[row.level] for row in updates.itertuples())
    rows = result.pandas("evaluations").query("metric == 'accuracy'")
    last = rows[rows["round"] == rows["round"].max()]
    worker = server(parse_scenario(raw))
    x, y = worker.loader(*worker.evaluator.splits["test"])
    for level, value in zip(last.level.fillna(1.0), last.value, strict=True):
        with torch.no_grad():
            for module in [result.module(level=level), *([result.module()] if level == 1 else [])]:
                assert float((module(x).argmax(1) == y).float().mean()) == approx(value, abs=1e-6)
    assert len(last) == 3


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"clients": [{"name": "half", "number": 1, "model": {"width": 0.5}}]}, "clients.0.model.width"),
        ({"clients": [{"name": "deep", "number": 1, "model": {"depth": 4}}]}, "clients.0.model.depth"),
        ({"clients": [{"name": "no", "number": 1, "model": {"depth": 1, "width": 0.5}}]}, "clients.0.model"),
        (
            {"algorithm": "heterofl", "clients": [{"name": "d", "number": 1, "model": {"depth": 1}}]},
            "clients.0.model.depth",
        ),
        ({"model__lora": {"rank": 2}, "clients": []}, "model.lora"),
        ({"data": {"name": "linear_regression", "clients": 3}, "clients": []}, "algorithm.name"),
        ({"release": {"name": "gaussian", "multiplier": 1.0}, "uplink": [CLIP]}, "algorithm.exits"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: Raw, key: str) -> None:
    raw = digits(
        **{
            "algorithm": {"name": "inclusivefl" if "release" in changes else "depthfl", "exits": 3},
            "world": WORLD,
            "model": NET,
            **changes,
        }
    )
    with pytest.raises(ScenarioError) as error:
        parse_scenario(raw)
    assert key in [problem.path for problem in error.value.problems]


def test_a_model_with_too_few_layers_is_refused(simulate: Simulate) -> None:
    with pytest.raises(BadInput, match=r"before its last one for each of 4 exits, got 3; lower algorithm\.exits"):
        server(parse_scenario(three(algorithm="depthfl")))
