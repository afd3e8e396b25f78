"""The blocks that equilibrium and residual networks are made of."""

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class DenseCell(nn.Module):
    """g(z, x) = activation(A z + x) of z and x (B, width). linear: A, without a bias."""

    def __init__(self, linear: nn.Linear, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return self.activation(self.linear(z) + x)


class ResidualCell(nn.Module):
    """g(z, x) of images (B, channels, H, W): a residual block with group normalisation, to which x is added."""

    def __init__(self, channels: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.activation = activation
        self.conv1, self.norm1 = conv3x3(channels, hidden), nn.GroupNorm(8, hidden)
        self.conv2, self.norm2 = conv3x3(hidden, channels), nn.GroupNorm(8, channels)
        self.norm3 = nn.GroupNorm(8, channels)
        for conv in (self.conv1, self.conv2):
            nn.init.normal_(conv.weight, std=0.01)  # so small that at first the iteration converges

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        y = self.norm1(self.activation(self.conv1(z)))
        y = self.norm2(self.conv2(y) + x)
        out: Tensor = self.norm3(self.activation(y + z))
        return out


class ResidualBlock(nn.Module):
    """Two convolutions with batch normalisation and ReLU, and a shortcut without parameters.

    Where the block halves the image and doubles the channels, the shortcut takes every second pixel and adds channels
    of zeros, half of them before and half behind (He, Zhang, Ren, Sun, CVPR 2016, section 4.2, option A).
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.stride = outputs // inputs
        self.conv1, self.norm1 = conv3x3(inputs, outputs, self.stride), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = conv3x3(outputs, outputs), nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        if self.stride > 1:
            added = (y.shape[1] - x.shape[1]) // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, added, added))
        return torch.relu(y + x)


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """Returns a 3 x 3 convolution without bias, which keeps the size of the image unless it has a stride."""
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


def dense_layers(
    inputs: int, num_classes: int, activation: type[nn.Module], width_divisor: int = 1
) -> OrderedDict[str, nn.Module]:
    """Returns layers from features (B, inputs) to logits: hidden1 (256 units), hidden2 (128), norm2 and head.

    width_divisor: divides the numbers of units.
    """
    first, second = 256 // width_divisor, 128 // width_divisor
    return OrderedDict(
        hidden1=nn.Linear(inputs, first),
        activation1=activation(),
        hidden2=nn.Linear(first, second),
        activation2=activation(),
        norm2=nn.BatchNorm1d(second),
        head=nn.Linear(second, num_classes),
    )
