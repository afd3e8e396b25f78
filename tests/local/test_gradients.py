"""What is done with gradients: by hand, against torch, where it changes no bit, and in which order."""

from typing import Any

import pytest
import torch
from conftest import Raw, Simulate, digits, quadratic
from local_tasks import CPU, make_task, mlp
from torch import Tensor, nn

from raysim.local import Local
from raysim.local.gradients import (
    GRADIENTS,
    SAM,
    Accumulate,
    Gradient,
    GradientNoise,
    GradientPoint,
    NormClipping,
    PerSample,
    Take,
    ValueClipping,
)
from raysim.local.net import Net
from raysim.local.optimizers import SGD
from raysim.models import MLP
from raysim.models.build import initialise

HUGE = 1e30
EVERY: list[Gradient] = [
    NormClipping(max=0.01),
    ValueClipping(max=1e-4),
    Accumulate(micro_batch=3),
    GradientNoise(std=0.1),
    SAM(radius=0.1),
]
ALONE = PerSample(clip=0.1, noise=1.0)  # goes with none of those above that take gradients


def on_a_line(gradients: list[Any], start: float = 8.0, **local: Any) -> Raw:
    """One client at 0 steps on |x|^2 / 2, whose gradient is x, with rate 1/2."""
    settings = {"lr": 0.5, "batch_size": None, "gradients": gradients, **local}
    return quadratic([[0.0]], "fedavg", {"dispatch": {"per_round": 1}}, 1, start=start, local=settings)


def clip(most: float) -> Raw:
    return {"name": "clip_norm", "max": most}


UPHILL = {"name": "sam", "radius": 1.0}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (on_a_line([clip(2.0)]), 7.0),
        (on_a_line([clip(2.0)], steps=3), 5.0),
        (on_a_line([clip(20.0)]), 4.0),
        (on_a_line([{"name": "clip_value", "max": 3.0}], start=-8.0), -6.5),
        (on_a_line([UPHILL]), 3.5),  # the gradient at 9
        (on_a_line([UPHILL, clip(2.0)]), 7.0),
        (on_a_line([clip(2.0)], weight_decay=0.5), 5.0),  # decay is not clipped: 2 + 4
        (on_a_line([clip(2.0)], optimizer={"name": "sgd", "momentum": 0.5}, steps=2), 5.5),  # 2, then 1 + 2
        (on_a_line([{"name": "accumulate", "micro_batch": 1}]), 4.0),
        (on_a_line([{"name": "per_sample", "clip": 2.0}]), 7.0),
        (on_a_line([{"name": "per_sample", "clip": 6.0, "expected": 3}, {"name": "clip_value", "max": 1.5}]), 7.25),
    ],
)
def test_steps_by_hand(simulate: Simulate, raw: Raw, expected: float) -> None:
    assert simulate(raw).vectors()["w"][0] == pytest.approx(expected, abs=1e-5)


def test_a_correction_is_added_after_them(simulate: Simulate) -> None:
    """FedProx's pull, 1 (x - 8), is 0 in the first step and -1 in the second: 8, 7, then 7 - (2 - 1) / 2."""
    raw = {**on_a_line([clip(2.0)], steps=2), "algorithm": {"name": "fedprox", "mu": 1.0}}
    assert simulate(raw).vectors()["w"][0] == pytest.approx(6.5, abs=1e-5)


def test_clipping_is_that_of_torch() -> None:
    task = make_task(mlp(), local=Local(batch_size=None))
    gradient = task.gradient(task.received)
    parameter = nn.Parameter(torch.zeros_like(gradient))
    for one, torchs in (
        (NormClipping(max=0.5), nn.utils.clip_grad_norm_),
        (ValueClipping(max=0.01), nn.utils.clip_grad_value_),
    ):
        parameter.grad = gradient.clone()
        torchs([parameter], one.max)
        step = task.train(task.received, lr=1.0, gradients=(one,))
        assert task.received.w - step.w == pytest.approx(parameter.grad, abs=1e-6)


SETTINGS: list[Any] = [{}, {"optimizer": SGD(momentum=0.9)}, {"optimizer": "adam"}, {"batch_size": None}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "gradients",
    [
        (NormClipping(max=HUGE),),
        (ValueClipping(max=HUGE),),
        (Accumulate(micro_batch=40),),
    ],
    ids=str,
)
def test_some_change_no_bit(settings: Any, gradients: Any) -> None:
    """Clipping at infinity, and one micro-batch; but for plain SGD, whose fused steps round otherwise."""
    net = Net(nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.Tanh()), (), "cross_entropy", CPU)
    task = make_task(net)
    plain, through = (task.train(task.received, **settings, gradients=one) for one in ((), gradients))
    assert plain.w.equal(through.w)
    assert (plain.loss_before, plain.loss_after) == (through.loss_before, through.loss_after)


