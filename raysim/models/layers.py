"""Layers and blocks of our own, which layers normalise, and BatchNorm where a batch has no statistics.

Defining them needs torch, so a model imports this file only when it is built.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from raysim.parts.errors import BadValue


class QuadraticLoss(nn.Module):
    """The loss h/2 |x - a|^2 + <s, x> of the parameter x (size,). Takes rows [a, s, h] (B, 2 size + 1), gives (B,)."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.x = nn.Parameter(start.clone())

    def forward(self, rows: Tensor) -> Tensor:
        a, s, h = rows.split_with_sizes([len(self.x), len(self.x), 1], dim=1)
        return h[:, 0] / 2 * (self.x - a).square().sum(1) + (s * self.x).sum(1)


class ChannelLayerNorm(nn.Module):
    """Layer normalisation over the channels of each pixel of (B, C, H, W), with C weights and C biases.

    It is the last-axis LayerNorm of channels-last frameworks, and not GroupNorm(1, C), whose statistics are over all
    pixels. For a batch in channels-last memory format both permutations are views.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        pixels = x.permute(0, 2, 3, 1)
        return F.layer_norm(pixels, self.weight.shape, self.weight, self.bias).permute(0, 3, 1, 2)


class BoundedLinear(nn.Linear):
    """A linear layer whose weight has an l-infinity norm (the largest l1 norm of a row) of at most `bound`.

    With a bound below 1, and an activation with slopes of at most 1 after it, it is a contraction.
    """

    def __init__(self, inputs: int, outputs: int, bound: float) -> None:
        super().__init__(inputs, outputs, bias=False)
        self.bound = bound
        self.project()

    @torch.no_grad()
    def project(self) -> None:
        """Replaces the weight, in place, by the nearest one within the bound."""
        self.weight.copy_(project_rows(self.weight, self.bound))


def project_rows(matrix: Tensor, radius: float) -> Tensor:
    """Returns the nearest matrix whose rows have an l1 norm of at most `radius`; rows within it stay as they are.

    Duchi, Shalev-Shwartz, Singer, Chandra, Efficient projections onto the l1-ball for learning in high dimensions,
    ICML 2008, figure 1. matrix: (rows, columns).
    """
    sizes = matrix.abs()
    falling = sizes.sort(dim=1, descending=True).values
    counts = torch.arange(1, matrix.shape[1] + 1, device=matrix.device)
    excess = (falling.cumsum(1) - radius) / counts
    kept = (falling > excess).sum(1, keepdim=True).clamp_min(1)  # the count is 0 only if the row is not finite
    threshold = excess.gather(1, kept - 1).clamp_min(0)
    return matrix.sign() * (sizes - threshold).clamp_min(0)


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
    of zeros behind (He, Zhang, Ren, Sun, CVPR 2016, section 4.2, option A), so that the first channels stay the first.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.stride = outputs // inputs
        self.conv1, self.norm1 = conv3x3(inputs, outputs, self.stride), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = conv3x3(outputs, outputs), nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        if self.stride > 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, y.shape[1] - x.shape[1]))
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


def contiguous(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A forward pre-hook that gives a module its inputs in torch's standard memory format, where `view` works."""
    # x.contiguous() leaves images with one channel as they are, and convolutions would take them for channels-last.
    return tuple(x.clone(memory_format=torch.contiguous_format) for x in args)


NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, ChannelLayerNorm)


def norms_of(module: nn.Module) -> dict[str, nn.Module]:
    """Returns the normalisation layers inside a module, by their names."""
    return {name: layer for name, layer in module.named_modules() if name and isinstance(layer, NORMS)}


def required_norms(module: nn.Module, norm: str) -> dict[str, nn.Module]:
    """Returns the layers that `model.norm` is about: none if it is average. Raises BadValue if there are none else."""
    found = {} if norm == "average" else norms_of(module)
    if norm != "average" and not found:
        raise BadValue(f"must be average, because the model has no normalisation, got {norm}; leave it out", "norm")
    return found


def spare_single_values(module: nn.Module) -> None:
    """Makes the BatchNorms of a module use their running statistics for inputs with a single value a channel.

    Such inputs have no variance, so torch raises an error for them in training mode. All other inputs are normalised as
    before.
    """
    for norm in module.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm) and norm.track_running_stats:
            norm.register_forward_pre_hook(_enter)
            norm.register_forward_hook(_leave, always_call=True)


def _enter(norm: nn.Module, inputs: tuple[Any, ...]) -> None:
    single = bool(inputs) and isinstance(inputs[0], Tensor) and inputs[0].numel() == inputs[0].shape[1]
    if norm.training and single:
        norm.training = False
        norm._spared = True  # type: ignore[assignment]


def _leave(norm: nn.Module, *_: Any) -> None:
    if norm.__dict__.pop("_spared", False):
        norm.training = True
