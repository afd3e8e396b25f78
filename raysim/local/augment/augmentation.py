"""Changes of training samples that are drawn anew for every mini-batch."""

from abc import abstractmethod
from typing import ClassVar

from raysim.schedules import Schedulable
from raysim.terms import Tensor


class Augmentation(Schedulable):
    """A random change of the samples of a mini-batch. A subclass adds its `name`.

    Draws are from torch's default generator, which is seeded for each client, dispatch and step, and put back.
    """

    images: ClassVar[bool] = True
    """Whether it is for images. They come as float32 (n, channels, height, width), with pixels from 0 to 1."""

    name: str

    @abstractmethod
    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        """Returns other inputs of the same shape, and labels. classes: the number of different labels."""


class ImageAugmentation(Augmentation):
    """A transform of torchvision, drawn for each image."""

    @abstractmethod
    def transform(self, height: int, width: int) -> object:
        """Returns the transform, a function from an image to an image."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        import torch

        transform = self.transform(*x.shape[-2:])
        return torch.stack([transform(image) for image in x]), y  # type: ignore[operator]
