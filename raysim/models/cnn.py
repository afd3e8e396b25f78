"""A plain convolutional network, by default that of federated averaging.

McMahan, Moore, Ramage, Hampson, Aguera y Arcas, Communication-efficient learning of deep networks from decentralized
data, AISTATS 2017, section 3. On 28 x 28 images with one channel it has 582,026 parameters or, with `padding: same`,
the 1,663,370 that the paper prints.

The small CNN of Feddle (three convolutions, one pooling layer and two dense ones, on 32 x 32 images) is `channels: [32,
64, 64], kernel: 3, padding: same, hidden: 64`, which has 122,570 parameters on three channels. Feddle's paper does not
print widths and strides. With those above, and pooling after each convolution, training on the server's samples alone
gives the published accuracy.
"""

from collections import OrderedDict
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from raysim.models.part import ModelPart, image_shape
from raysim.parts.errors import BadValue
from raysim.parts.part import Count
from raysim.terms import Inputs, TorchModule


class CNN(ModelPart):
    """Convolutions with ReLU and 2 x 2 max-pooling, one hidden dense layer, and the head."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)
    normalises: ClassVar[bool] = False

    name: str = "cnn"
    channels: Annotated[tuple[Count, ...], Field(min_length=1)] = (32, 64)
    """Number of output channels of each convolution."""
    kernel: Count = 5
    """Side of the convolutions' kernels, in pixels."""
    stride: Count = 1
    """Stride of the convolutions, in pixels."""
    hidden: Count = 512
    """Number of units of the hidden dense layer."""
    padding: Literal["valid", "same"] = "valid"
    """Padding of the convolutions. valid: none. same: zeros around the image, so that only strides make it smaller."""
    pool: Literal["each", "last"] = "each"
    """Which convolutions are followed by pooling: each one, or only the last."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers conv1, conv2, ..., hidden and head, with torch's default initial values."""
        from torch import nn

        planes, height, width = image_shape(shape)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for i, channels in enumerate(self.channels, start=1):
            layers[f"conv{i}"] = nn.Conv2d(planes, channels, self.kernel, self.stride, self._border)
            planes = channels
            height, width = (self._after(side) for side in (height, width))
            if self.pool == "each" or i == len(self.channels):
                layers[f"pool{i}"] = nn.MaxPool2d(2)
                height, width = height // 2, width // 2
            layers[f"relu{i}"] = nn.ReLU()  # ReLU after pooling gives equal results with a quarter of the work
        if min(height, width) < 1:
            raise BadValue(
                f"images must be large enough to leave a pixel after {len(self.channels)} convolutions, "
                f"got {shape!r}; use padding: same, a smaller kernel or fewer channels"
            )
        layers["flatten"] = nn.Flatten()
        layers["hidden"] = nn.Linear(planes * height * width, self.hidden)
        layers["relu"] = nn.ReLU()
        layers["head"] = nn.Linear(self.hidden, num_classes)
        return nn.Sequential(layers)

    @property
    def _border(self) -> int | Literal["same"]:
        """Zeros around the image. torch's own `same` does not work with strides."""
        if self.padding == "valid":
            return 0
        return "same" if self.stride == 1 else self.kernel // 2

    def _after(self, side: int) -> int:
        """Returns the side of a convolution's output, given that of its input."""
        border = self._border
        return side if border == "same" else (side + 2 * border - self.kernel) // self.stride + 1
