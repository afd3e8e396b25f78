"""Parameters in one flat vector: its order, its parts, and the modules that are bound to it."""

import pickle

import pytest
import torch
from model_inputs import MNIST, images
from torch import nn

from raysim.models import CNN, MLP, FedFADMMCNN, ModelPart
from raysim.models.build import initialise
from raysim.models.layout import Layout


class Net(nn.Module):
    """A bit of everything: a convolution, BatchNorm, a frozen and a scalar parameter, a head before the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3)
        self.norm = nn.BatchNorm2d(5)
        self.head = nn.Linear(5, 2)
        self.header = nn.Linear(2, 4)
        self.scale = nn.Parameter(torch.ones(()))
        self.frozen = nn.Parameter(torch.ones(7), requires_grad=False)
        self.register_buffer("constant", torch.ones(4), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.header(self.head(self.norm(self.conv(x)).relu().mean((2, 3)))) * self.scale


@pytest.mark.parametrize("model", [MLP(), MLP(personal=("head",)), CNN(), FedFADMMCNN(personal=("hidden", "head"))])
def test_a_bound_module_computes_the_same_from_the_flat_vector(model: ModelPart) -> None:
    original = initialise(model, MNIST, 10, seed=0).eval()
    layout, module = Layout(original, model.personal), initialise(model, MNIST, 10, seed=1).eval()
    w = layout.flatten(original)
    layout.bind(module, w)
    x = images(4, *MNIST)
    torch.testing.assert_close(module(x), original(x), atol=1e-6, rtol=0)
    assert torch.equal(layout.flatten(module), w)


def test_an_in_place_change_of_the_vector_changes_the_module_and_an_optimiser_changes_the_vector() -> None:
    module = Net()
    layout = Layout(module, ("head",))
    w = layout.flatten(module)
    layout.bind(module, w)
    assert module.conv.weight.is_contiguous(memory_format=torch.channels_last)
    w.zero_()
    assert module(images(2, 3, 8, 8)).count_nonzero() == 0
    assert module.frozen.sum() == 7
    w.copy_(torch.arange(layout.size))
    before = w.clone()
    module(images(2, 3, 8, 8)).sum().backward()
    torch.optim.SGD(layout.select(module), lr=0.1).step()
    gradient = torch.zeros(layout.size)
    for view, parameter in zip(layout.views(gradient), layout.select(module), strict=True):
        view.copy_(parameter.grad)
    assert gradient.count_nonzero() > 0
    torch.testing.assert_close(w, before - 0.1 * gradient)


def test_gradients_flow_through_views_and_views_can_be_batched() -> None:
    """torch.func over the flat vector, one and many, agrees with autograd on the module."""
    module = initialise(CNN(channels=(3, 4), hidden=5), MNIST, 10, seed=0)
    layout, x = Layout(module, ("head",)), images(2, *MNIST)

    def loss(w: torch.Tensor) -> torch.Tensor:
        named = {e.name: view for e, view in zip(layout.entries, layout.views(w), strict=True)}
        return torch.func.functional_call(module, named, x).square().sum()

    w = layout.flatten(module)
    module(x).square().sum().backward()
    expected = torch.zeros_like(w)
    for view, parameter in zip(layout.views(expected), layout.select(module), strict=True):
        view.copy_(parameter.grad)
    torch.testing.assert_close(torch.func.grad(loss)(w), expected, atol=1e-5, rtol=1e-4)
    batched = torch.func.vmap(torch.func.grad(loss))(torch.stack([w, w]))
    torch.testing.assert_close(batched[1], expected, atol=1e-5, rtol=1e-4)


def test_the_personal_part_comes_last_and_on_a_64_byte_boundary() -> None:
    module = Net()
    layout = Layout(module, ("head",))
    assert [e.name for e in layout.entries] == [
        *("scale", "conv.weight", "conv.bias", "norm.weight", "norm.bias", "header.weight", "header.bias"),
        *("head.weight", "head.bias"),
    ]
    shared, personal = 1 + 135 + 5 + 5 + 5 + 8 + 4, 12
    assert (layout.cut, layout.size, layout.parameters) == (176, 176 + personal, shared + personal)
    w = layout.flatten(module)
    assert torch.equal(w[shared:176], torch.zeros(13))
    assert torch.equal(w[176:186], module.head.weight.flatten())
    assert layout.entries[1].offset == 1 and layout.entries[1].size == 135


def test_the_nearest_prefixes_are_named() -> None:
    with pytest.raises(ValueError, match=r"`personal` 'haed' must be .* nearest are 'head'"):
        Layout(Net(), ("haed",))
    with pytest.raises(ValueError, match=r"'frozen' must be a trainable parameter's name"):
        Layout(Net(), ("frozen",))


def test_buffers_make_a_vector_of_their_own() -> None:
    """Running mean and variance, but neither the integer batch count nor constants that are not persistent."""
    module, other = Net(), Net()
    layout = Layout(module)
    assert [e.name for e in layout.buffers] == ["norm.running_mean", "norm.running_var"]
    module(images(2, 3, 8, 8))
    vector = layout.flatten_buffers(module)
    assert torch.equal(vector, torch.cat([module.norm.running_mean, module.norm.running_var]))
    layout.load_buffers(other, vector)
    vector.zero_()
    assert torch.equal(other.norm.running_var, module.norm.running_var)
    mlp = initialise(MLP(), MNIST, 10, seed=0)
    assert Layout(mlp).flatten_buffers(mlp).shape == (0,)


def test_a_layout_can_be_pickled() -> None:
    layout = Layout(Net(), ("head",))
    assert pickle.loads(pickle.dumps(layout)).entries == layout.entries
