"""A plain convolutional network, by default that of federated averaging.

McMahan, Moore, Ramage, Hampson, Aguera y Arcas, Communication-efficient learning of deep networks from decentralized
data, AISTATS 2017, section 3. It has 582,026 parameters on 28 x 28 images with one channel, and the 1,663,370 that the
paper prints with `padding: same`.

The small CNN of Feddle (three convolutions, one pooling layer and two dense ones, on 32 x 32 images; widths and strides
are not printed, and these are ours) is `channels: [32, 64, 64], kernel: 3, stride: 2, padding: same, pool: last,
hidden: 128`, of 90,506 parameters on three channels.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from raysim.models.part import ModelPart, image_shape
from raysim.part import Count

if TYPE_CHECKING:
    from torch import nn


class CNN(ModelPart):
    """Convolutions with ReLU and 2 x 2 max-pooling, one hidden dense layer, and the head."""

    name: str = "cnn"
    channels: Annotated[tuple[Count, ...], Field(min_length=1)] = (32, 64)
    """Of the convolutions."""
    kernel: Count = 5
    """Side of the convolutions' kernels, in pixels."""
    stride: Count = 1
    """Of the convolutions."""
    hidden: Count = 512
    """Units of the dense layer."""
    padding: Literal["valid", "same"] = "valid"
    pool: Literal["each", "last"] = "each"
    """The convolutions that are followed by pooling."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Layers conv1, conv2, ..., hidden and head, with torch's default initial values."""
        from torch import nn

        planes, height, width = image_shape(self.name, shape)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for i, channels in enumerate(self.channels, start=1):
            layers[f"conv{i}"] = nn.Conv2d(planes, channels, self.kernel, self.stride, self._border)
            planes = channels
            height, width = (self._after(side) for side in (height, width))
            if self.pool == "each" or i == len(self.channels):
                layers[f"pool{i}"] = nn.MaxPool2d(2)
                height, width = height // 2, width // 2
            layers[f"relu{i}"] = nn.ReLU()  # after pooling: the same function, of a quarter of the values
        if min(height, width) < 1:
            raise ValueError(
                f"model cnn: images must be large enough to leave a pixel after {len(self.channels)} convolutions, "
                f"got {shape!r}; use padding: same, a smaller kernel or fewer channels"
            )
        layers["flatten"] = nn.Flatten()
        layers["hidden"] = nn.Linear(planes * height * width, self.hidden)
        layers["relu"] = nn.ReLU()
        layers["head"] = nn.Linear(self.hidden, num_classes)
        return nn.Sequential(layers)

    @property
    def _border(self) -> int | Literal["same"]:
        """Zeros around the image; torch knows no `same` with strides."""
        if self.padding == "valid":
            return 0
        return "same" if self.stride == 1 else self.kernel // 2

    def _after(self, side: int) -> int:
        """A side of what a convolution gives."""
        border = self._border
        return side if border == "same" else (side + 2 * border - self.kernel) // self.stride + 1
