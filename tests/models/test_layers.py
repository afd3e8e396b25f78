"""Layers by themselves, and the bound on weights that makes one a contraction."""

import torch
from equilibria import CPU, draw
from model_inputs import images
from torch import Tensor, nn

from raysim.local import Local
from raysim.local.loop import Goal, train
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.models import DEQMLP
from raysim.models.build import initialise
from raysim.models.layers import BoundedLinear, ChannelLayerNorm, ResidualBlock, project_rows
from raysim.models.universal import Layer
from raysim.parts.rng import generator


def test_channel_layer_norm_is_over_the_channels_of_a_pixel() -> None:
    norm = ChannelLayerNorm(3)
    x = torch.zeros(1, 3, 1, 2)
    x[0, :, 0, 0], x[0, :, 0, 1] = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 10.0, 40.0])
    expected = torch.tensor([[-1.2247449, 0.0, 1.2247449], [-0.7071068, -0.7071068, 1.4142136]]).T
    torch.testing.assert_close(norm(x)[0, :, 0], expected, atol=1e-5, rtol=0)
    assert not torch.allclose(norm(x), nn.GroupNorm(1, 3)(x), atol=0.1)


def test_channel_layer_norm_keeps_channels_last() -> None:
    y = ChannelLayerNorm(4)(images(2, 4, 5, 6).contiguous(memory_format=torch.channels_last))
    assert y.is_contiguous(memory_format=torch.channels_last)


def test_attention_is_that_of_torch() -> None:
    layer, x = Layer(8, 2, 1.0, 0.0, nn.Dropout), images(3, 5, 8)
    q, k, v = (part.unflatten(2, (2, 4)).transpose(1, 2) for part in layer.qkv(x).chunk(3, dim=2))
    fused = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = layer.out(fused.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer.attention(x), expected, atol=1e-6, rtol=1e-5)


def test_a_halving_block_s_shortcut_pads_channels() -> None:
    block, x = ResidualBlock(2, 4).eval(), images(1, 2, 4, 4).abs()
    nn.init.zeros_(block.norm2.weight)
    y = block(x)
    assert torch.equal(y[:, :2], x[:, :, ::2, ::2])
    assert y[:, 2:].count_nonzero() == 0
    whole = ResidualBlock(2, 2).eval()
    nn.init.zeros_(whole.norm2.weight)
    assert torch.equal(whole(x), x)


def test_rows_are_projected_on_the_ball() -> None:
    """By hand: of (0.9, -0.6, 0.1) all sizes lose 0.25. A row inside stays, which on a sphere it would not."""
    matrix = torch.tensor([[0.9, -0.6, 0.1], [-0.3, 0.2, 0.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[0.65, -0.35, 0.0], [-0.3, 0.2, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(project_rows(matrix, 1.0), expected)
    assert torch.equal(project_rows(matrix, 1.0)[1], matrix[1])
    assert project_rows(torch.tensor([[torch.nan, 1.0]]), 1.0).isnan().any()


def test_a_projection_is_the_nearest_point() -> None:
    matrix = draw(20, 9)
    projected = project_rows(matrix, 0.7)
    assert projected.abs().sum(1).max() <= 0.7 + 1e-6
    inside = draw(500, 1, 9, seed=1)
    inside = 0.7 * inside / inside.abs().sum(2, keepdim=True)
    assert ((matrix - projected).norm(dim=1) <= (matrix - inside).norm(dim=2) + 1e-6).all()


def trained(kappa: float | None, part: str | None = None) -> tuple[Net, Tensor]:
    """After ten large steps, and the weights B before."""
    model = DEQMLP(width=12, hidden=8, kappa=kappa)
    net = Net(initialise(model, (6,), 3, 0), model.personal, "cross_entropy", CPU)
    before = net.module.equilibrium.g.linear.weight.detach().clone()
    samples = Samples.of(draw(20, 6), torch.arange(20) % 3)
    local, order = Local(lr=2.0, steps=10, batch_size=5), generator(0, "test")
    train(net, net.model(), samples, local, order, Goal(part), lambda purpose: torch.Generator(), None)
    return net, before


def test_training_keeps_the_bound_after_each_step() -> None:
    net, before = trained(0.5)
    layer = net.module.equilibrium.g.linear
    assert isinstance(layer, BoundedLinear)
    assert not torch.equal(layer.weight, before)
    assert layer.weight.abs().sum(1).max() <= 0.5 + 1e-6
    free, _ = trained(None)
    assert free.module.equilibrium.g.linear.weight.abs().sum(1).max() > 1
    assert net.layout.flatten(net.module).equal(net.w)


def test_a_part_without_the_bounded_weights_leaves_them() -> None:
    net, before = trained(0.5, part="personal")
    assert torch.equal(net.module.equilibrium.g.linear.weight, before)
