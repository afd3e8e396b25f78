"""The base of transformers for text."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from raysim.models.part import ModelPart
from raysim.parts.errors import BadValue
from raysim.parts.part import Count
from raysim.terms import Inputs


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


def text_length(shape: tuple[int, ...]) -> int:
    """Returns the number of tokens of an input of this shape. Raises ValueError if it is not text's (tokens,)."""
    if len(shape) != 1:
        raise BadValue(f"inputs must be text (tokens,), got shape {shape!r}; try cnn or mlp")
    return shape[0]
