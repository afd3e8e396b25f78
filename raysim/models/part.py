"""The base of the models that a scenario file can name, and models of dense layers. Importing it, or any model, does
not load torch."""

import math
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable
from typing import ClassVar, Literal, get_args

from raysim.models.lora import Lora
from raysim.parts.errors import BadValue, Problem
from raysim.parts.lazy import nn, torch
from raysim.parts.part import Count, Part
from raysim.terms import Inputs, TorchModule

WidthDivisor = Literal[1, 2, 4, 8]
"""How many times narrower than in its paper a network is. Its group normalisation has eight groups."""

Norm = Literal["average", "local", "frozen"]
"""How normalisation layers are treated: see `ModelPart.norm`."""


class ModelPart(Part):
    """A model, which builds a module that takes a batch (B, *shape) of floats or, for text, of int64 tokens.

    A subclass adds its `name`.
    """

    takes: ClassVar[tuple[Inputs, ...]] = get_args(Inputs)
    """What inputs it can take."""
    channels_last: ClassVar[bool] = True
    """Whether images and the weights of convolutions are kept in channels-last memory format, which is faster."""
    normalises: ClassVar[bool] = True
    """Whether it has normalisation layers, or may have some, which is then known once it is built."""

    wider: ClassVar[bool] = False
    """Whether it may have more outputs than there are labels, such as for tokens that the data do not hold."""

    name: str
    personal: tuple[str, ...] = ()
    """The parameters that stay with each client and are not shared: first components of their names, such as [head], or
    patterns, such as ["*lora_B*"]. []: none."""
    frozen: tuple[str, ...] = ()
    """The parameters that are neither trained nor sent, chosen as in `personal`. []: none but those that are
    made so."""
    lora: Lora | None = None
    """Low-rank adaptation: only adapters and the head are trained and sent. null: all weights are."""
    norm: Norm = "average"
    """How normalisation layers are treated, such as BatchNorm. average: their parameters and statistics are shared like
    all others. local: both stay with each client, as `personal` parameters do; fedper is then FedBN. frozen: both stay
    as they are, and training normalises as evaluation does."""

    @property
    def embeds_at(self) -> str | None:
        """Name of the sub-module whose input is the embedding of a sample; None: the personal part or, without one,
        the last linear layer."""
        return None

    def reads(self) -> Iterable[str]:
        """Returns the files and folders that are read: those of `weights` and `path`, if the model has these keys."""
        return [path for key in ("weights", "path") if (path := getattr(self, key, None))]

    def problems(self) -> Iterable[Problem]:
        """Yields what is wrong with the model whatever the data are. Paths start at the scenario."""
        return ()

    @abstractmethod
    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Returns a new module, initialised from the global generators, which `initialise` seeds before.

        shape: the shape of one input: (channels, height, width) of an image, (features,), or (tokens,) of text; a dict
        of the shapes of arrays by name, where the model `takes` named ones. The module returns logits (B, num_classes)
        or, for text, (B, tokens, num_classes). Raises ValueError if the model cannot take such inputs.
        """

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Returns a module whose hidden layers have ceil(width * n) of n units. The other arguments are those of
        `build`.

        By default, the layers of what that returns are cut. Raises ValueError, which names the layer, if that cannot
        be.
        """
        from raysim.models.widths import narrowed

        return narrowed(self.build(shape, num_classes), width)


def share_of(units: int, width: float) -> int:
    """Returns how many of so many units a layer has at a width, a share: ceil(width * units)."""
    return max(1, math.ceil(round(units * width, 6)))  # 0.07 * 100 is a little above 7


def image_shape(shape: tuple[int, ...], least: int = 1) -> tuple[int, int, int]:
    """Returns the shape if it is an image's (channels, height, width), whose sides have at least so many pixels.

    Raises ValueError if it is not."""
    if len(shape) != 3:
        raise BadValue(f"inputs must be images (channels, height, width), got shape {shape!r}; try mlp")
    if min(shape[1:]) < least:
        raise BadValue(f"images must have at least {least} x {least} pixels, got shape {shape!r}")
    return shape[0], shape[1], shape[2]


class Vector(ModelPart):
    """A single vector x, for the quadratic data set; its output is the loss itself, for checking algorithms by hand."""

    takes: ClassVar[tuple[Inputs, ...]] = ("functions",)
    normalises: ClassVar[bool] = False

    name: str = "vector"
    start: tuple[float, ...] | float = 0.0
    """The initial x, or the initial value of all its elements."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds a module with one parameter `x` (size,). It takes rows [a, s, h] (B, 2 size + 1) and returns (B,).

        The output is h/2 |x - a|^2 + <s, x>. num_classes is not used.
        """
        from raysim.models.layers import QuadraticLoss

        if len(shape) != 1 or shape[0] < 3 or shape[0] % 2 == 0:
            text = f"inputs must be rows [a, s, h] of 2 size + 1 floats, got shape {shape!r}"
            raise BadValue(f"{text}; use it with the quadratic data set")
        size = shape[0] // 2
        start = self.start if isinstance(self.start, tuple) else (self.start,) * size
        if len(start) != size:
            text = f"must have as many values as the data's vectors, which is {size}, got {len(start)}: {start!r}"
            raise BadValue(text, "start")
        return QuadraticLoss(torch.tensor(start))


class Linear(ModelPart):
    """A single linear layer: linear regression, or softmax regression where there are labels."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series", "volumes")
    normalises: ClassVar[bool] = False

    name: str = "linear"
    bias: bool = False
    """Whether the layer has a bias."""
    start: Literal["zeros", "random"] = "zeros"
    """Initial values of the weights: zeros, or torch's default random ones."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the layer `head`, on flattened inputs."""
        head = nn.Linear(math.prod(shape), num_classes, bias=self.bias)
        if self.start == "zeros":
            for parameter in head.parameters():
                nn.init.zeros_(parameter)
        return nn.Sequential(OrderedDict(flatten=nn.Flatten(), head=head))


class MLP(ModelPart):
    """A multilayer perceptron on flattened inputs."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series", "volumes")
    normalises: ClassVar[bool] = False

    name: str = "mlp"
    hidden: tuple[Count, ...] = (200,)
    """Widths of the hidden layers; [] gives softmax regression."""
    activation: Literal["relu", "tanh", "gelu"] = "relu"
    """Activation after each hidden layer."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers hidden1, hidden2, ... and head, with torch's default initial values."""
        activation = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}[self.activation]
        layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
        width = math.prod(shape)
        for i, units in enumerate(self.hidden, start=1):
            layers[f"hidden{i}"] = nn.Linear(width, units)
            layers[f"{self.activation}{i}"] = activation()
            width = units
        layers["head"] = nn.Linear(width, num_classes)
        return nn.Sequential(layers)
