"""The convolutional network of FedF-ADMM, its Table III.

"Same" padding and the two poolings follow from the parameter counts of the table's rows, which sum to 1,663,562 on
Fashion-MNIST (the printed total, 1,663,432, is not their sum) and 2,156,682 on CIFAR-10. The order of normalisation,
ReLU, pooling and dropout is not printed; it is the usual one here.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from raysim.models.part import ModelPart, image_shape

if TYPE_CHECKING:
    from torch import nn


class FedFADMMCNN(ModelPart):
    """The CNN of FedF-ADMM, Table III: two convolutions with channel LayerNorm and dropout."""

    name: str = "fedf_admm_cnn"

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Layers conv1, norm1, conv2, norm2, hidden and head, with torch's default initial values."""
        from torch import nn

        from raysim.models.layers import ChannelLayerNorm

        planes, height, width = image_shape(self.name, shape)
        if min(height, width) < 4:
            raise ValueError(f"model fedf_admm_cnn: images must have at least 4 x 4 pixels, got {shape!r}")
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for i, channels in enumerate((32, 64), start=1):
            layers[f"conv{i}"] = nn.Conv2d(planes, channels, 5, padding="same")
            layers[f"norm{i}"] = ChannelLayerNorm(channels)
            layers[f"pool{i}"] = nn.MaxPool2d(2)
            layers[f"relu{i}"] = nn.ReLU()  # after pooling: the same function, of a quarter of the values
            layers[f"dropout{i}"] = nn.Dropout(0.4)
            planes = channels
        layers["flatten"] = nn.Flatten()
        layers["hidden"] = nn.Linear(planes * (height // 4) * (width // 4), 512)
        layers["relu"] = nn.ReLU()
        layers["dropout"] = nn.Dropout(0.2)
        layers["head"] = nn.Linear(512, num_classes)
        return nn.Sequential(layers)
