"""The behaviours of clients that raysim comes with. To add one, put it into `BEHAVIOURS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from raysim.clients.behaviour import Behaviour
from raysim.parts.part import Fraction, NonNegative, OneOf, Positive
from raysim.terms import Record

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Honest(Behaviour):
    """Does what the algorithm says."""

    name: str = "honest"

    def distort(self, sent: Record, given: Record, draw: Generator) -> Record:
        return sent  # the very tensors: a difference that is taken and added again would round


class SignFlip(Behaviour):
    """Sends the opposite of its update, times a factor."""

    name: str = "sign_flip"
    scale: Positive = 1.0
    """The factor."""

    def sent(self, value: Tensor, draw: Generator) -> Tensor:
        return -self.scale * value


class Noise(Behaviour):
    """Sends its update with normal noise added to each number."""

    name: str = "noise"
    deviation: NonNegative = 1.0
    """Standard deviation of the noise."""

    def sent(self, value: Tensor, draw: Generator) -> Tensor:
        import torch

        noise = torch.randn(value.shape, generator=draw, dtype=value.dtype)
        return value + self.deviation * noise.to(value.device)


class Zero(Behaviour):
    """Sends an update of zeros, as if it had not trained."""

    name: str = "zero"

    def sent(self, value: Tensor, draw: Generator) -> Tensor:
        return value * 0


class FlipLabels(Behaviour):
    """Trains on label C - 1 - y in the place of y, of C labels."""

    name: str = "flip_labels"

    def labels(self, y: np.ndarray, classes: int, draw: np.random.Generator) -> np.ndarray:
        return classes - 1 - y

    def distort(self, sent: Record, given: Record, draw: Generator) -> Record:
        return sent


class RandomLabels(Behaviour):
    """Trains on random labels in the place of some."""

    name: str = "random_labels"
    share: Fraction = 1.0
    """Share of its samples, on average, that get one of all labels, all equally likely."""

    def labels(self, y: np.ndarray, classes: int, draw: np.random.Generator) -> np.ndarray:
        drawn = draw.integers(classes, size=y.shape)
        found: np.ndarray = y.copy()
        chosen = draw.random(y.shape) < self.share
        found[chosen] = drawn[chosen]
        return found

    def distort(self, sent: Record, given: Record, draw: Generator) -> Record:
        return sent


BEHAVIOURS: tuple[type[Behaviour], ...] = (Honest, SignFlip, Noise, Zero, FlipLabels, RandomLabels)
ABehaviour = Annotated[Behaviour, OneOf(BEHAVIOURS, "raysim.behaviours")]
