"""Universal Transformers for sequences of tokens (Dehghani, Gouws, Vinyals, Uszkoreit, Kaiser, ICLR 2019)."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Dropout = Callable[[float], nn.Module]


class Layer(nn.Module):
    """A transformer layer: causal self-attention, then two dense layers with GELU, each with a norm and a shortcut.

    Input and output are (B, T, width). spread: the variance of the initial weights times their number of inputs. kind:
    makes a dropout layer.
    """

    def __init__(self, width: int, heads: int, spread: float, dropout: float, kind: Dropout) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout1, self.dropout2 = kind(dropout), kind(dropout)
        for linear in (self.qkv, self.out, self.wide, self.narrow):
            nn.init.normal_(linear.weight, std=math.sqrt(spread / linear.in_features))
            nn.init.zeros_(linear.bias)

    def forward(self, h: Tensor) -> Tensor:
        h = h + self.dropout1(self.attention(self.norm1(h)))
        dense = self.narrow(F.gelu(self.wide(self.norm2(h)), approximate="tanh"))
        return h + self.dropout2(dense)  # type: ignore[no-any-return]

    def attention(self, x: Tensor) -> Tensor:
        """Attends from each token to itself and earlier ones."""
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        # torch's fused attention takes a third of the time, but its gradients vary from run to run. A fixed point is
        # found without gradients.
        attend = explicit_attention if torch.is_grad_enabled() else fused_attention
        return self.out(attend(q, k, v).transpose(1, 2).reshape(batch, length, width))  # type: ignore[no-any-return]


def explicit_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Returns causal attention, softmax(q k^T / sqrt(d)) v of earlier tokens. All are (B, heads, T, d)."""
    later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(later, -torch.inf)
    return scores.softmax(-1) @ v


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Returns the same as `explicit_attention`, to rounding, faster."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Block(nn.Module):
    """g(z, x) of z and x (B, T, width): layers, each of which gets x added to its input, then a norm."""

    def __init__(self, layers: list[Layer], norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        for layer in self.layers:
            z = layer(z + x)
        out: Tensor = self.norm(z)
        return out


class FromZeros(nn.Module):
    """Applies g once, as g(0, x). This makes an explicit network of the layers that an equilibrium network iterates."""

    def __init__(self, g: nn.Module) -> None:
        super().__init__()
        self.g = g

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.g(torch.zeros_like(x), x)
        return out


class LanguageModel(nn.Module):
    """A language model: from tokens (B, T), int64, to logits (B, T, vocabulary) of the token after each.

    body: from embedded tokens x (B, T, width) to z of that shape. last: from z and x to what the head reads.
    positions_in_last: whether the x of the last block holds the positions, too.
    """

    def __init__(
        self, vocabulary: int, length: int, width: int, body: nn.Module, last: nn.Module, positions_in_last: bool = True
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(length, width))
        for table in (self.embedding.weight, self.positions):
            nn.init.normal_(table, std=0.02)
        self.body = body
        self.last = last
        self.head = nn.Linear(width, vocabulary)
        self.positions_in_last = positions_in_last

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = self.embedding(tokens)
        x = embedded + self.positions
        logits: Tensor = self.head(self.last(self.body(x), x if self.positions_in_last else embedded))
        return logits
