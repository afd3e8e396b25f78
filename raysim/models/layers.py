"""Modules of our own. Defining them needs torch, so a model imports this file only when it is built."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from raysim.data.named import NamedArrays


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


@dataclass(frozen=True)
class Contiguous:
    """A forward pre-hook that gives a module its inputs in torch's standard memory format, where `view` works."""

    def __call__(self, module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # `contiguous` leaves images with one channel as they are, and convolutions would take them for channels-last.
        return tuple(x.clone(memory_format=torch.contiguous_format) for x in args)


@dataclass(frozen=True)
class ByName:
    """A forward pre-hook that gives a module the arrays of `NamedArrays` inputs as keyword arguments."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        if not args or not isinstance(args[0], NamedArrays):
            return args, kwargs
        return args[1:], {**args[0], **kwargs}


@dataclass(frozen=True)
class Prepare:
    """A forward pre-hook for networks that need three channels, and maybe another size of images.

    It is a hook because a wrapping module would put its own name before those of the network's parameters.
    """

    size: int | None  # height and width in pixels; None: images are not resized

    def __call__(self, module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        (x,) = args
        if self.size is not None and x.shape[-2:] != (self.size, self.size):
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        return (x.expand(-1, 3, -1, -1),)


@dataclass(frozen=True)
class Logits:
    """A forward hook that lets a model of transformers return the logits alone, as float32."""

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        return output.logits.float() if hasattr(output, "logits") else output


@dataclass(frozen=True)
class Padded:
    """A forward pre-hook that puts a model's own token for padding where the mask is zero: those that classify by the
    last token look for it there."""

    token: int

    def __call__(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if (mask := kwargs.get("attention_mask")) is not None and "input_ids" in kwargs:
            kwargs = {**kwargs, "input_ids": kwargs["input_ids"].masked_fill(mask == 0, self.token)}
        return args, kwargs
