"""The Universal Transformer with explicit layers, for text.

Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: harnessing compact global
representations to enhance personalization, CIKM 2024, section 5.1: Transformer-8 with 4 heads; width, dropout and
initial values are those of the authors' code. No two layers share weights.
"""

import math
from functools import partial
from typing import Annotated

from pydantic import Field

from raysim.models.text_model import TextModel, text_length
from raysim.terms import TorchModule


class Transformer(TextModel):
    """A causal transformer for text, with the embedded tokens injected into each layer."""

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
