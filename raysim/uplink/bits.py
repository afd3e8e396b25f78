"""Transforms that send 16 bits of each number, or one."""

from typing import Literal

from raysim.parts.errors import BadValue
from raysim.parts.lazy import torch
from raysim.terms import Record, Tensor
from raysim.uplink.memory import Remembering
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint


class Half(Uplink):
    """Sends numbers in 16 bits."""

    name: str = "half"
    type: Literal["bfloat16", "float16"] = "bfloat16"
    """bfloat16 has the range of float32. float16 has more digits, but ends at 65,504; a run with larger numbers stops
    with an error."""
    buffers: bool = False
    """Whether BatchNorm's statistics are sent so, too."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        rounded = vector.to(getattr(torch, self.type)).to(vector.dtype)
        if self.type == "float16" and bool((rounded.isinf() & vector.isfinite()).any()):
            most = float(vector[vector.isfinite()].abs().max())
            text = f"float16 ends at 65,504, got {most:g}; take bfloat16"
            raise BadValue(f"must have room for all numbers that half sends, and {text}", "type")
        return Decoded(vector if torch.equal(rounded, vector) else rounded)

    def size(self, before: Size) -> Size:
        return before._replace(value_bits=16)

    def stretch(self, length: int) -> float | None:
        return 1 + 2**-8 if self.type == "bfloat16" else 2.0  # of the smallest numbers of float16


class Sign(Remembering):
    """Sends the sign of each number, of which 0 has that of 1, and one scale (signSGD; EF-sign with `memory: ef14`).

    After top_k or random_k it sends the signs of the numbers that these leave, as sparse ternary compression does.
    """

    name: str = "sign"
    scale: Literal["mean", "none"] = "mean"
    """mean: signs are multiplied by the mean of |u|, which travels in 32 bits. none: what is decoded is 1 and -1."""

    @property
    def contracts(self) -> bool:
        return self.scale == "mean"

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        if at.size.values < at.size.length:
            number = vector.count_nonzero().clamp(min=1)
            return Decoded(vector.sign() * (vector.abs().sum() / number if self.scale == "mean" else 1.0))
        scale = vector.abs().mean() if self.scale == "mean" else torch.ones_like(vector[:1])
        return Decoded(torch.where(vector.isnan(), vector, torch.where(vector < 0, -scale, scale)))  # NaN shows

    def size(self, before: Size) -> Size:
        return before._replace(value_bits=1, other_bits=before.other_bits + (32 if self.scale == "mean" else 0))

    def stretch(self, length: int) -> float | None:
        return 1.0 if self.scale == "mean" else None
