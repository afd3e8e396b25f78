"""Changes of training samples that are drawn anew for every mini-batch. To add one, put it into `AUGMENTATIONS`."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from raysim.data.dataset import IGNORED
from raysim.data.meaning import shape_of
from raysim.parts.lazy import F, torch
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
    needs: ClassVar[str | None] = None
    """What the data must have: labels, or None: anything will do."""
    with_places: ClassVar[bool] = True
    """Whether it is right where each pixel has a label: labels must move as pixels do."""

    name: str

    @abstractmethod
    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        """Returns other inputs of the same shape, and labels. classes: the number of different labels."""


class Crop(Augmentation):
    """A random part of the image with a black border, of the image's own size.

    Labels of pixels move with the pixels, and those of the border do not count.
    """

    name: str = "crop"
    padding: Count = 4
    """Width of the border, in pixels."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        corners = torch.randint(0, 2 * self.padding + 1, (len(x), 2)).to(x.device, non_blocking=True)
        y = self._cropped(y[:, None], corners, IGNORED)[:, 0] if _of_pixels(x, y) else y
        return self._cropped(x, corners, 0.0), y

    def _cropped(self, images: Tensor, corners: Tensor, border: float) -> Tensor:
        """Returns a part of each image, (n, channels, height, width). corners: its row and column there, (n, 2)."""
        height, width = images.shape[-2:]
        wide = F.pad(images, (self.padding,) * 4, value=border)
        windows = wide.unfold(2, height, 1).unfold(3, width, 1)
        return windows[torch.arange(len(images), device=images.device), :, corners[:, 0], corners[:, 1]]


class Flip(Augmentation):
    """The image, or its mirror image, with the labels of pixels."""

    name: str = "flip"
    probability: Fraction = 0.5
    """Probability that the image is mirrored."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        mirrored = (torch.rand(len(x)) < self.probability).to(x.device, non_blocking=True)
        if _of_pixels(x, y):
            y = torch.where(mirrored.view(-1, 1, 1), y.flip(-1), y)
        return torch.where(mirrored.view(-1, 1, 1, 1), x.flip(-1), x), y


class Cutout(Augmentation):
    """A random rectangle of the image becomes black (DeVries and Taylor 2017; Zhong et al., AAAI 2020).

    Its sides are to each other as 0.3 to 3.3, drawn from the logarithm, as in torchvision's `RandomErasing`.
    """

    name: str = "cutout"
    probability: Fraction = 0.5
    """Probability that there is a rectangle."""
    share: tuple[Fraction, Fraction] = (0.02, 0.33)
    """Least and largest part of the image's area."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        x = x.clone()
        for image in x:
            image[(..., *self._rectangle(*x.shape[-2:]))] = 0.0
        return x, y

    def _rectangle(self, height: int, width: int) -> tuple[slice, slice]:
        """Draws rows and columns; none of them if there is no rectangle, or ten of them were too large."""

        def uniform(least: float, most: float) -> float:
            return torch.empty(1).uniform_(least, most).item()

        if torch.rand(1) < self.probability:
            for _ in range(10):
                area = height * width * uniform(*self.share)
                ratio = torch.tensor(uniform(*torch.tensor([0.3, 3.3]).log().tolist())).exp().item()
                rows, columns = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
                if rows < height and columns < width:
                    top = int(torch.randint(0, height - rows + 1, (1,)))
                    left = int(torch.randint(0, width - columns + 1, (1,)))
                    return slice(top, top + rows), slice(left, left + columns)
        return slice(0), slice(0)


class ImageAugmentation(Augmentation):
    """A transform of colours by torchvision, drawn for each image."""

    @abstractmethod
    def transform(self, v2: Any) -> Any:
        """Returns the transform, a function from an image to an image. v2: `torchvision.transforms.v2`."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        from torchvision.transforms import v2

        transform = self.transform(v2)
        return torch.stack([transform(image) for image in x]), y


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

    def transform(self, v2: Any) -> Any:
        return v2.ColorJitter(self.brightness, self.contrast, self.saturation, self.hue)


class RandAugment(ImageAugmentation):
    """Some transforms in a row, drawn from a list of fourteen (Cubuk et al., CVPR workshops 2020)."""

    with_places: ClassVar[bool] = False

    name: str = "rand_augment"
    operations: Count = 2
    """Transforms in a row."""
    magnitude: Annotated[int, Field(ge=0, le=30)] = 9
    """How strong they are."""

    def transform(self, v2: Any) -> Any:
        steps = v2.RandAugment(self.operations, self.magnitude)
        return lambda image: steps(image.mul(255).round().to(torch.uint8)).to(torch.float32) / 255


class MixUp(Augmentation):
    """Means of pairs of samples, and of their labels (Zhang et al., mixup, ICLR 2018)."""

    needs: ClassVar[str | None] = "labels"
    with_places: ClassVar[bool] = False

    name: str = "mixup"
    alpha: Positive = 0.2
    """Both parameters of the Beta distribution that the weight of a pair is drawn from."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        from torchvision.transforms import v2

        mixed: tuple[Tensor, Tensor] = v2.MixUp(alpha=self.alpha, num_classes=classes)(x, y)
        return mixed


class AugmentFunction(Augmentation):
    """A custom function, for any inputs, such as text and tables; "my_module:change" is short for it."""

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


def _of_pixels(x: Tensor, y: Tensor) -> bool:
    """Whether labels are those of the images' pixels, (n, height, width)."""
    return y.ndim == 3 and y.shape[1:] == x.shape[-2:]


AUGMENTATIONS: tuple[type[Augmentation], ...] = (
    *(Crop, Flip, ColorJitter, Cutout, RandAugment, MixUp),
    AugmentFunction,
)
