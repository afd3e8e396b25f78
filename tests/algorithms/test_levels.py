"""Clients with narrower models than the server's, by hand, and where they are FedAvg or FedBuff."""

import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import scripted
from conftest import Raw, Simulate, computed, digits, quadratic
from pytest import approx
from same_bits import same_on_ray

from actors import Gang, Value
from raysim import Scenario, ScenarioError, parse_scenario
from raysim.algorithms import HeteroFL
from raysim.algorithms.fjord import likeness
from raysim.algorithms.heterofl import masked
from raysim.data import federate
from raysim.laws.runs import PicklingPool, carried_out
from raysim.laws.subject import SMALL
from raysim.local.batch_norm import pooled, sums
from raysim.local.net import Net
from raysim.local.outputs import cross_entropy
from raysim.models.language_models import GPT
from raysim.parts.errors import BadInput
from raysim.terms import Arrival
from raysim.workers.server import ServerWorker
from raysim.workers.workshop import Become, Workshop

CPU = torch.device("cpu")
HALF: Raw = {"name": "half", "members": [1], "model": {"width": 0.5}}
WORLD: Raw = {"dispatch": {"per_round": 6}}
LEVELS: Raw = {"levels": [1.0, 0.5, 0.25]}
NET: Raw = {"name": "mlp", "hidden": [16, 8]}


def last(simulate: Simulate, algorithm: Any, world: Raw, rounds: int = 1, **more: Any) -> Any:
    """The last vector of a run of two clients, of which the second has half of the widths."""
    raw = quadratic([[0.0] * 4] * 2, algorithm, world, rounds, clients=[HALF], **more)
    return simulate(raw).vectors()["w"].tolist()


def block(start: float = 0.0, sizes: tuple[int, ...] = (4,)) -> Raw:
    return {"name": "toys_levels:Block", "start": start, "sizes": sizes}


def server(scenario: Scenario) -> ServerWorker:
    """A worker that does steps, in this process."""
    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    return Become(Value(federation)).build(Workshop(scenario, 0.0))


BOTH: Raw = {"dispatch": {"picks": [[0, 1]]}}


@pytest.mark.parametrize(
    ("keys", "more", "world", "expected"),
    [
        ({}, {}, BOTH, [2, 2, 1, 1]),
        ({"weights": "samples"}, {"data__samples": [1, 3]}, BOTH, [2.5, 2.5, 1, 1]),
        ({}, {"model": block(9.0)}, {"dispatch": {"picks": [[1]]}}, [3, 3, 9, 9]),  # who alone holds half
        ({}, {"model": block(9.0)}, {"dispatch": {"picks": [[0]]}}, [1, 1, 1, 1]),
        ({}, {"model": block(0.0, (2, 2))}, BOTH, [2, 1, 1, 1]),  # a matrix has as many rows and columns
    ],
)
def test_each_parameter_is_the_mean_over_those_that_hold_it(
    simulate: Simulate, keys: Raw, more: Raw, world: Raw, expected: list[float]
) -> None:
    """The clients' optima are 1 and 3, which one step reaches."""
    centers = {"data__centers": [[1.0] * 4, [3.0] * 4]}
    found = last(simulate, {"name": "heterofl", **keys}, world, **{"model": block(), **centers, **more})
    assert found == approx(expected, abs=1e-6)


def test_windows_cover_all_parameters_alike(simulate: Simulate) -> None:
    """In four rounds, a whole client adds 1, and one of half of the width 3 on its window."""
    slopes = {"data__curvatures": [0.0] * 2, "data__slopes": [[-1.0] * 4, [-3.0] * 4], "model": block()}
    assert last(simulate, "fedrolex", {"dispatch": {"picks": [[0, 1]] * 4}}, 4, **slopes) == approx([6] * 4)


def test_a_stale_update_adds_its_difference(simulate: Simulate) -> None:
    """From 2 on, client 0 adds 3; then client 1, which started from 2 as well, reports 4 in its half."""
    algorithm = {"name": "heterofl", "buffer": 1, "staleness": "none"}
    slopes = {"data__curvatures": [0.0] * 2, "data__slopes": [[-3.0] * 4, [-2.0] * 4], "model": block(2.0, (2,))}
    world = scripted([[0, 1], []], [[0.0], [1.0]])
    assert last(simulate, algorithm, world, 2, **slopes) == approx([7, 5])


