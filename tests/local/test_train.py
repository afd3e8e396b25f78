"""Local training: against torch.optim, by hand, and what it must not do."""

from typing import Any

import numpy as np
import pytest
import torch
from local_tasks import CPU, OURS, make_task, mlp, theirs
from torch import nn

from raysim.algorithms import Population
from raysim.local import Local
from raysim.local.loop import batches
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.optimizers import Optimizer
from raysim.local.samples import Loader, Samples
from raysim.local.task import Task
from raysim.models import CNN
from raysim.models.build import initialise
from raysim.parts.rng import generator


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("ours", OURS, ids=str)
def test_it_does_what_torch_optim_does(ours: Optimizer, decay: float) -> None:
    """Torch gets the same batches, optimiser and proximal term, for three epochs of a convolutional network."""
    local = Local(optimizer=ours, lr=0.01, weight_decay=decay, epochs=3, batch_size=16)
    part = CNN(channels=(4,), kernel=3, hidden=8)
    net = Net(initialise(part, (1, 8, 8), 10, 0), (), "cross_entropy", CPU)
    task = make_task(net, local=local)
    start = task.received.w.clone()
    trained = task.train(task.received, correction=lambda w: 0.1 * (w - start))

    module = initialise(part, (1, 8, 8), 10, 0)
    first = [p.detach().clone() for p in module.parameters()]
    optimizer = theirs(ours, module.parameters(), lr=0.01, weight_decay=decay)
    order = generator(0, "train 0", 1, 2)
    order.integers(2**63)  # the seed of dropout
    for x, y in batches(Samples.of(task.x, task.y), local, order):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y)
        pull = sum((p - q).square().sum() for p, q in zip(module.parameters(), first, strict=True))
        (loss + 0.05 * pull).backward()
        optimizer.step()
    assert trained.w == pytest.approx(net.layout.flatten(module), abs=2e-6)
    assert trained.steps == 9


def test_each_epoch_sees_every_sample_once_in_another_order() -> None:
    x = torch.arange(10.0)[:, None]
    local = Local(batch_size=4, epochs=2)
    drawn = list(batches(Samples.of(x, torch.arange(10)), local, generator(0, "order")))
    seen = [x[:, 0].tolist() for x, _ in drawn]
    assert [len(batch) for batch in seen] == [4, 4, 2, 4, 4, 2]
    first, second = [*seen[0], *seen[1], *seen[2]], [*seen[3], *seen[4], *seen[5]]
    assert sorted(first) == sorted(second) == x[:, 0].tolist()
    assert first != second


@pytest.mark.parametrize(
    ("settings", "samples", "steps"),
    [
        ({"batch_size": 4, "epochs": 2}, 10, 6),
        ({"batch_size": 4, "epochs": 2, "drop_last": True}, 10, 4),
        ({"batch_size": 4, "drop_last": True}, 3, 1),
        ({"batch_size": None, "epochs": 5}, 10, 5),
        ({"batch_size": 4, "steps": 7}, 10, 7),
        ({"batch_size": 4, "steps": 2, "epochs": 9}, 10, 2),
    ],
)
def test_the_number_of_steps_and_samples_is_known_beforehand(settings: Any, samples: int, steps: int) -> None:
    local = Local(**settings)
    taken = list(batches(Samples.of(torch.zeros(samples, 1), torch.zeros(samples)), local, generator(0, "order")))
    assert len(taken) == local.total_steps(samples) == steps
    assert sum(len(y) for _, y in taken) == local.total_samples(samples)


def test_a_few_steps_load_no_more_samples_than_they_take_and_take_the_same() -> None:
    x, y = torch.arange(10.0)[:, None], torch.arange(10)
    loaded: list[Any] = []

    def load(places: Any) -> tuple[torch.Tensor, torch.Tensor]:
        loaded.append(places)
        return x[places], y[places]

    local = Local(batch_size=3, steps=2)
    few = [labels.tolist() for _, labels in batches(Samples(10, load), local, generator(0, "order"))]
    many = batches(Samples.of(x, y), Local(batch_size=3, steps=9), generator(0, "order"))
    assert few == [labels.tolist() for _, labels in many][:2]
    assert [len(places) for places in loaded] == [6]


@pytest.mark.parametrize("settings", [{}, {"drop_last": True}, {"steps": 9}])
@pytest.mark.parametrize(("at_a_time", "most"), [(1, 3), (7, 6), (9, 9)])
def test_batches_are_the_same_however_many_samples_are_loaded_at_a_time(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], at_a_time: int, most: int
) -> None:
    """Loaded are as many whole batches as that makes, and one at least."""
    y = torch.arange(23)
    loaded: list[int] = []

    def load(places: Any) -> tuple[torch.Tensor, torch.Tensor]:
        loaded.append(len(y[places]))
        return y[places][:, None], y[places]

    def taken() -> list[list[int]]:
        drawn = batches(Samples(23, load), Local(batch_size=3, epochs=2, **settings), generator(0, "order"))
        return [labels.tolist() for _, labels in drawn]

    whole = taken()
    loaded.clear()
    monkeypatch.setattr("raysim.local.loop.LOADED", at_a_time)
    assert taken() == whole
    assert max(loaded) == most
    assert sum(loaded) == sum(len(labels) for labels in whole)


