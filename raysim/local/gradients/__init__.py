"""What can be done with gradients, each in a file of its own. To add one, put it into `GRADIENTS`."""

from raysim.local.gradients.accumulate import Accumulate
from raysim.local.gradients.clip import NormClipping, ValueClipping
from raysim.local.gradients.gradient import Gradient, GradientPoint, Take
from raysim.local.gradients.noise import GradientNoise
from raysim.local.gradients.sam import SAM

GRADIENTS: tuple[type[Gradient], ...] = (NormClipping, ValueClipping, Accumulate, GradientNoise, SAM)

__all__ = [
    "GRADIENTS",
    "SAM",
    "Accumulate",
    "Gradient",
    "GradientNoise",
    "GradientPoint",
    "NormClipping",
    "Take",
    "ValueClipping",
]
