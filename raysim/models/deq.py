"""Transformers for text, and models with a deep equilibrium layer: infinitely deep networks with the parameters of one
layer.

The networks are those of FeDEQ: Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning:
harnessing compact global representations to enhance personalization, CIKM 2024, section 5.1.
"""

import math
from collections import OrderedDict
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raysim.models.part import ModelPart, WidthDivisor, image_shape, share_of
from raysim.models.solver import SOLVERS, Anderson, Backward, Solver, Start
from raysim.parts.errors import BadValue
from raysim.parts.lazy import nn, torch
from raysim.parts.part import Count, OneOf
from raysim.terms import Inputs, TorchModule


class DEQ(ModelPart):
    """A model with a deep equilibrium layer z = g(z, x)."""

    solver: Annotated[Solver, OneOf(SOLVERS)] = Anderson()
    """Solver that finds the fixed point."""
    backward: Backward = "jacobian_free"
    """How gradients are computed. jacobian_free: those of the last application of g alone, as in FeDEQ's paper.
    implicit: exact ones, by another solve with `solver`, as in the authors' code for text, with broyden.
    conjugate_gradient: exact ones, by conjugate gradients on the normal equations, with the authors' tolerance of
    0.001 and at most 50 iterations, as in their code for images."""
    start: Start = "injection"
    """The z at which a solve starts: zeros, or injection, which is x itself."""

    def equilibrium(self, g: TorchModule) -> TorchModule:
        """Returns the layer that finds the fixed point of g, a module of z and x."""
        from raysim.models.equilibrium import Equilibrium

        return Equilibrium(g, self.solver, self.backward, self.start)


class DEQMLP(DEQ):
    """A dense equilibrium layer z = activation(B z + C x + b), one hidden dense layer with ReLU, and the head.

    It is that of eq. (3) and figure 2 of FeDEQ's paper.
    """

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series", "volumes")

    name: str = "deq_mlp"
    personal: tuple[str, ...] = ("head",)
    width: Count = 512
    """Width of z."""
    hidden: Count = 128
    """Number of units of the hidden dense layer."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation of the equilibrium layer."""
    kappa: Annotated[float, Field(gt=0, lt=1)] | None = 0.99
    """Largest l1 norm that a row of B may have; a projection after each local step keeps it. null: no limit.

    Below 1, there is exactly one fixed point, and plain iteration finds it."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers injection (C and b), equilibrium (B is `equilibrium.g.linear`), hidden and head."""
        from raysim.models.layers import BoundedLinear, DenseCell

        if self.kappa is None:
            linear = nn.Linear(self.width, self.width, bias=False)
        else:
            linear = BoundedLinear(self.width, self.width, self.kappa)
        cell = DenseCell(linear, {"relu": torch.relu, "tanh": torch.tanh}[self.activation])
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            flatten=nn.Flatten(),
            injection=nn.Linear(math.prod(shape), self.width),
            equilibrium=self.equilibrium(cell),
            hidden=nn.Linear(self.width, self.hidden),
            relu=nn.ReLU(),
            head=nn.Linear(self.hidden, num_classes),
        )
        return nn.Sequential(layers)


class DEQResNet(DEQ):
    """A residual equilibrium block between two poolings, two hidden dense layers, and the head: FeDEQ's for images.

    Layers are those of the authors' code. Without the head, S has 984,896 parameters on 28 x 28 images with one
    channel, M 2,725,120 on 32 x 32 images with three.
    """

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
        from raysim.models.layers import ResidualCell, conv3x3, dense_layers

        planes, height, width = image_shape(shape, least=4)
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


class TextModel(ModelPart):
    """A transformer for text: from tokens (B, T), int64, to logits (B, T, vocabulary) of the token after each.

    By default, its last block and its head are personal: they stay with each client.
    """

    takes: ClassVar[tuple[Inputs, ...]] = ("text",)
    personal: tuple[str, ...] = ("last", "head")
    width: Count = 64
    """Width of the embedding; must be a multiple of `heads`."""
    heads: Count = 4
    """Number of attention heads."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Probability of dropout. In a deep equilibrium layer, all iterations of a solve use the same mask."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, got width {self.width} and {self.heads} heads")
        return self

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        units = self.heads * share_of(self.width // self.heads, width)
        return self.model_copy(update={"width": units}).build(shape, num_classes)


class Transformer(TextModel):
    """A causal transformer for text, with the embedded tokens injected into each layer: Transformer-8 of FeDEQ.

    No two layers share weights.
    """

    name: str = "transformer"
    layers: Annotated[int, Field(ge=2)] = 8
    """Number of layers; the last one, with the final norm, is a separate block, `last`."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds parts embedding, positions, body, last and head. shape: (tokens,); num_classes: the vocabulary."""
        from raysim.models.universal import Block, FromZeros, LanguageModel, Layer

        length = text_length(shape)
        layer = partial(Layer, self.width, self.heads, 2 / math.sqrt(self.layers), self.dropout, nn.Dropout)
        body = Block([layer() for _ in range(self.layers - 1)], nn.Identity())
        last = Block([layer()], nn.LayerNorm(self.width))
        return LanguageModel(num_classes, length, self.width, FromZeros(body), last)


class DEQTransformer(TextModel, DEQ):
    """A causal transformer for text, whose layers, except the last, are repeated to a fixed point: FeDEQ's for text.

    It is an equilibrium block of a Universal Transformer, one more block and a linear layer, which are personal.

    With `solver: anderson`, a mixture has one coefficient for a whole sequence, so later tokens influence, within the
    tolerance, what is found for earlier ones. With `solver: iteration` they do not.
    """

    name: str = "deq_transformer"
    start: Start = "zeros"
    layers: Count = 4
    """Number of layers of the equilibrium block; one more, `last`, follows it."""
    positions_in_last: bool = True
    """Whether the last block injects the tokens' embeddings with their positions, as the equilibrium block does.
    false: it injects them without positions, as in the authors' code."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds parts embedding, positions, body, last and head. shape: (tokens,); num_classes: the vocabulary."""
        from raysim.models.equilibrium import HeldDropout
        from raysim.models.universal import Block, LanguageModel, Layer

        length = text_length(shape)
        spread = 2 / math.sqrt(self.layers)
        repeated = [Layer(self.width, self.heads, spread, self.dropout, HeldDropout) for _ in range(self.layers)]
        body = self.equilibrium(Block(repeated, nn.LayerNorm(self.width)))
        last = Block([Layer(self.width, self.heads, 2.0, self.dropout, nn.Dropout)], nn.LayerNorm(self.width))
        return LanguageModel(num_classes, length, self.width, body, last, self.positions_in_last)


def text_length(shape: tuple[int, ...]) -> int:
    """Returns the number of tokens of an input of this shape. Raises ValueError if it is not text's (tokens,)."""
    if len(shape) != 1:
        raise BadValue(f"inputs must be text (tokens,), got shape {shape!r}; try cnn or mlp")
    return shape[0]