def test_accumulated_gradients_are_those_of_the_batch() -> None:
    task = make_task(mlp())
    for batch_size in (16, None):
        whole, pieces = (
            task.train(task.received, batch_size=batch_size, epochs=3, gradients=one)
            for one in ((), (Accumulate(micro_batch=3),))
        )
        assert whole.w == pytest.approx(pieces.w, abs=1e-6)
        assert float(whole.loss_after) == pytest.approx(float(pieces.loss_after), abs=1e-6)


@pytest.mark.parametrize("one", [*EVERY, ALONE], ids=str)
@pytest.mark.parametrize("optimizer", ["sgd", SGD(momentum=0.9), "adam"], ids=str)
@pytest.mark.parametrize("batch_size", [16, None])
def test_none_is_skipped_on_any_path(one: Gradient, optimizer: Any, batch_size: int | None) -> None:
    """The module is a chain, whose plain steps take no gradient; the criterion's gradient is not theirs."""
    calls: list[int] = []

    class Counted(Gradient):
        name: str = "counted"

        def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            calls.append(len(y))
            return before(x, y)

    task = make_task(mlp(personal=("head",)))
    for keys in ({}, {"part": "shared"}, {"tolerance": 0.0}, {"correction": lambda w, g: 0 * g}):
        calls.clear()
        settings = {"optimizer": optimizer, "batch_size": batch_size, "epochs": 2}
        plain = task.train(task.received, **settings, **keys)
        changed = task.train(task.received, **settings, **keys, gradients=(one, Counted()))
        assert len(calls) == changed.steps
        assert changed.w != pytest.approx(plain.w, abs=1e-9) or isinstance(one, Accumulate)
        if isinstance(one, Accumulate):
            assert changed.w == pytest.approx(plain.w, abs=0.02 if optimizer == "adam" else 1e-5)


def test_every_part_is_tried() -> None:
    assert {type(one) for one in (*EVERY, ALONE)} == set(GRADIENTS)


@pytest.mark.parametrize("one", [*EVERY, ALONE], ids=str)
def test_samples_seen_are_counted_as_foretold(one: Gradient, simulate: Simulate) -> None:
    block = one.model_dump()
    raws = (digits(local__gradients=gradients) for gradients in ([], [block]))
    plain, changed = (simulate(raw).pandas("updates").samples_seen.dropna() for raw in raws)
    assert (changed == plain * one.passes).all()


def test_noise_is_drawn_anew_for_each_client_dispatch_and_step() -> None:
    net = mlp()
    start = net.model()
    local = Local(batch_size=None, steps=1, lr=1.0, gradients=(GradientNoise(std=0.5),))

    def noise(key: tuple[int, int, int], **more: Any) -> Tensor:
        task = make_task(net, local=local, key=key)
        plain = task.train(start, gradients=(), **more).w
        return plain - task.train(start, **more).w

    first = noise((0, 1, 2))
    assert first.equal(noise((0, 1, 2)))
    assert float(first.std()) == pytest.approx(0.5, rel=0.1)
    others = [noise((0, 1, 3)), noise((0, 2, 2)), noise((1, 1, 2)), noise((0, 1, 2), stream=1)]
    assert all(float((first - other).norm() / first.norm()) > 1 for other in others)
    two = make_task(net, local=local).train(start, steps=2, lr=1e-2).w - start.w
    assert float((two / 1e-2).std()) == pytest.approx(0.5 * 2**0.5, rel=0.15)


def test_padding_stays_zero() -> None:
    net = Net(initialise(MLP(hidden=(15,)), (1, 8, 8), 10, 0), ("head",), "cross_entropy", CPU)
    task = make_task(net, local=Local(gradients=(GradientNoise(std=1.0),)))
    end = task.train(task.received).w
    used = torch.cat([torch.arange(e.offset, e.offset + e.size) for e in net.layout.entries])
    padding = torch.ones(len(end), dtype=torch.bool)
    padding[used] = False
    assert padding.any()
    assert not end[padding].any()


def test_a_correction_may_see_the_gradient() -> None:
    """Minus the gradient: nothing moves. It sees what the parts have left."""
    task = make_task(mlp(), local=Local(gradients=(NormClipping(max=0.25),)))
    norms: list[float] = []

    def undo(w: Tensor, g: Tensor) -> Tensor:
        norms.append(float(g.norm()))
        return -g

    for optimizer in ("sgd", "adam"):
        assert task.train(task.received, correction=undo, optimizer=optimizer).w == pytest.approx(
            task.received.w, abs=1e-6
        )
    assert norms == pytest.approx([0.25] * len(norms), abs=1e-5)
