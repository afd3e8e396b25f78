"""Gradients of single samples: by hand, against a loop, and mini-batches that are drawn."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits
from local_tasks import CPU, make_task, mlp
from pytest import approx
from torch import Tensor, nn

import raysim
from raysim import RunFailed, ScenarioError, parse_scenario
from raysim.data.dataset import IGNORED
from raysim.local import Local
from raysim.local import gradients as gradients_file
from raysim.local.gradients import NormClipping, PerSample
from raysim.local.loop import batches
from raysim.local.model import gradient_of_each
from raysim.local.net import Net
from raysim.local.outputs import cross_entropy
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.parts.rng import generator
from raysim.terms import Population


class Plane(nn.Module):
    """Outputs <x, w>."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, -0.5]))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w


def moved(loss: str, x: Any, y: Any, *gradients: Any) -> list[float]:
    """The gradient of a step from w = (1/2, -1/2) with rate 1."""
    net, samples = Net(Plane(), (), loss, CPU), Samples.of(torch.tensor(x), torch.tensor(y))
    task = Task(net, net.model(), samples, Local(lr=1.0, gradients=gradients), Population(1, 2), (0, 0, 0))
    found: list[float] = (task.received.w - task.train(task.received).w)[:2].tolist()
    return found


@pytest.mark.parametrize(("expected", "gradient"), [(None, [0.55, 0.65]), (4, [0.275, 0.325])])
def test_clipped_gradients_are_summed_with_noise(
    expected: int | None, gradient: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs are the losses, so that a sample's gradient is its x."""
    monkeypatch.setattr(torch, "randn", lambda shape, **_: torch.tensor([1.0, -1.0]))
    part = PerSample(clip=1.0, noise=0.5, expected=expected)
    assert moved("quadratic", [[3.0, 4.0], [0.0, 1.0]], [0.0, 0.0], part) == approx(gradient)


def test_samples_are_clipped_and_not_their_mean() -> None:
    x, y = [[1.0, 2.0], [3.0, -1.0]], [1.0, 0.0]
    assert moved("squared_error", x, y, PerSample(clip=2.0)) == approx([0.501470, -1.210655], abs=1e-6)
    for row, gradient in enumerate(([-0.894427, -1.788854], [1.897367, -0.632456])):
        one = slice(row, row + 1)
        assert moved("squared_error", x[one], y[one], PerSample(clip=2.0)) == approx(gradient, abs=1e-6)
    assert moved("squared_error", x[:1], y[:1]) == [-1.5, -3.0] and moved("squared_error", x[1:], y[1:]) == [6.0, -2.0]
    assert moved("squared_error", x, y, NormClipping(max=2.0)) == approx([1.337929, -1.486588], abs=1e-6)


@pytest.mark.parametrize("held", [2**25, 1])
def test_without_a_bound_it_is_the_plain_gradient(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients_file, "HELD", held)  # 1: sample by sample
    task = make_task(mlp(personal=("head",)))
    for keys in ({}, {"part": "shared"}, {"batch_size": 7}, {"precision": "bfloat16"}):
        plain, single = (task.train(task.received, **keys, gradients=one) for one in ((), (PerSample(clip=1e30),)))
        assert single.w == approx(plain.w, abs=2e-3 if keys.get("precision") else 1e-6)
        assert float(single.loss_after) == approx(float(plain.loss_after), abs=2e-2 if keys.get("precision") else 1e-6)


def test_gradients_are_those_of_a_loop_and_a_sample_without_labels_has_none() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(9, 6), nn.LayerNorm(6), nn.Linear(6, 9))
    x = torch.randint(0, 9, (4, 5))
    y = x.clone()
    y[0, :2] = y[2] = IGNORED
    losses, gradients = gradient_of_each(module, list(module.parameters()), cross_entropy, x, y)
    assert len(losses) == 3
    for place, row in enumerate((0, 1, 3)):
        loss = cross_entropy(module(x[row : row + 1]), y[row : row + 1])
        assert float(losses[place]) == approx(float(loss.detach()), abs=1e-6)
        for one, other in zip(gradients, torch.autograd.grad(loss, list(module.parameters())), strict=True):
            torch.testing.assert_close(one[place], other, atol=1e-6, rtol=0)


def test_drawn_batches_hold_each_sample_with_its_probability() -> None:
    local, samples = (
        Local(batches="poisson", batch_size=4, steps=3000),
        Samples.of(torch.zeros(10, 1), torch.arange(10)),
    )
    taken = list(batches(samples, local, generator(0, "order")))
    assert len(taken) == local.total_steps(10) == 3000
    counts = np.bincount(np.concatenate([y for _, y in taken]), minlength=10)
    assert np.abs(counts - 1200).max() < 4 * (3000 * 0.4 * 0.6) ** 0.5
    sizes = np.array([len(y) for _, y in taken])
    assert sizes.var() == approx(10 * 0.4 * 0.6, rel=0.1)
    assert all(len(set(y.tolist())) == len(y) for _, y in taken)
    assert local.total_samples(10) == 12_000


def test_a_batch_without_samples_is_a_step_of_noise_alone() -> None:
    task = make_task(mlp(), samples=3)
    drawn: Any = {"batches": "poisson", "batch_size": 1, "lr": 1.0, "steps": 1}
    empty = next(n for n in range(40) if task.train(task.received, stream=n, **drawn).loss_before is None)
    drawn["stream"] = empty
    for optimizer in ("sgd", "adam"):
        assert task.train(task.received, optimizer=optimizer, **drawn).w.equal(task.received.w)
    noisy = task.train(task.received, gradients=(PerSample(clip=2.0, noise=0.5),), **drawn)
    assert float((noisy.w - task.received.w).std()) == approx(1.0, rel=0.1)
    assert noisy.steps == 1


@pytest.mark.parametrize(
    ("local", "text"),
    [
        ({"gradients": [{"name": "sam"}, {"name": "per_sample", "clip": 1.0}]}, "per_sample first"),
        ({"gradients": [{"name": "per_sample", "clip": 1.0}, {"name": "sam"}]}, "got sam after it"),
        ({"gradients": [{"name": "per_sample", "clip": 1.0}], "augment": ["mixup"]}, "must not have mixup"),
        ({"batches": "poisson", "drop_last": True}, "drop_last must be false"),
    ],
)
def test_what_does_not_go_with_single_samples_is_refused(local: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(digits(**{f"local__{key}": value for key, value in local.items()}))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ({"name": "module", "module": "test_per_sample:normed"}, "model.norm: frozen"),
        ({"name": "module", "module": "test_per_sample:Branching"}, "torch.func cannot follow"),
    ],
)
def test_models_that_mix_samples_are_refused(model: Raw, text: str, tmp_path: Any) -> None:
    raw = digits(model=model, local__gradients=[{"name": "per_sample", "clip": 1.0}])
    with pytest.raises(RunFailed, match=f"local.gradients: .*{text}"):
        raysim.run(raw, out=tmp_path, inline=True)


def test_norms_may_be_frozen(simulate: Simulate) -> None:
    model = {"name": "module", "module": "test_per_sample:normed", "norm": "frozen"}
    raw = digits(model=model, algorithm="fedasync", local__gradients=[{"name": "per_sample", "clip": 1.0}])
    assert simulate(raw).pandas("updates").loss_after.notna().any()


def normed() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 10))


class Branching(nn.Module):
    """Asks for the value of a sample."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x.flatten(1))
        return out if float(x.detach().sum()) > 0 else 2 * out
