"""Changes of training samples that are drawn anew for every mini-batch. To add one, put it into `AUGMENTATIONS`."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from raysim.data.named import shape_of
from raysim.parts.own_function import Arguments, ImportPath, call, find, problems_of
from raysim.parts.part import Count, Fraction, NonNegative, Positive
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
    def transform(self, v2: Any, height: int, width: int) -> Any:
        """Returns the transform, a function from an image to an image. v2: `torchvision.transforms.v2`."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        import torch
        from torchvision.transforms import v2

        transform = self.transform(v2, *x.shape[-2:])
        return torch.stack([transform(image) for image in x]), y


class Crop(ImageAugmentation):
    """A random part of the image with a black border, of the image's own size."""

    name: str = "crop"
    padding: Count = 4
    """Width of the border, in pixels."""

    def transform(self, v2: Any, height: int, width: int) -> Any:
        return v2.RandomCrop((height, width), padding=self.padding)


class Flip(ImageAugmentation):
    """The image, or its mirror image."""

    name: str = "flip"
    probability: Fraction = 0.5
    """Probability that the image is mirrored."""

    def transform(self, v2: Any, height: int, width: int) -> Any:
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

    def transform(self, v2: Any, height: int, width: int) -> Any:
        return v2.ColorJitter(self.brightness, self.contrast, self.saturation, self.hue)


class Cutout(ImageAugmentation):
    """A random rectangle of the image becomes black (DeVries and Taylor 2017; Zhong et al., AAAI 2020)."""

    name: str = "cutout"
    probability: Fraction = 0.5
    """Probability that there is a rectangle."""
    share: tuple[Fraction, Fraction] = (0.02, 0.33)
    """Least and largest part of the image's area."""

    def transform(self, v2: Any, height: int, width: int) -> Any:
        return v2.RandomErasing(self.probability, scale=self.share)


class RandAugment(ImageAugmentation):
    """Some transforms in a row, drawn from a list of fourteen (Cubuk et al., CVPR workshops 2020)."""

    name: str = "rand_augment"
    operations: Count = 2
    """Transforms in a row."""
    magnitude: Annotated[int, Field(ge=0, le=30)] = 9
    """How strong they are."""

    def transform(self, v2: Any, height: int, width: int) -> Any:
        import torch

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


class AugmentFunction(Augmentation):
    """A function of your own, for any inputs, such as text and tables; "my_module:change" is short for it."""

    images: ClassVar[bool] = False

    name: str = "function"
    function: ImportPath
    """The function, such as my_module:change. It gets the inputs of a mini-batch, (n, ...), and returns others of the
    same shape."""
    args: Arguments = Field(default_factory=dict)
    """Its other arguments, by name."""

    def problems(self) -> Iterator[tuple[str, str]]:
        return problems_of(self.function, self.args)

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        changed: Tensor = call(find(self.function), x, given=self.args, offered={})
        if type(changed) is not type(x) or len(changed) != len(x) or shape_of(changed) != shape_of(x):
            got = getattr(changed, "shape", changed)
            raise ValueError(f"local.augment: must keep the inputs' shape {(len(x), *x.shape[1:])}, got {got!r}")
        return changed, y


AUGMENTATIONS: tuple[type[Augmentation], ...] = (
    *(Crop, Flip, ColorJitter, Cutout, RandAugment, MixUp),
    AugmentFunction,
)
