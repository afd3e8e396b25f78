"""DEQ-Transformer, the equilibrium network of FeDEQ for text.

Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: harnessing compact global
representations to enhance personalization, CIKM 2024, section 5.1: an equilibrium block of a Universal Transformer, one
more block and a linear layer, which are personal; layers, width, dropout and initial values are those of the authors'
code.
"""

import math

from raysim.models.deq import DEQ
from raysim.models.solver import Start
from raysim.models.text_model import TextModel, text_length
from raysim.parts.part import Count
from raysim.terms import TorchModule


class DEQTransformer(TextModel, DEQ):
    """A causal transformer for text, whose layers, except the last, are repeated to a fixed point.

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
