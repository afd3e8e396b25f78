"""Transformers for text.

Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: harnessing compact global
representations to enhance personalization, CIKM 2024, section 5.1; layers, widths, dropout and initial values are those
of the authors' code.
"""

import math
from functools import partial
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from raysim.models.deq import DEQ
from raysim.models.part import ModelPart
from raysim.models.solver import Start
from raysim.parts.errors import BadValue
from raysim.parts.part import Count
from raysim.terms import Inputs, TorchModule


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
        from raysim.models.widths import share_of

        units = self.heads * share_of(self.width // self.heads, width)
        return self.model_copy(update={"width": units}).build(shape, num_classes)


class Transformer(TextModel):
    """A causal transformer for text, with the embedded tokens injected into each layer: Transformer-8 of FeDEQ.

    No two layers share weights.
    """

    name: str = "transformer"
    layers: Annotated[int, Field(ge=2)] = 8
    """Number of layers; the last one, with the final norm, is a block of its own, `last`."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds parts embedding, positions, body, last and head. shape: (tokens,); num_classes: the vocabulary."""
        from torch import nn

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
        from torch import nn

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
