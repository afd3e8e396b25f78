"""Transforms that send fewer bits of each number."""

from typing import Annotated, Literal

from pydantic import Field

from raysim.terms import Record, Tensor
from raysim.uplink.memory import Remembering
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint


class Half(Uplink):
    """Sends numbers in 16 bits."""

    name: str = "half"
    type: Literal["bfloat16", "float16"] = "bfloat16"
    """bfloat16 has the range of float32, and float16 more digits."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        import torch

        rounded = vector.to(getattr(torch, self.type)).to(vector.dtype)
        return Decoded(vector if torch.equal(rounded, vector) else rounded)

    def size(self, before: Size) -> Size:
        return before._replace(value_bits=16)


class Quantise(Uplink):
    """Sends whole multiples of max |u| / (2^(bits - 1) - 1), and that scale."""

    name: str = "quantise"
    bits: Annotated[int, Field(ge=2, le=16)] = 8
    """Bits of each number."""
    stochastic: bool = True
    """Whether numbers are rounded up or down at random, so that their mean is right; else to the nearest multiple."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        import torch

        drawn = torch.rand(len(vector), generator=at.draw).to(vector.device) if self.stochastic else None
        return Decoded(self.quantised(vector, drawn))

    def quantised(self, vector: Tensor, drawn: Tensor | None) -> Tensor:
        """Returns a vector as it is decoded. drawn: uniform from 0 to 1, for each number; None: to the nearest."""
        most = 2 ** (self.bits - 1) - 1
        scale = vector.abs().max() / most if len(vector) else vector.sum()
        if not scale:
            return vector
        multiples = vector / scale
        rounded = multiples.round() if drawn is None else (multiples + drawn).floor()
        return rounded.clamp(-most, most) * scale

    def size(self, before: Size) -> Size:
        return before._replace(value_bits=self.bits, other_bits=before.other_bits + 32)


class Sign(Remembering):
    """Sends the sign of each number, of which 0 has that of 1, and one scale (signSGD; EF-sign with `memory: ef14`)."""

    name: str = "sign"
    scale: Literal["mean", "none"] = "mean"
    """mean: signs are multiplied by the mean of |u|, which travels in 32 bits. none: what is decoded is 1 and -1."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        import torch

        scale = vector.abs().mean() if self.scale == "mean" else torch.ones_like(vector[:1])
        return Decoded(torch.where(vector.isnan(), vector, torch.where(vector < 0, -scale, scale)))  # NaN shows

    def size(self, before: Size) -> Size:
        return before._replace(value_bits=1, other_bits=before.other_bits + (32 if self.scale == "mean" else 0))