@pytest.mark.parametrize(("logits", "expected"), [([1.0, 2.0, 3.0], 0.407606), ([-1.0, -2.0, 3.0], 2.407606)])
def test_labels_that_a_client_lacks_have_a_logit_of_zero(logits: list[float], expected: float) -> None:
    outputs = torch.tensor([logits], requires_grad=True)
    loss = cross_entropy(masked(outputs, torch.tensor([0, 1])), torch.tensor([1]))
    assert loss.item() == approx(expected, abs=1e-6)
    if expected > 1:
        (gradient,) = torch.autograd.grad(loss, outputs)
        assert gradient[0].tolist() == approx([0.244728, -0.909969, 0], abs=1e-6)


def test_hidden_layers_are_scaled_in_training_only() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        for layer in module:
            layer.weight.copy_(torch.eye(2))  # type: ignore[operator,union-attr]
    HeteroFL().prepare(module, 0.5)
    x = torch.tensor([1.0, 2.0])
    assert module(x).tolist() == [2, 4] and module.eval()(x).tolist() == [1, 2]


def test_ordered_dropout_averages_what_clients_hold(simulate: Simulate) -> None:
    """A client of half of the width ends at 2, and a whole one, which draws both widths, at 4."""
    found = last(
        simulate,
        {"name": "fjord", "distil": False},
        BOTH,
        model=block(),
        data__centers=[[4.0] * 4, [2.0] * 4],
        local__epochs=8,
    )
    assert found == approx([3, 3, 4, 4], abs=1e-6)


def test_a_narrow_network_learns_what_the_widest_predicts() -> None:
    """Logits (0, 1) and, of the widest, (0, 3), on label 1."""
    narrow, widest = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 3.0]])
    assert cross_entropy(widest, torch.tensor([1])).item() == approx(0.048587, abs=1e-6)
    assert likeness(narrow, widest).item() == approx(0.360688, abs=1e-6)


