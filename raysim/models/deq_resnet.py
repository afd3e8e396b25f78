"""DEQ-ResNet, the equilibrium network of FeDEQ for images.

Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: harnessing compact global
representations to enhance personalization, CIKM 2024, section 5.1; layers as in the authors' code. Without the head, S
has 984,896 parameters on 28 x 28 images with one channel, M 2,725,120 on 32 x 32 images with three.
"""

from collections import OrderedDict
from typing import ClassVar, Literal

from raysim.models.deq import DEQ
from raysim.models.part import WidthDivisor, image_shape
from raysim.parts.errors import BadValue
from raysim.terms import Inputs, TorchModule


class DEQResNet(DEQ):
    """A residual equilibrium block between two poolings, two hidden dense layers, and the head."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str = "deq_resnet"
    personal: tuple[str, ...] = ("head",)
    size: Literal["S", "M"] = "S"
    """Number of channels outside and inside the block. S: 64 and 128; M: 128 and 256."""
    width_divisor: WidthDivisor = 1
    """Divides the numbers of channels and hidden units, for a network that is faster than the paper's."""
    activation: Literal["softplus", "relu"] = "softplus"
    """Activation inside the block and outside. The paper takes softplus and, to show that it need not be smooth, relu.
    """

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers conv, norm, equilibrium, hidden1, hidden2, norm2 and head."""
        from torch import nn

        from raysim.models.blocks import ResidualCell, conv3x3, dense_layers

        planes, height, width = image_shape(shape)
        if min(height, width) < 4:
            raise BadValue(f"images must have at least 4 x 4 pixels, got shape {shape!r}")
        activation = {"softplus": nn.Softplus, "relu": nn.ReLU}[self.activation]
        channels, hidden = (n // self.width_divisor for n in {"S": (64, 128), "M": (128, 256)}[self.size])
        conv = conv3x3(planes, channels)
        nn.init.normal_(conv.weight, std=0.01)
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv=conv,
            activation=activation(),
            norm=nn.BatchNorm2d(channels),
            pool1=nn.MaxPool2d(3, stride=2, ceil_mode=True),
            equilibrium=self.equilibrium(ResidualCell(channels, hidden, activation())),
            pool2=nn.MaxPool2d(3, stride=2, ceil_mode=True),
            flatten=nn.Flatten(),
        )
        features = channels * (height // 4) * (width // 4)
        return nn.Sequential(layers | dense_layers(features, num_classes, activation, self.width_divisor))
