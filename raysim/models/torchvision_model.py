"""Image classifiers of torchvision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from raysim.models.names import nearest
from raysim.models.part import ModelPart, image_shape
from raysim.parts.errors import BadValue
from raysim.parts.part import Pixels
from raysim.terms import Inputs

if TYPE_CHECKING:
    from torch import nn


class Torchvision(ModelPart):
    """An image classifier of torchvision, chosen by its name."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str = "torchvision"
    model: Annotated[str, Field(examples=["resnet18"])]
    """Name of the network in torchvision, such as resnet18."""
    weights: str | None = None
    """Path of a local .safetensors, .pth or .pt file with initial weights; a head of another shape is left out. null:
    random initial weights."""
    image_size: Pixels | None = None
    """Height and width, in pixels, that images are resized to on the device. null: they are not resized."""

    def reads(self) -> tuple[str, ...]:
        return (self.weights,) if self.weights else ()

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Builds torchvision's module, with its parameter names. Images of one channel are repeated to three."""
        from torchvision import models

        from raysim.models.pretrained import prepared

        channels, height, _ = image_shape(shape)
        # These two return a tuple of outputs in training.
        known = set(models.list_models(module=models)) - {"googlenet", "inception_v3"}
        if self.model not in known:
            raise BadValue(
                f"must be a classifier of torchvision, got {self.model!r}; nearest are {nearest(self.model, known)}",
                "model",
            )
        # Vision transformers are made for one size of images.
        size = {"image_size": self.image_size or height} if self.model.startswith("vit_") else {}
        module: nn.Module = models.get_model(self.model, weights=None, num_classes=num_classes, **size)
        return prepared(module, self.weights, channels, self.image_size)
