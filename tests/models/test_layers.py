"""Layers by themselves."""

import torch
from model_inputs import images
from torch import nn

from raysim.models.layers import ChannelLayerNorm, ResidualBlock
from raysim.models.universal import Layer


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
