"""Training that stops once its gradient is small."""

from typing import Any

import pytest
import torch
from test_train import CPU, make_task, mlp
from torch import nn

from raysim.local import Local
from raysim.local.net import Net

ALL: Any = {"batch_size": None, "steps": 200}
BATCHES: Any = {"batch_size": 16, "epochs": 60}  # three an epoch


def noisy() -> Net:
    """With what makes training and eval mode differ."""
    torch.manual_seed(0)
    layers = nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 10)
    return Net(nn.Sequential(*layers), (), "cross_entropy", CPU)


@pytest.mark.parametrize(("settings", "an_epoch"), [(ALL, 1), (BATCHES, 3)])
@pytest.mark.parametrize("relative", [True, False])
def test_it_stops_at_the_first_check_that_finds_the_norm_small_enough(
    settings: Any, an_epoch: int, relative: bool
) -> None:
    task = make_task(mlp(), local=Local(**settings))
    wanted = 0.6 * float(task.gradient(task.received).norm())
    end = task.train(task.received, tolerance=0.6 if relative else wanted, relative=relative)
    assert end.steps > an_epoch
    assert end.steps % an_epoch == 0
    assert end.tolerance == pytest.approx(wanted, rel=1e-5)
    assert end.residual == pytest.approx(float(task.gradient(end.model).norm()), rel=1e-5)
    earlier = task.train(task.received, steps=int(end.steps) - an_epoch)
    assert end.loss_before == earlier.loss_before > end.loss_after
    assert task.gradient(end.model).norm() <= wanted < task.gradient(earlier.model).norm()


@pytest.mark.parametrize("settings", [ALL, BATCHES, {"batch_size": 40}, {"batch_size": 32, "drop_last": True}])
def test_a_tolerance_that_is_not_reached_changes_no_bit(settings: Any) -> None:
    """Neither of parameters and buffers nor of the losses, with BatchNorm and dropout."""
    net = noisy()
    task = make_task(net, local=Local(**settings))
    plain, checked = task.train(task.received), task.train(task.received, tolerance=0.0)
    assert plain.w.equal(checked.w)
    assert plain.model.buffers.equal(checked.model.buffers)
    assert (plain.steps, plain.loss_before, plain.loss_after) == (
        checked.steps,
        checked.loss_before,
        checked.loss_after,
    )
    assert plain.residual is plain.tolerance is None
    assert not {"residual", "tolerance"} & set(plain.send())


@pytest.mark.parametrize("settings", [ALL, BATCHES])
def test_where_the_start_is_near_enough_no_step_is_taken(settings: Any) -> None:
    task = make_task(mlp(), local=Local(**settings))
    end = task.train(task.received, tolerance=1e9)
    assert end.steps == 0
    assert end.w.equal(task.received.w)
    loss = nn.functional.cross_entropy(task.predict(task.received, task.x), task.y)
    assert end.loss_before == end.loss_after == pytest.approx(float(loss), rel=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("settings", [ALL, BATCHES])
def test_the_norm_is_that_of_all_that_training_follows(settings: Any, optimizer: str) -> None:
    """The gradient is that of the loss over all samples, with weight decay and the correction."""
    task = make_task(mlp(), local=Local(**settings, optimizer=optimizer, weight_decay=0.5))
    w = task.received.w
    followed = task.gradient(task.received) + 0.5 * w + 2 * (w - 1)
    assert task.residual(task.received, correction=lambda w: 2 * (w - 1)) == pytest.approx(
        float(followed.norm()), rel=1e-5
    )


def test_of_a_part_alone_only_its_gradient_counts() -> None:
    task = make_task(mlp(personal=("head",)), local=Local(**BATCHES))
    gradient, cut = task.gradient(task.received), task.received.cut
    for part, expected in (("shared", gradient[:cut]), ("personal", gradient[cut:])):
        end = task.train(task.received, part=part, tolerance=1e9)
        assert end.residual == pytest.approx(float(expected.norm()), rel=1e-5)


def test_mini_batches_are_checked_in_eval_mode_and_whole_batches_in_training_mode() -> None:
    net = noisy()
    for settings, in_eval in ((BATCHES, True), (ALL, False)):
        task = make_task(net, local=Local(**settings))
        gradient = float(task.gradient(task.received).norm())
        assert (task.residual(task.received) == pytest.approx(gradient, rel=1e-5)) is in_eval
