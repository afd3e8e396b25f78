"""Augments the mini-batches of one training."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from raysim.local.augment import Augmentation


class Pixels:
    """Turns images from the form that a module takes, normalised by channel, into pixels from 0 to 1, and back."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        self._mean, self._std = (torch.tensor(one, device=device).view(-1, 1, 1) for one in (mean, std))

    def seen(self, x: Tensor) -> Tensor:
        """Returns images as pixels from 0 to 1."""
        return (x * self._std + self._mean).clamp(0, 1)

    def normalised(self, x: Tensor) -> Tensor:
        """Returns pixels as a module takes them."""
        return ((x - self._mean) / self._std).contiguous(memory_format=torch.channels_last)


class Augmenter:
    """Augments batches, one after another.

    pixels: what makes images of inputs; None: inputs are no images. generator: for seeds; each batch takes one.
    """

    def __init__(
        self,
        parts: Sequence[Augmentation],
        pixels: Pixels | None,
        classes: int,
        generator: Callable[[], torch.Generator],
    ) -> None:
        self._parts, self._pixels, self._classes, self._generator = parts, pixels, classes, generator

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        generator = self._generator()
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            x = x if self._pixels is None else self._pixels.seen(x)
            for part in self._parts:
                x, y = part.apply(x, y, self._classes)
        return x if self._pixels is None else self._pixels.normalised(x), y
