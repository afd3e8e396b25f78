"""Modules keep their own modes: whatever a module is, training is a plain loop of PyTorch, with any history."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from conftest import digits
from drawn_modules import drawn
from local_tasks import CPU
from torch import nn

import raysim
from raysim.algorithms import Population
from raysim.local import Local
from raysim.local.loop import batches
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.models import Module
from raysim.models.build import initialise
from raysim.parts.rng import generator

CLIENTS = 3


def samples(client: int) -> Samples:
    draw = generator(0, "samples", client)
    x = torch.from_numpy(draw.standard_normal((7, 1, 4, 4), dtype=np.float32))
    return Samples.of(x, torch.from_numpy(draw.integers(0, 10, 7)))


def task(net: Net, start: Model, client: int, local: Local) -> Task:
    return Task(net, start, samples(client), local, Population(CLIENTS, 21), (0, client, 0))


def plain(module: Any, client: int, local: Local) -> nn.Module:
    """Trains as one would without raysim."""
    order = generator(0, "train 0", client, 0)
    torch.manual_seed(int(order.integers(2**63)))
    module.train()
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=local.lr)
    for x, y in batches(samples(client), local, order):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), y).backward()
        optimizer.step()
    return module  # type: ignore[no-any-return]


@pytest.mark.parametrize(("seed", "batch_size"), [(seed, (1, 3, None)[seed % 3]) for seed in range(12)])
def test_training_is_a_plain_loop_whatever_the_process_did_before(seed: int, batch_size: int | None) -> None:
    local = Local(lr=0.05, epochs=2, batch_size=batch_size)
    busy = Net(drawn(seed), (), "cross_entropy", CPU, channels_last=False)
    start = busy.model()
    for client in range(CLIENTS):
        found = task(busy, start, client, local).train(start).model
        fresh = Net(drawn(seed), (), "cross_entropy", CPU, channels_last=False)
        if client == 1:
            task(fresh, start, 0, local).predict(start, samples(0).all[0])
        alone = task(fresh, start, client, local).train(start).model
        assert found.w.equal(alone.w)
        assert found.buffers.equal(alone.buffers)
        assert found.buffers.isfinite().all()
        expected = plain(drawn(seed), client, local)
        assert found.w == pytest.approx(busy.layout.flatten(expected), abs=1e-5)
        assert found.buffers == pytest.approx(busy.layout.flatten_buffers(expected), abs=1e-5)
        with torch.no_grad():
            outputs = expected.eval()(samples(client).all[0])
        assert task(busy, found, client, local).predict(found, samples(client).all[0]).numpy() == pytest.approx(
            outputs.numpy(), abs=1e-4
        )


SCENARIO = digits(
    model={"name": "module", "module": "drawn_modules:whole"}, algorithm="fedavg", run__rounds=4, run__evaluate_every=2
)


def test_when_a_process_evaluates_does_not_matter(tmp_path: Any) -> None:
    """A mask of minus infinity is no divergence."""
    often, seldom = (raysim.run({**SCENARIO, "run": run}, out=tmp_path, inline=True) for run in EVALUATED)
    assert often.info["diverged"] is None
    assert all((often.vectors()[key] == seldom.vectors()[key]).all() for key in ("w", "buffers"))


EVALUATED = ({"rounds": 4, "evaluate_every": 1}, {"rounds": 4, "evaluate_every": 4})


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_neither_does_how_many_processes_there_are(tmp_path: Any, seed: int) -> None:
    model = {"name": "module", "module": "drawn_modules:of_seed", "args": {"seed": seed}}
    places: list[Any] = [{"inline": True}, {"local": 1}, {"local": 2}]
    digests = [raysim.run({**SCENARIO, "model": model}, out=tmp_path, **where).digest for where in places]
    assert digests == digests[:1] * 3


class Moded(nn.Module):
    """Has a mode of its own, of some kind."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.merged = how, False
        self.first, self.norm, self.head = nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 10)
        if how == "merges":
            self.weight = nn.Parameter(torch.ones(8, 16) / 9, requires_grad=False)
            self.delta = nn.Parameter(torch.ones(8, 16) / 7)

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        if self.how == "freezes":
            self.first.requires_grad_(False)
        if self.how == "merges" and self.merged == mode:
            self.weight.data += -self.delta.data if mode else self.delta.data
            self.merged = not mode

    def eval(self) -> Any:
        super().eval()
        if self.how == "own eval":
            self.norm.training = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(1)
        whole = self.first(x)
        if self.how == "merges":
            whole = whole + nn.functional.linear(x, self.weight if self.merged else self.weight + self.delta)
        return self.head(torch.relu(self.norm(whole)))


@pytest.mark.parametrize("how", ["freezes", "merges", "own eval"])
def test_modes_of_its_own_are_asked_for_as_a_plain_loop_does(how: str) -> None:
    """A module may freeze layers in `train`, merge them for evaluation, and override `eval` alone."""
    local = Local(lr=0.05, epochs=2, batch_size=None)

    def made() -> Moded:
        torch.manual_seed(0)
        return Moded(how)

    module, x = plain(made(), 0, local), samples(0).all[0]
    net = Net(initialise(Module.of(made()), (1, 4, 4), 10, 0), (), "cross_entropy", CPU, channels_last=False)
    start = net.model()
    task(net, start, 1, local).predict(start, samples(1).all[0])
    found = task(net, start, 0, local).train(start).model
    assert found.w == pytest.approx(net.layout.flatten(module), abs=1e-6)
    module.eval()
    with torch.no_grad():
        outputs = module(x)
    for _ in range(2):
        assert task(net, found, 0, local).predict(found, x).numpy() == pytest.approx(outputs.numpy(), abs=1e-5)


@pytest.mark.parametrize("shape", [(1, 4), (1, 4, 1), (1, 4, 1, 1)])
def test_one_value_a_channel_has_no_variance(shape: tuple[int, ...]) -> None:
    """The running statistics are taken instead, and left as they are."""
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)]
    net = Net(nn.Sequential(kind(4), nn.Flatten()), (), "cross_entropy", CPU)
    net.mode(training=True)
    x, norm = torch.full(shape, 3.0), net.module[0]
    assert net.module(x).flatten().tolist() == pytest.approx([3.0] * 4, abs=1e-3)
    assert (norm.running_mean.tolist(), norm.training) == ([0.0] * 4, True)
    net.module(torch.cat([x, x + 2]))
    assert norm.running_mean.tolist() == pytest.approx([0.4] * 4)


def test_a_batch_of_one_image_has_statistics() -> None:
    net = Net(nn.Sequential(nn.BatchNorm2d(1), nn.Flatten()), (), "cross_entropy", CPU)
    net.mode(training=True)
    net.module(torch.tensor([[[[1.0, 3.0]]]]))
    assert net.module[0].running_mean.tolist() == pytest.approx([0.2])


def test_the_state_dict_loads_strictly(tmp_path: Any) -> None:
    """With frozen parameters, tied weights, masks and counts."""
    for seed in itertools.islice(itertools.count(), 6):
        module = drawn(seed)
        model = {"name": "module", "module": drawn, "args": {"seed": seed}}
        result = raysim.run({**SCENARIO, "model": model}, out=tmp_path, inline=True)
        found = result.state_dict()
        assert list(found) == list(module.state_dict())
        module.load_state_dict(found)
        assert all(tensor.is_contiguous() for tensor in found.values())
        assert found["fourth.weight"].equal(found["third.weight"]) == (module.third.weight is module.fourth.weight)
