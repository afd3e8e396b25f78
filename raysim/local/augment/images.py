"""Augmentation of images by the transforms of torchvision (`torchvision.transforms.v2`)."""

from typing import Annotated

from pydantic import Field

from raysim.local.augment.augmentation import Augmentation, ImageAugmentation
from raysim.parts.part import Count, Fraction, NonNegative, Positive
from raysim.terms import Tensor


class Crop(ImageAugmentation):
    """A random part of the image with a black border, of the image's own size."""

    name: str = "crop"
    padding: Count = 4
    """Width of the border, in pixels."""

    def transform(self, height: int, width: int) -> object:
        from torchvision.transforms import v2

        return v2.RandomCrop((height, width), padding=self.padding)


class Flip(ImageAugmentation):
    """The image, or its mirror image."""

    name: str = "flip"
    probability: Fraction = 0.5
    """Probability that the image is mirrored."""

    def transform(self, height: int, width: int) -> object:
        from torchvision.transforms import v2

        return v2.RandomHorizontalFlip(self.probability)


class ColorJitter(ImageAugmentation):
    """Random changes of colours."""

    name: str = "color_jitter"
    brightness: NonNegative = 0.2
    """Largest change of the factor of brightness, around 1."""
    contrast: NonNegative = 0.2
    """Largest change of the factor of contrast, around 1."""
    saturation: NonNegative = 0.2
    """Largest change of the factor of saturation, around 1."""
    hue: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Largest shift of the hue, as a part of the circle."""

    def transform(self, height: int, width: int) -> object:
        from torchvision.transforms import v2

        return v2.ColorJitter(self.brightness, self.contrast, self.saturation, self.hue)


class Cutout(ImageAugmentation):
    """A random rectangle of the image becomes black (DeVries and Taylor 2017; Zhong et al., AAAI 2020)."""

    name: str = "cutout"
    probability: Fraction = 0.5
    """Probability that there is a rectangle."""
    share: tuple[Fraction, Fraction] = (0.02, 0.33)
    """Least and largest part of the image's area."""

    def transform(self, height: int, width: int) -> object:
        from torchvision.transforms import v2

        return v2.RandomErasing(self.probability, scale=self.share)


class RandAugment(ImageAugmentation):
    """Some transforms in a row, drawn from a list of fourteen (Cubuk et al., CVPR workshops 2020)."""

    name: str = "rand_augment"
    operations: Count = 2
    """Transforms in a row."""
    magnitude: Annotated[int, Field(ge=0, le=30)] = 9
    """How strong they are."""

    def transform(self, height: int, width: int) -> object:
        import torch
        from torchvision.transforms import v2

        steps = v2.RandAugment(self.operations, self.magnitude)
        return lambda image: steps(image.mul(255).round().to(torch.uint8)).to(torch.float32) / 255


class MixUp(Augmentation):
    """Means of pairs of samples, and of their labels (Zhang et al., mixup, ICLR 2018)."""

    name: str = "mixup"
    alpha: Positive = 0.2
    """Both parameters of the Beta distribution that the weight of a pair is drawn from."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        from torchvision.transforms import v2

        mixed: tuple[Tensor, Tensor] = v2.MixUp(alpha=self.alpha, num_classes=classes)(x, y)
        return mixed
