"""Image classifiers of torchvision and timm."""

from abc import abstractmethod
from collections.abc import Collection
from typing import Annotated, Any, ClassVar

from pydantic import Field

from raysim.models.names import nearest
from raysim.models.part import ModelPart, image_shape, share_of
from raysim.parts.errors import BadValue
from raysim.parts.part import Pixels
from raysim.terms import Inputs, TorchModule


class ImageClassifier(ModelPart):
    """The base of networks of a library, chosen by their names there."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images",)

    name: str
    model: str
    weights: str | None = None
    """Path of a local .safetensors, .pth or .pt file with initial weights; a head of another shape is left out. null:
    random initial weights."""
    image_size: Pixels | None = None
    """Height and width, in pixels, that images are resized to on the device. null: they are not resized."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the library's module, with its parameter names. Images of one channel are repeated to three."""
        return self.build_at(1.0, shape, num_classes)

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        from raysim.models.pretrained import prepared

        channels, *sides = image_shape(shape)
        high, wide = (self.image_size or side for side in sides)
        module = self.made(high, wide, num_classes)
        if width == 1:
            return prepared(module, self.weights, channels, self.image_size)
        return prepared(self.narrower(module, width), None, channels, self.image_size)

    def narrower(self, module: TorchModule, width: float) -> TorchModule:
        """Returns the library's module with narrower layers."""
        from raysim.models.widths import narrowed

        return narrowed(module, width)

    @abstractmethod
    def made(self, height: int, width: int, num_classes: int) -> TorchModule:
        """Returns the library's module for images of this size."""

    def require_known(self, what: str, known: Collection[str]) -> None:
        """Raises ValueError unless the library has the model. what: what it must be."""
        if self.model not in known:
            raise BadValue(f"must be a {what}, got {self.model!r}; nearest are {nearest(self.model, known)}", "model")


class Torchvision(ImageClassifier):
    """An image classifier of torchvision, chosen by its name."""

    name: str = "torchvision"
    model: Annotated[str, Field(examples=["resnet18"])]
    """Name of the network in torchvision, such as resnet18."""

    def made(self, height: int, width: int, num_classes: int) -> TorchModule:
        from torchvision import models

        # These two return a tuple of outputs in training.
        self.require_known("classifier of torchvision", {*models.list_models(models)} - {"googlenet", "inception_v3"})
        # Vision transformers are made for one size of images.
        size = {"image_size": height} if self.model.startswith("vit_") else {}
        module: TorchModule = models.get_model(self.model, weights=None, num_classes=num_classes, **size)
        return module

    def narrower(self, module: TorchModule, width: float) -> TorchModule:
        from torchvision.models import VisionTransformer

        if not isinstance(module, VisionTransformer):
            return super().narrower(module, width)
        heads = module.encoder.layers[0].num_heads
        narrow: TorchModule = VisionTransformer(
            module.image_size,
            module.patch_size,
            len(module.encoder.layers),
            heads,
            heads * share_of(module.hidden_dim // heads, width),
            share_of(module.mlp_dim, width),
            module.dropout,
            module.attention_dropout,
            module.num_classes,
        )
        return narrow


class Timm(ImageClassifier):
    """An image classifier of timm, chosen by its name."""

    name: str = "timm"
    model: Annotated[str, Field(examples=["resnet18"])]
    """Name of the network in timm, such as vit_base_patch16_224."""

    def made(self, height: int, width: int, num_classes: int) -> TorchModule:
        import timm

        if not timm.is_model(self.model):  # which knows names with tags, too
            self.require_known("model of timm", timm.list_models())
        config = timm.get_pretrained_cfg(self.model)
        # Most transformers are made for one size of images.
        size: dict[str, Any] = {"img_size": (height, width)} if config and config.fixed_input_size else {}
        module: TorchModule = timm.create_model(self.model, pretrained=False, num_classes=num_classes, **size)
        return module