def test_a_distilled_step_is_that_of_both_losses_on_slices(simulate: Simulate) -> None:
    """One step of a client, with two levels, and the same by autograd through sliced weights, for any width it drew."""
    capacity = {"levels": [1.0, 0.5], "by": "share", "share": [1.0, 0.0]}
    raw = digits(algorithm="fjord", capacity=capacity, world={"dispatch": {"per_round": 1}}, model=NET)
    raw |= {"local": {"lr": 0.5, "batch_size": None, "steps": 1}, "run": {"rounds": 1}}
    worker, result = server(parse_scenario(raw)), simulate(raw)
    update = result.pandas("updates").query("status == 'used'").iloc[0]
    x, y = (
        worker.task(int(update.client), 0, worker.start).x.flatten(1),
        worker.task(int(update.client), 0, worker.start).y,
    )
    found = []
    for a, b in ((16, 8), (8, 4)):
        w = worker.start.w.clone().requires_grad_()
        w1, b1, w2, b2, w3, b3 = worker.net.layout.views(w)
        widest = torch.relu(torch.relu(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3
        hidden = torch.relu(torch.relu(x @ w1[:a].T + b1[:a]) @ w2[:b, :a].T + b2[:b])
        loss = cross_entropy(widest, y) + likeness(hidden @ w3[:, :b].T + b3, widest.detach())
        (gradient,) = torch.autograd.grad(loss, w)
        found.append((w - 0.5 * gradient).detach())
    last = torch.tensor(result.vectors()["w"])
    assert any(torch.allclose(last, one, atol=1e-6) for one in found) and not torch.allclose(*found)
    assert update.samples_seen == 2 * update.samples


# --- identities -------------------------------------------------------------------------------------------------------

IID: Raw = {"data__partition": "iid", "data__clients": 10, "model": NET, "run__rounds": 4}


@pytest.mark.parametrize(
    ("one", "other", "world"),
    [
        ({"name": "fedavg", "weights": "uniform"}, {"weights": "uniform"}, WORLD),
        ("fedavg", {"weights": "samples"}, WORLD),
        (
            {"name": "fedbuff", "buffer": 3},
            {"buffer": 3, "weights": "uniform"},
            {**WORLD, "delay": {"name": "half_normal", "sigma": 3}},
        ),
    ],
)
@pytest.mark.parametrize("name", ["heterofl", "fedrolex", "fjord", "depthfl", "inclusivefl"])
def test_one_level_is_fedavg_or_fedbuff(simulate: Simulate, one: Any, other: Raw, world: Raw, name: str) -> None:
    single = {"fjord": {"distil": False}, "depthfl": {"exits": 1, "alpha": 0}, "inclusivefl": {"exits": 1}}
    algorithm = {"name": name, **other, **single.get(name, {})}
    plain, whole = (simulate(digits(algorithm=of, world=world, **IID)) for of in (one, algorithm))
    assert plain.digest == whole.digest
    levels = simulate(digits(algorithm=algorithm, world=world, capacity={"levels": [1.0]}, **IID))
    assert np.array_equal(levels.vectors()["w"], whole.vectors()["w"])
    assert set(levels.pandas("updates").level) == {1.0}


NORMED: Raw = {"name": "module", "module": "toys_levels:Normed"}


SIZES: dict[str, tuple[Raw, Raw]] = {
    "heterofl": ({}, NORMED),
    "depthfl": ({"exits": 2}, NET),
    "fedrolex": ({}, NET),
    "fjord": ({}, NORMED),
    "inclusivefl": ({"exits": 2}, NET),
}
CONCURRENT: Raw = {"dispatch": {"concurrency": 8}, "delay": {"name": "half_normal", "sigma": 3}}


@pytest.mark.parametrize(("buffer", "world"), [(None, WORLD), (3, CONCURRENT)], ids=["rounds", "buffer"])
@pytest.mark.parametrize("name", SIZES)
def test_the_same_bits_when_a_run_goes_on(name: str, buffer: int | None, world: Raw) -> None:
    """With a buffer, updates are of levels and versions of their own."""
    keys, model = SIZES[name]
    algorithm = {"name": name, "buffer": buffer, **keys}
    capacity, shards = {**LEVELS, "redraw": "dispatch"}, {"shards": 2, "chunk": 3}
    raw = digits(algorithm=algorithm, capacity=capacity, world=world, model=model, resources=shards)
    found = carried_out(raw)
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == found.digest
    assert any(row["staleness"] for row in found.updates) == (buffer is not None)
    assert carried_out({**raw, "resources": {**shards, "aggregators": 2}}).digest == found.digest


# --- another way to the same sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["heterofl", "fedrolex"])
@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_named_matrices(name: str, seed: int) -> None:
    """The step with random updates of random levels and versions, and the same with numpy, matrix by matrix."""
    draw = np.random.default_rng(seed)
    hidden = [int(n) for n in draw.integers(3, 9, 2)]
    raw = digits(algorithm=name, capacity=LEVELS, world=WORLD, model={"name": "mlp", "hidden": hidden})
    scenario = parse_scenario(raw)
    worker = server(scenario)
    federation = worker.federation
    sizes = [64, *hidden, 10]
    before = [(draw.normal(size=(o, i)), draw.normal(size=o)) for i, o in pairwise(sizes)]
    sums = [(np.zeros_like(w), np.zeros_like(b)) for w, b in before]
    counts = [(np.zeros_like(w), np.zeros_like(b)) for w, b in before]
    arrivals, total = [], torch.zeros(worker.net.layout.size)
    for client in range(4):
        level, version = float(draw.choice(LEVELS["levels"])), int(draw.integers(5))
        arrivals.append(Arrival(client, client, 0, version, 0.0, 10, level=level))
        labels = np.unique(federation.train.y[federation.train_rows(client)])
        kept = [np.arange(n) for n in sizes]
        for place in (1, 2):
            n, m = sizes[place], math.ceil(sizes[place] * level)
            if m < n:
                kept[place] = (np.arange(m) + (version if name == "fedrolex" else 0)) % n
        pieces = []
        for place in range(3):
            rows, columns = kept[place + 1], kept[place]
            delta, own = draw.normal(size=(len(rows), len(columns))), draw.normal(size=len(rows))
            if place == 2:
                lacks = ~np.isin(rows, labels)
                delta[lacks], own[lacks] = 0, 0
                rows_held = rows[~lacks]
            else:
                rows_held = rows
            sums[place][0][np.ix_(rows, columns)] += delta
            sums[place][1][rows] += own
            counts[place][0][np.ix_(rows_held, columns)] += 1
            counts[place][1][rows_held] += 1
            pieces += [delta.ravel(), own]
        update = {"delta": torch.tensor(np.concatenate(pieces)).float()}
        first = worker.algorithm.first_unit(version)
        total += worker.variant(level).widen(update, first)["delta"] / 4
    w = torch.tensor(np.concatenate([part.ravel() for pair in before for part in pair])).float()
    state = {"w": w, "buffers": worker.start.buffers}
    task = worker.server_task(Gang(), 1, state)
    found = worker.algorithm.step(state, arrivals, {"delta": total}, task)
    assert isinstance(found, dict)
    flat = [
        (value + np.divide(one, many, out=np.zeros_like(one), where=many > 0)).ravel()
        for pair, added, number in zip(before, sums, counts, strict=True)
        for value, one, many in zip(pair, added, number, strict=True)
    ]
    np.testing.assert_allclose(found["w"].numpy(), np.concatenate(flat), rtol=1e-4, atol=1e-5)


# --- models that are evaluated and left -------------------------------------------------------------------------------


def test_statistics_count_samples_and_not_batches() -> None:
    """Batches (1, 3) and (5, 7, 9): 5 and 8, in whatever parts they are collected."""
    net = Net(
        torch.nn.Sequential(torch.nn.BatchNorm1d(1, momentum=0.0), torch.nn.Linear(1, 2)), (), "cross_entropy", CPU
    )
    batches = [torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [7.0], [9.0]])]
    start = net.model()
    for parts in ([batches], [batches[:1], batches[1:]]):
        found = [sums(net, start, part) for part in parts]
        assert pooled(start.buffers, net.layout, found).tolist() == [5, 8]
    assert torch.equal(net.model().buffers, start.buffers)