def test_the_same_key_gives_the_same_batches_and_masks_whatever_came_before() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 10))
    net = Net(module, (), "cross_entropy", CPU)
    one = make_task(net).train(net.model()).w
    start = make_task(net).received
    torch.rand(100)
    other = make_task(net, key=(0, 1, 3))
    assert not make_task(net, key=(0, 1, 3)).train(other.received.replace(w=start.w)).w.equal(one)


def test_a_part_alone_is_trained() -> None:
    net = mlp(personal=("head",))
    for ours in OURS:
        task = make_task(net, local=Local(optimizer=ours, lr=0.01, weight_decay=0.1))
        for part, changed, kept in (("shared", "shared", "personal"), ("personal", "personal", "shared")):
            end = task.train(task.received, part=part, correction=lambda w: 0.1 * w).model
            assert getattr(end, kept).equal(getattr(task.received, kept)), ours
            assert not getattr(end, changed).equal(getattr(task.received, changed))


def test_streams_name_batches() -> None:
    net = mlp()
    start = net.model()
    task = make_task(net)
    again = Task(net, start, Samples.of(task.x, task.y), Local(), Population(1, 40), (0, 1, 2))
    assert task.train(start).w.equal(again.train(start).w)
    assert not task.train(start).w.equal(task.train(start, stream=1).w)


def test_a_call_may_set_what_the_scenario_leaves_open() -> None:
    task = make_task(mlp())
    assert task.train(task.received, epochs=4, batch_size=None).steps == 4
    with pytest.raises(ValueError, match="lr"):
        task.train(task.received, lr=-1.0)


def test_the_gradient_is_that_of_the_mean_loss() -> None:
    task = make_task(mlp())
    gradient = task.gradient(task.received)
    step = task.train(task.received, batch_size=None, lr=1.0)
    assert step.w == pytest.approx(task.received.w - gradient, abs=1e-6)


def test_a_correction_may_be_the_parameters_themselves() -> None:
    task = make_task(mlp())
    assert task.train(task.received, correction=lambda w: w).w.equal(
        task.train(task.received, correction=lambda w: w * 1.0).w
    )


def test_the_module_in_training_is_nobody_elses() -> None:
    task = make_task(mlp())
    with pytest.raises(RuntimeError, match="being trained"):
        task.train(task.received, correction=lambda w: task.gradient(task.received))
    assert task.train(task.received).steps > 0  # and it is free again


def test_a_batch_of_one_sample_passes_batch_norm() -> None:
    """Where each channel is left with one value, which has no variance."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 10))
    net = Net(module, (), "cross_entropy", CPU)
    task = make_task(net, samples=9, local=Local(batch_size=4))
    end = task.train(task.received)
    assert end.w.isfinite().all()
    assert not end.model.buffers.equal(task.received.buffers)


def test_images_are_normalised_and_stay_channels_last() -> None:
    from raysim.data import Split

    x = generator(0, "images").integers(0, 256, (5, 4, 4, 3), dtype=np.uint8)
    loader = Loader((0.5, 0.4, 0.3), (0.2, 0.3, 0.4), CPU)
    images, y = loader(Split(x, np.arange(5)), np.array([3, 1]))
    expected = (x[[3, 1]] / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]
    assert images.permute(0, 2, 3, 1).numpy() == pytest.approx(expected, abs=1e-5)
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert y.tolist() == [3, 1]
    assert images.data_ptr() % 64 == 0


def test_a_model_of_another_size_is_refused() -> None:
    net = mlp()
    with pytest.raises(ValueError, match="parameters"):
        net.load(Model(torch.zeros(3), torch.zeros(0), 3, 0))


def test_class_weights_are_factors_of_samples() -> None:
    from torch.nn.functional import cross_entropy

    from raysim.local.loss import CrossEntropy, Focal

    outputs, labels = torch.randn(5, 3), torch.tensor([0, 2, 1, 1, 2])
    each = cross_entropy(outputs, labels, reduction="none", weight=torch.tensor([1.0, 2.0, 0.5]))
    for one in (CrossEntropy, Focal):
        weights: Any = {"class_weights": (1.0, 2.0, 0.5), **({"gamma": 0.0} if one is Focal else {})}
        assert float(one(**weights)(outputs, labels)) == pytest.approx(float(each.mean()), rel=1e-6)
    assert CrossEntropy(label_smoothing=0.0)(outputs, labels).equal(CrossEntropy()(outputs, labels))
    with pytest.raises(ValueError, match="one for each of 3 labels, got 2"):
        CrossEntropy(class_weights=(1.0, 2.0))(outputs, labels)
