"""What a task does with data that are not the client's own, sharpness-aware steps, and predictions."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from raysim.local import Local
from raysim.local.gradients import SAM
from raysim.local.loop import batches
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.parts.rng import generator


def test_a_task_without_public_inputs_says_what_to_add() -> None:
    with pytest.raises(ValueError, match="add `public:`"):
        _ = linear_task(Local()).public


def linear_task(local: Local, own: int = 20) -> Task:
    """A client with a linear model of two inputs and three outputs."""
    torch.manual_seed(0)
    net = Net(nn.Linear(2, 3), (), "cross_entropy", torch.device("cpu"))
    x, y = torch.randn(own, 2), torch.randint(3, (own,))
    return Task(net, net.model(), Samples.of(x, y), local, None, (0, 1, 2))


def twin(task: Task) -> nn.Linear:
    """A torch module with the received values."""
    module = nn.Linear(2, 3)
    module.load_state_dict({"weight": task.received.w[:6].reshape(3, 2), "bias": task.received.w[6:9]})
    return module


def flat(module: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def half(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output.softmax(-1) - target).square().sum() / 2


@pytest.mark.parametrize("batch_size", [4, None])
def test_training_on_given_data_with_a_given_loss_is_that_of_torch(batch_size: int | None) -> None:
    task = linear_task(Local(batch_size=batch_size, epochs=2, lr=0.05))
    inputs, targets = torch.randn(10, 2), torch.rand(10, 3)
    module = twin(task)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    order = generator(0, "train 1", 1, 2)
    order.integers(2**63)  # the seed of dropout
    losses = []
    for x, y in batches(Samples.of(inputs, targets), task.local, order):
        optimizer.zero_grad()
        loss = half(module(x), y)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    trained = task.train(task.received, data=(inputs, targets), loss=half, stream=1)
    assert trained.w[:9].numpy() == pytest.approx(flat(module).numpy(), abs=1e-6)
    assert int(trained.steps) == (2 if batch_size is None else 6)
    assert [float(trained.loss_before), float(trained.loss_after)] == pytest.approx([losses[0], losses[-1]])


def test_a_loss_of_embeddings_follows_their_gradient_and_leaves_no_trace() -> None:
    """In one step from the sum of |tanh(A x + b)|^2 / 2; what trains afterwards has the bits that it had before."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    net = Net(module, (), "cross_entropy", torch.device("cpu"))
    samples = Samples.of(torch.randn(6, 2), torch.zeros(6, dtype=torch.int64))
    task = Task(net, net.model(), samples, Local(lr=0.1), None, (0, 1, 2))
    first, before = copy.deepcopy(module[0]), task.train(task.received).w
    embedded = first(task.x).tanh()
    (embedded.square().sum() / 2).backward()

    def loss(output: torch.Tensor, target: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        assert torch.equal(task.loss(output, target), cross_entropy(output, target))
        return embedding.square().sum() / 2

    trained = task.train(task.received, loss=loss, embedded=True, steps=1)
    assert float(trained.loss_before) == pytest.approx(float(embedded.detach().square().sum() / 2))
    assert first.weight.grad is not None
    moved = first.weight.detach() - 0.1 * first.weight.grad
    assert trained.w[:6].tolist() == pytest.approx(moved.flatten().tolist(), abs=1e-6)
    assert torch.equal(task.train(task.received).w, before)
    with pytest.raises(ValueError, match="`embedded` needs a `loss`"):
        task.train(task.received, embedded=True)


def test_given_data_leave_the_clients_own_unread() -> None:
    received = linear_task(Local())
    unread = Samples(20, lambda places: pytest.fail("the client's samples were loaded"))
    net = Net(nn.Linear(2, 3), (), "cross_entropy", torch.device("cpu"))
    task = Task(net, received.received, unread, Local(batch_size=None), None, (0, 1, 2))
    inputs = torch.randn(4, 2)
    task.train(task.received, data=(inputs, torch.tensor([0, 1, 2, 0])))  # with the data's own loss


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_sharpness_aware_steps_take_the_gradient_uphill(weight_decay: float) -> None:
    """By torch, step by step: at w + r g / |g|, which only shifts where the gradient is taken."""
    task = linear_task(
        Local(batch_size=None, epochs=3, lr=0.5, gradients=(SAM(radius=0.3),), weight_decay=weight_decay)
    )
    module, cross_entropy = twin(task), nn.CrossEntropyLoss()
    for _ in range(3):
        gradients = torch.autograd.grad(cross_entropy(module(task.x), task.y), list(module.parameters()))
        norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
        above = twin(task)
        with torch.no_grad():
            for there, here, gradient in zip(above.parameters(), module.parameters(), gradients, strict=True):
                there.copy_(here + 0.3 * gradient / norm)
        uphill = torch.autograd.grad(cross_entropy(above(task.x), task.y), list(above.parameters()))
        with torch.no_grad():
            for here, gradient in zip(module.parameters(), uphill, strict=True):
                here.sub_(0.5 * (gradient + weight_decay * here))
    assert task.train(task.received).w[:9].numpy() == pytest.approx(flat(module).numpy(), abs=1e-6)


def test_predictions_of_many_inputs_are_those_of_few() -> None:
    task = linear_task(Local())
    inputs = torch.randn(600, 2)
    together = task.predict(task.received, inputs)
    assert together.shape == (600, 3)
    assert together.numpy() == pytest.approx(twin(task)(inputs).detach().numpy(), abs=1e-6)
    assert task.predict(task.received, inputs[:0]).shape == (0, 3)
