"""Convolutional networks for small images."""

from collections import OrderedDict
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from raysim.models.part import ModelPart, WidthDivisor, image_shape
from raysim.parts.errors import BadValue
from raysim.parts.lazy import nn
from raysim.parts.part import Count
from raysim.terms import Inputs, TorchModule

RESNET_BLOCKS = {14: (2, 2, 2), 20: (3, 3, 3), 34: (5, 6, 5)}
RESNET_WIDTHS = (64, 128, 256)


class CNN(ModelPart):
    """Convolutions with ReLU and 2 x 2 max-pooling, one hidden dense layer, and the head; by default that of FedAvg.

    McMahan, Moore, Ramage, Hampson, Aguera y Arcas, Communication-efficient learning of deep networks from
    decentralized data, AISTATS 2017, section 3. On 28 x 28 images with one channel it has 582,026 parameters or, with
    `padding: same`, the 1,663,370 that the paper prints.

    The small CNN of Feddle (three convolutions, one pooling layer and two dense ones, on 32 x 32 images) is `channels:
    [32, 64, 64], kernel: 3, padding: same, hidden: 64`, which has 122,570 parameters on three channels. Feddle's paper
    does not print widths and strides. With those above, and pooling after each convolution, training on the server's
    samples alone gives the published accuracy.
    """

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
            text = f"images must be large enough to leave a pixel after {len(self.channels)} convolutions"
            raise BadValue(f"{text}, got {shape!r}; use padding: same, a smaller kernel or fewer channels")
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


class FedFADMMCNN(ModelPart):
    """The CNN of FedF-ADMM, from Table III of its paper: two convolutions with channel LayerNorm and dropout.

    "Same" padding and the two poolings follow from the parameter counts of the table's rows, which sum to 1,663,562 on
    Fashion-MNIST (the printed total, 1,663,432, is not their sum) and 2,156,682 on CIFAR-10. The paper does not print
    the order of normalisation, ReLU, pooling and dropout; here it is the usual one.
    """

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str = "fedf_admm_cnn"

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers conv1, norm1, conv2, norm2, hidden and head, with torch's default initial values."""
        from raysim.models.layers import ChannelLayerNorm

        planes, height, width = image_shape(shape, least=4)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for i, channels in enumerate((32, 64), start=1):
            layers[f"conv{i}"] = nn.Conv2d(planes, channels, 5, padding="same")
            layers[f"norm{i}"] = ChannelLayerNorm(channels)
            layers[f"pool{i}"] = nn.MaxPool2d(2)
            layers[f"relu{i}"] = nn.ReLU()  # ReLU after pooling gives equal results with a quarter of the work
            layers[f"dropout{i}"] = nn.Dropout(0.4)
            planes = channels
        layers["flatten"] = nn.Flatten()
        layers["hidden"] = nn.Linear(planes * (height // 4) * (width // 4), 512)
        layers["relu"] = nn.ReLU()
        layers["dropout"] = nn.Dropout(0.2)
        layers["head"] = nn.Linear(512, num_classes)
        return nn.Sequential(layers)


class ResNet(ModelPart):
    """A residual network for small images: three groups of blocks, two hidden layers, and the head.

    Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: harnessing compact global
    representations to enhance personalization, CIKM 2024, section 5.1. The paper names depths and the dense layers;
    groups and widths are those of the authors' code for CIFAR-10. For FEMNIST the authors' network has four groups, of
    32 to 256 channels, and for CIFAR-100 it has other numbers of blocks, such as (3, 5, 8); here one is for all.
    """

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str = "resnet"
    personal: tuple[str, ...] = ("head",)
    depth: Literal[14, 20, 34] = 20
    """Number of convolutions plus one. The networks have about 2.8, 4.4 and 7.8 million parameters."""
    width_divisor: WidthDivisor = 1
    """Divides the numbers of channels and hidden units, for a network that is faster than the paper's."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers conv, norm, group1 to group3, hidden1, hidden2, norm2 and head, with torch's initial values."""
        from raysim.models.layers import ResidualBlock, conv3x3, dense_layers

        planes, _, _ = image_shape(shape)
        widths = [width // self.width_divisor for width in RESNET_WIDTHS]
        inputs = widths[0]
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv=conv3x3(planes, inputs), relu=nn.ReLU(), norm=nn.BatchNorm2d(inputs)
        )
        for group, (blocks, width) in enumerate(zip(RESNET_BLOCKS[self.depth], widths, strict=True), start=1):
            first, others = ResidualBlock(inputs, width), [ResidualBlock(width, width) for _ in range(blocks - 1)]
            layers[f"group{group}"] = nn.Sequential(first, *others)
            inputs = width
        layers |= OrderedDict(pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten())
        return nn.Sequential(layers | dense_layers(inputs, num_classes, nn.ReLU, self.width_divisor))
