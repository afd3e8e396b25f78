"""The convolutional network of FedF-ADMM, from Table III of its paper.

"Same" padding and the two poolings follow from the parameter counts of the table's rows, which sum to 1,663,562 on
Fashion-MNIST (the printed total, 1,663,432, is not their sum) and 2,156,682 on CIFAR-10. The paper does not print the
order of normalisation, ReLU, pooling and dropout; here it is the usual one.
"""

from collections import OrderedDict
from typing import ClassVar

from raysim.models.part import ModelPart, image_shape
from raysim.parts.errors import BadValue
from raysim.terms import Inputs, TorchModule


class FedFADMMCNN(ModelPart):
    """The CNN of FedF-ADMM, Table III: two convolutions with channel LayerNorm and dropout."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str = "fedf_admm_cnn"

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers conv1, norm1, conv2, norm2, hidden and head, with torch's default initial values."""
        from torch import nn

        from raysim.models.layers import ChannelLayerNorm

        planes, height, width = image_shape(shape)
        if min(height, width) < 4:
            raise BadValue(f"images must have at least 4 x 4 pixels, got {shape!r}")
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
