"""Image classifiers of timm."""

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


class Timm(ModelPart):
    """An image classifier of timm, chosen by its name."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str = "timm"
    model: Annotated[str, Field(examples=["resnet18"])]
    """Name of the network in timm, such as vit_base_patch16_224."""
    weights: str | None = None
    """Path of a local .safetensors, .pth or .pt file with initial weights; a head of another shape is left out. null:
    random initial weights."""
    image_size: Pixels | None = None
    """Height and width, in pixels, that images are resized to on the device. null: they are not resized."""

    def reads(self) -> tuple[str, ...]:
        return (self.weights,) if self.weights else ()

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Builds timm's module, with its parameter names. Images of one channel are repeated to three."""
        import timm

        from raysim.models.pretrained import prepared

        channels, height, width = image_shape(shape)
        if not timm.is_model(self.model):
            raise BadValue(
                f"must be a model of timm, got {self.model!r}; nearest are {nearest(self.model, timm.list_models())}",
                "model",
            )
        config = timm.get_pretrained_cfg(self.model)
        # Most transformers are made for one size of images.
        fixed = config is not None and config.fixed_input_size
        seen = (height, width) if self.image_size is None else (self.image_size, self.image_size)
        module: nn.Module = timm.create_model(
            self.model, pretrained=False, num_classes=num_classes, **({"img_size": seen} if fixed else {})
        )
        return prepared(module, self.weights, channels, self.image_size)