def test_slices_are_evaluated_and_left_with_statistics_of_their_own(simulate: Simulate) -> None:
    """BatchNorm's statistics are those of all training samples; each width has its own, and a saved slice predicts as
    it was evaluated."""
    raw = digits(
        algorithm="fedrolex",
        capacity=LEVELS,
        world=WORLD,
        model=NORMED,
        data={"name": "digits", "clients": 10, "partition": "iid", "local_test": 0.2},
        run={"rounds": 3, "evaluate_every": 3, "evaluate_clients": "all", "keep_best": None},
    )
    result = simulate(raw)
    rows = result.pandas("evaluations").query("metric == 'accuracy'")
    slices = rows[rows.subject == "slice"]
    assert slices.level.tolist() == [0.5, 0.25] and slices.member.tolist() == [1, 2]
    own = rows[rows.subject == "client"]
    of = {row.client: row.level for row in result.pandas("updates").itertuples()}
    assert all(of[member] == level for member, level in zip(own.member, own.level, strict=True) if member in of)
    worker = server(parse_scenario(raw))
    whole = rows[rows.subject == "global"].value.item()
    for level, expected in [(None, whole), *zip(slices.level, slices.value, strict=True)]:
        module = result.module(level=level)
        assert module[0].out_channels == {None: 6, 0.5: 3, 0.25: 2}[level]
        split, where = worker.evaluator.splits["test"]
        x, y = worker.loader(split, where)
        with torch.no_grad():
            assert float((module(x).argmax(1) == y).float().mean()) == approx(expected, abs=1e-6)
        x, _ = worker.loader(*worker.evaluator.splits["train"])
        with torch.no_grad():
            first = module[0](x).transpose(0, 1).flatten(1)
        torch.testing.assert_close(module[1].running_mean, first.mean(1), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(module[1].running_var, first.var(1, unbiased=False), rtol=1e-4, atol=1e-5)
    down = result.pandas("updates").query("status == 'used' and level == 1").down_bytes
    assert set(down) == {4 * (6 * 9 + 3 * 6 + 7 * 10)}  # without statistics
    assert "statistics" in set(result.pandas("tasks").task)
    with pytest.raises(ValueError, match="level: must be one that clients have"):
        result.module(level=0.3)


TEXTS: Raw = {"data": {**SMALL["texts"]["data"]}, "world": {"dispatch": {"per_round": 8}}}
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        ("heterofl", {"model": {"name": "cnn", "channels": [4, 4], "kernel": 3, "padding": "same", "hidden": 8}}),
        ("fjord", {"model": {"name": "resnet", "depth": 14, "width_divisor": 8, "personal": []}}),
        ("fedrolex", {"model": {"name": "module", "module": "toys_levels:Wide"}}),
        ("fjord", {**TEXTS, "model": {"name": "causal_lm", "config": GPT}}),
    ],
    ids=["cnn", "resnet", "own", "gpt"],
)
def test_all_kinds_of_models_are_cut(simulate: Simulate, algorithm: str, changes: Raw) -> None:
    """Half of the widths takes less memory, operations and bytes, and moves."""
    raw = digits(
        **{"algorithm": algorithm, "capacity": {"levels": [1.0, 0.5]}, "world": WORLD, "run": {"rounds": 1}} | changes
    )
    result = simulate(raw)
    whole, half = (result.info["levels"][level] for level in ("1", "0.5"))
    assert all(half[key] < whole[key] for key in ("parameters", "forward_flops", "memory_bytes", "up_bytes"))
    assert set(result.pandas("updates").level) == {1.0, 0.5}
    assert np.isfinite(result.vectors()["w"]).all()


