"""Residual networks for small images, with which FeDEQ is compared.

Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: harnessing compact global
representations to enhance personalization, CIKM 2024, section 5.1. The paper names depths and the dense layers; groups
and widths are those of the authors' code for CIFAR-10. For FEMNIST the authors' network has four groups, of 32 to 256
channels, and for CIFAR-100 it has other numbers of blocks, such as (3, 5, 8); here one network serves for all.
"""

from collections import OrderedDict
from typing import ClassVar, Literal

from raysim.models.part import ModelPart, WidthDivisor, image_shape
from raysim.terms import Inputs, TorchModule

BLOCKS = {14: (2, 2, 2), 20: (3, 3, 3), 34: (5, 6, 5)}
WIDTHS = (64, 128, 256)


class ResNet(ModelPart):
    """A residual network for small images, with GroupNorm: three groups of blocks, two hidden layers, and the head."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str = "resnet"
    personal: tuple[str, ...] = ("head",)
    depth: Literal[14, 20, 34] = 20
    """Number of convolutions plus one. The networks have about 2.8, 4.4 and 7.8 million parameters."""
    width_divisor: WidthDivisor = 1
    """Divides the numbers of channels and hidden units, for a network that is faster than the paper's."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers conv, norm, group1 to group3, hidden1, hidden2, norm2 and head, with torch's initial values."""
        from torch import nn

        from raysim.models.blocks import ResidualBlock, conv3x3, dense_layers

        planes, _, _ = image_shape(shape)
        widths = [width // self.width_divisor for width in WIDTHS]
        inputs = widths[0]
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv=conv3x3(planes, inputs), relu=nn.ReLU(), norm=nn.BatchNorm2d(inputs)
        )
        for group, (blocks, width) in enumerate(zip(BLOCKS[self.depth], widths, strict=True), start=1):
            first, others = ResidualBlock(inputs, width), [ResidualBlock(width, width) for _ in range(blocks - 1)]
            layers[f"group{group}"] = nn.Sequential(first, *others)
            inputs = width
        layers |= OrderedDict(pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten())
        return nn.Sequential(layers | dense_layers(inputs, num_classes, nn.ReLU, self.width_divisor))
