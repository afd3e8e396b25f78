"""Optimisers: the formulas of torch.optim, groups of parameters, and a state that goes on."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
import torch
from conftest import Simulate, digits, quadratic
from local_tasks import OURS, make_task, mlp, theirs
from peers_runs import peers

import raysim
from raysim.laws.runs import PicklingPool, carried_out
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.optimizers import OPTIMIZERS, SGD, Optimizer
from raysim.local.settings import ParameterGroup
from raysim.local.steps import Steps


def begun(local: Local, net: Net) -> Callable[[Sequence[torch.Tensor]], None]:
    """Returns what takes the steps of a training of all parameters, given gradients."""
    steps, taken = Steps(local, net, net.part(None), lambda x, y, ready: (x, [])), count()
    steps.begin(local, 100)
    return lambda gradients: steps.move(gradients, None, steps.numbers[next(taken)])


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("ours", OURS, ids=str)
def test_every_step_has_the_bits_of_torch_optim(ours: Optimizer, decay: float) -> None:
    net = mlp()
    step = begun(Local(optimizer=ours, lr=0.05, weight_decay=decay), net)
    twin = torch.nn.Parameter(net.w.clone())
    optimizer = theirs(ours, [twin], lr=0.05, weight_decay=decay)
    for _ in range(12):
        twin.grad = torch.randn(len(net.w))
        step(net.layout.views(twin.grad.clone()))
        optimizer.step()
        assert net.w.equal(twin.detach())


def test_all_of_them_are_compared() -> None:
    assert {type(ours) for ours in OURS} == set(OPTIMIZERS)


@pytest.mark.parametrize("ours", OURS, ids=str)
def test_groups_are_those_of_torch_optim(ours: Optimizer) -> None:
    """No decay on biases, another rate for the head, whose bias is in both groups."""
    net = mlp()
    groups = (
        ParameterGroup(parameters=("*.bias",), weight_decay=0.0),
        ParameterGroup(parameters=("head.*",), lr_factor=10.0),
    )
    step = begun(Local(optimizer=ours, lr=0.01, weight_decay=0.1, groups=groups), net)
    names = [entry.name for entry in net.layout.entries]
    twins = {name: torch.nn.Parameter(view.clone()) for name, view in zip(names, net.part(None).views, strict=True)}
    blocks = [
        {
            "params": [twin],
            "lr": 0.1 if name.startswith("head") else 0.01,
            "weight_decay": 0.0 if name.endswith("bias") and not name.startswith("head") else 0.1,
        }
        for name, twin in twins.items()
    ]
    optimizer = theirs(ours, blocks, lr=0.01)
    for _ in range(5):
        for twin in twins.values():
            twin.grad = torch.randn(twin.shape)
        step([twin.grad for twin in twins.values() if twin.grad is not None])
        optimizer.step()
    for view, twin in zip(net.part(None).views, twins.values(), strict=True):
        assert view.numpy() == pytest.approx(twin.detach().numpy(), abs=1e-5)


def test_a_pattern_must_match(tmp_path: Any) -> None:
    for pattern, why in (("haed.*", r"got 'haed\.\*' and none"), ("norms", "no normalisation layer")):
        raw = digits(local__groups=[{"parameters": [pattern], "lr_factor": 0.1}])
        with pytest.raises(raysim.RaysimError, match=why) as refused:
            raysim.run(raw, out=tmp_path, inline=True)
        assert "local.groups.parameters" in str(refused.value)


def test_a_group_of_rate_zero_stays(simulate: Simulate) -> None:
    raw = digits(algorithm="fedavg", local__groups=[{"parameters": ["head.*"], "lr_factor": 0}])
    start, end = (simulate(raw, "--set", f"local.lr={lr}").state_dict() for lr in (1e-30, 0.1))
    for name in start:
        assert start[name].equal(end[name]) == name.startswith("head.")


# --- a state that goes on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (False, 8 * 0.75**3),  # the buffer starts afresh, and is the gradient
        (True, 1.375),  # buffer 8, w 6; buffer 4 + 6, w 3.5; buffer 5 + 3.5, w 1.375
    ],
)
def test_momentum_of_earlier_rounds_counts_if_it_is_kept(simulate: Simulate, keep: bool, expected: float) -> None:
    """One client at 0 steps once a round along |x|^2 / 2 from 8, with momentum 1/2."""
    local = {"lr": 0.25, "batch_size": None, "optimizer": {"name": "sgd", "momentum": 0.5, "keep": keep}}
    raw = quadratic([[0.0]], "fedavg", {"dispatch": {"per_round": 1}}, 3, start=8.0, local=local)
    assert simulate(raw).vectors()["w"][0] == pytest.approx(expected)


def test_peers_keep_it_too(simulate: Simulate) -> None:
    blocks = ("{name: adam, keep: true}", "adam")
    kept, fresh = (simulate(peers(), "--set", f"local.optimizer={block}").digest for block in blocks)
    assert kept != fresh


def test_the_kept_states_of_two_trainings_survive_a_resumption() -> None:
    raw = digits(algorithm="ditto", local__optimizer={"name": "adam", "keep": True})
    assert carried_out(raw, PicklingPool(), stop_after=4).digest == carried_out(raw).digest


def test_a_server_trains_with_any_of_them(simulate: Simulate) -> None:
    server = {"name": "in_domain", "samples": 40}
    raws = (
        digits(algorithm={"name": "fed_ft", "server_optimizer": {"name": "sgd", "momentum": m}}, server_data=server)
        for m in (0.0, 0.9)
    )
    with_none, with_some = (simulate(raw).digest for raw in raws)
    assert with_none != with_some


def test_a_call_may_take_another() -> None:
    task = make_task(mlp())
    with pytest.raises(TypeError, match="unknown keyword 'momentum'"):
        task.train(task.received, momentum=0.9)
    plain, heavy = (task.train(task.received, epochs=2, optimizer=one).w for one in ("sgd", SGD(momentum=0.9)))
    assert not plain.equal(heavy)


def test_a_rate_may_change_within_a_training(simulate: Simulate) -> None:
    """Steps of 1/2 and 1/4 from 8: 4, then 3. SCAFFOLD wants one rate."""
    lr = {"name": "exponential", "start": 0.5, "factor": 0.5, "over": "steps"}
    local = {"lr": lr, "batch_size": None, "steps": 2}
    raw = quadratic([[0.0]], "fedavg", {"dispatch": {"per_round": 1}}, 1, start=8.0, local=local)
    assert simulate(raw).vectors()["w"][0] == 3.0
    with pytest.raises(raysim.ScenarioError, match=r"local\.lr\.over: must be rounds, versions or time for scaffold"):
        raysim.parse_scenario({**raw, "algorithm": "scaffold"})


def test_a_momentum_may_change_over_rounds(simulate: Simulate) -> None:
    """1/2 in the first round, of two steps of 1/2 from 8: 4, then 4 - (4 + 4) / 2 = 0; afterwards nothing moves."""
    momentum = {"name": "step", "start": 0.5, "factor": 0.5, "every": 1}
    local = {"lr": 0.5, "batch_size": None, "steps": 2, "optimizer": {"momentum": momentum}}
    raw = quadratic([[0.0]], "fedavg", {"dispatch": {"per_round": 1}}, 2, start=8.0, local=local)
    assert simulate(raw).vectors()["w"][0] == pytest.approx(0.0)