def test_a_model_that_cannot_be_cut_names_the_layer() -> None:
    raw = digits(
        algorithm="heterofl", capacity=LEVELS, world=WORLD, model={"name": "module", "module": "toys_levels:Joined"}
    )
    with pytest.raises(BadInput, match=r"capacity\.levels: head of a narrower model does not compute .* channels are"):
        server(parse_scenario(raw)).cost()


@pytest.mark.parametrize("name", [pytest.param(name, marks=[SLOW] * (name != "heterofl")) for name in SIZES])
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_the_same_bits_on_ray(name: str, tmp_path: Path) -> None:
    keys, model = SIZES[name]
    more: Raw = {"capacity": {**LEVELS, "redraw": "dispatch"}, "world": WORLD, "run": {"rounds": 4}}
    same_on_ray(digits(algorithm={"name": name, **keys}, model=model, **more), tmp_path)


# --- who has which level, and what it costs ---------------------------------------------------------------------------

COMPUTE = computed(1e7, 1e4, 1e5, sigma=1.0)


def test_the_fastest_clients_have_the_widest_models_and_all_sizes_are_known_before_training(simulate: Simulate) -> None:
    capacity = {**LEVELS, "by": "speed"}
    raw = digits(algorithm="heterofl", capacity=capacity, model=NET, world={**WORLD, "delay": COMPUTE})
    result, dry = simulate(raw), simulate(raw, "--dry")
    updates = result.pandas("updates").query("status == 'used'")
    assert dry.pandas("updates").arrived_at.tolist() == result.pandas("updates").arrived_at.tolist()
    assert dry.info["levels"] == result.info["levels"]
    found = {float(level): facts for level, facts in result.info["levels"].items()}
    assert [facts["clients"] for facts in found.values()] == [10, 10, 10]
    widths = {1.0: (16, 8), 0.5: (8, 4), 0.25: (4, 2)}
    parameters = {level: 65 * a + (a + 1) * b + 10 * (b + 1) for level, (a, b) in widths.items()}
    for row in updates.itertuples():
        assert row.up_bytes == row.down_bytes == 4 * parameters[row.level] == found[row.level]["up_bytes"]
    assert updates.groupby("level").up_bytes.nunique().eq(1).all()
    whole = simulate({**raw, "capacity": {"levels": [1.0]}}).pandas("updates").query("status == 'used'")
    lasts = (whole.arrived_at - whole.dispatched_at).groupby(whole.client).mean()
    of = updates.groupby("client")["level"].first()
    both = sorted((lasts[client], -level) for client, level in of.items() if client in lasts)
    assert [level for _, level in both] == sorted(level for _, level in both)


def test_levels_fit_the_memory_of_devices(simulate: Simulate, tmp_path: Any) -> None:
    raw = digits(
        algorithm="heterofl", capacity=LEVELS, model=NET, data__clients=6, world={"dispatch": {"per_round": 3}}
    )
    needs = [facts["memory_bytes"] for facts in simulate(raw, "--dry").info["levels"].values()]
    rooms = [needs[0], needs[0] - 1, needs[1], needs[1] - 1, needs[2], 10 * needs[0]]
    trace = tmp_path / "devices.csv"
    trace.write_text("flops_per_s,memory_bytes\n" + "".join(f"1e9,{room}\n" for room in rooms))
    raw["world"]["delay"] = {"name": "trace", "path": str(trace), "assign": "in_order"}
    raw["capacity"] = {**LEVELS, "by": "memory"}
    facts = simulate(raw, "--dry").info["levels"]
    assert [one["clients"] for one in facts.values()] == [2, 2, 2]


STEP = """
import sys, torch
from raysim.models import Torchvision
from raysim.models.build import initialise

def step(module, batch):
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    torch.nn.functional.cross_entropy(module(torch.randn(batch, 3, 32, 32)), torch.zeros(batch).long()).backward()
    optimizer.step()

def peak():  # not getrusage's ru_maxrss, which a process begins with that of its parent
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

resnet = lambda width: initialise(Torchvision(model="resnet18"), (3, 32, 32), 10, 0, width)
step(resnet(0.05), 2)  # loads what it needs
before = peak()
step(resnet(float(sys.argv[1])), 64)
print(peak() - before)
"""


@pytest.mark.slow
def test_a_quarter_of_the_widths_takes_less_than_a_third_of_the_memory() -> None:
    """For a ResNet-18, as the operating system counts a training step with momentum; it may keep what is freed."""
    took = [
        int(subprocess.run([sys.executable, "-c", STEP, str(level)], capture_output=True, check=True, text=True).stdout)
        for level in (1.0, 0.25)
    ]
    assert 0 < took[1] < took[0] / 3
    assert took[0] > 100_000, took  # KiB: gradients, momentum and what the backward pass keeps


def test_shares_are_kept_exactly(simulate: Simulate) -> None:
    capacity = {"levels": [0.5, 1.0], "by": "share", "share": [0.2, 0.8]}
    facts = simulate(digits(algorithm="heterofl", capacity=capacity, world=WORLD, model=NET), "--dry").info["levels"]
    assert {level: one["clients"] for level, one in facts.items()} == {"1": 24, "0.5": 6}


TRANSFORMS: list[Raw] = [
    {"name": "clip_norm", "max": 1.0},
    {"name": "top_k", "share": 0.1, "memory": "ef14"},
    {"name": "low_rank", "rank": 1},
    {"name": "quantise", "bits": 8},
]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda one: one["name"])
@pytest.mark.parametrize("algorithm", ["heterofl", {"name": "depthfl", "exits": 2, "alpha": 0}], ids=["wide", "deep"])
def test_transforms_act_on_what_a_client_holds(simulate: Simulate, transform: Raw, algorithm: Any) -> None:
    """What travels of half of the model takes less than what travels of the whole, as was known before training."""
    halves = {"levels": [1.0, 0.5], "by": "speed"}
    raw = digits(algorithm=algorithm, capacity=halves, model=NET, world={**WORLD, "delay": COMPUTE}, run={"rounds": 2})
    result = simulate({**raw, "uplink": [transform]})
    found = {float(level): facts["up_bytes"] for level, facts in result.info["levels"].items()}
    assert found[0.5] < found[1.0]
    assert all(
        row.up_bytes == found[row.level] for row in result.pandas("updates").query("status == 'used'").itertuples()
    )


# Of aggregates, the mean alone is known element by element.
ROBUST = [
    *zip(("heterofl", "fjord"), ("median", "trimmed_mean"), strict=True),
    ("fedrolex", {"name": "krum", "byzantine": 1}),
]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"algorithm": "fedavg"}, "capacity"),
        ({"local__optimizer": {"name": "sgd", "momentum": 0.9, "keep": True}}, "local.optimizer.keep"),
        ({"model__personal": ["head"]}, "model.personal"),
        ({"algorithm": "fedrolex", "uplink": [{"name": "top_k", "share": 0.1, "memory": "ef14"}]}, "uplink.0"),
        *(({"algorithm": {"name": name, "aggregate": one}}, "algorithm") for name, one in ROBUST),
        (
            {"release": {"name": "gaussian", "multiplier": 1.0}, "uplink": [{"name": "clip_norm", "max": 1.0}]},
            "capacity",
        ),
        *(({"algorithm": name, "model__personal": ["head"]}, "capacity") for name in ("fedper", "apfl")),
        ({"algorithm": "ditto"}, "capacity"),
        ({"algorithm": "decfedavg", "topology": "ring", "world": {}}, "capacity"),
        ({"capacity": {"levels": [1.0, 1.0]}}, "capacity"),
        ({"capacity": {**LEVELS, "by": "share"}}, "capacity"),
        ({"capacity": {**LEVELS, "by": "memory"}}, "capacity.by"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: Raw, key: str) -> None:
    raw = digits(**{"algorithm": "heterofl", "capacity": LEVELS, "world": WORLD, "model": NET, **changes})
    with pytest.raises(ScenarioError) as error:
        parse_scenario(raw)
    assert [problem.path for problem in error.value.problems] == [key]
