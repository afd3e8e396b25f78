"""Transforms of what clients send. To add one, put it into `UPLINKS`."""

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raysim.clients.uplink import Decoded, Size, Uplink, UplinkPoint
from raysim.parts.part import Count, OneOf, Positive
from raysim.terms import Record, Tensor

PositiveShare = Annotated[float, Field(gt=0, le=1)]


class NormBound(Uplink):
    """Shortens vectors that are longer than a bound: u min(1, max / |u|)."""

    kind: ClassVar[Literal["bound", "noise", "codec"]] = "bound"

    name: str = "clip_norm"
    max: Positive
    """Largest l2 norm."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        norm = vector.norm()
        return Decoded(vector * (self.max / norm) if norm > self.max else vector)


class Remembering(Uplink):
    """A transform that may have a memory of what is cut off. A subclass adds its `name`."""

    memory: Literal["none", "ef14"] = "none"
    """ef14: what this transform and the codecs after it cut off is added to the client's next update, or the peer's
    next message (Seide et al. 2014; Karimireddy et al. 2019). none: it is lost."""

    @property
    def remembers(self) -> bool:
        return self.memory != "none"


class Sparse(Remembering):
    """A transform that sends some numbers of a vector; the others are zero. A subclass adds its `name`."""

    share: Annotated[PositiveShare | None, Field(examples=[0.1])] = None
    """Share of the numbers that are sent, rounded down, and at least one."""
    k: Count | None = None
    """How many numbers are sent, in place of `share`."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.share is None) == (self.k is None):
            got = "none of them" if self.k is None else "both"
            raise ValueError(f"must have one of share and k, got {got}; set share, for example to 0.1")
        return self

    def number(self, length: int) -> int:
        """Returns how many of so many numbers are sent."""
        return min(self.k, length) if self.k is not None else max(1, math.floor((self.share or 1.0) * length))


class TopNumbers(Sparse):
    """Sends the largest numbers of a vector, by their absolute values; of equal ones, the first."""

    name: str = "top_k"
    index: Literal["bits", "int32", "bitmap"] = "bits"
    """How their places travel. bits: as few bits each as they need. int32: 32 bits each. bitmap: one bit for each
    number of the vector."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        import torch

        if (k := self.number(len(vector))) >= len(vector):
            return Decoded(vector)
        sizes = vector.abs()
        largest = torch.topk(sizes, k).values
        if largest[0].isnan():
            return Decoded(vector)  # so that it shows
        chosen = sizes > largest[-1]
        equal = (sizes == largest[-1]).nonzero().flatten()
        chosen[equal[: k - int(chosen.sum())]] = True
        return Decoded(torch.where(chosen, vector, 0.0))

    def size(self, before: Size) -> Size:
        if (k := self.number(before.length)) >= before.length:
            return before
        bits = {"bits": k * math.ceil(math.log2(before.length)), "int32": 32 * k, "bitmap": before.length}
        return before._replace(values=min(k, before.values), other_bits=before.other_bits + bits[self.index])


class RandomNumbers(Sparse):
    """Sends numbers at places that are drawn anew for each update, which travel as a seed of 64 bits."""

    name: str = "random_k"
    scaled: bool = True
    """Whether what is sent is multiplied by n / k, for n numbers of which k are sent, so that its mean is right. Must
    be false with a memory, which would grow without end."""

    @model_validator(mode="after")
    def _shortens(self) -> Self:
        if self.remembers and self.scaled:
            text = "a memory adds next time what was multiplied too much, and grows without end; set scaled to false"
            raise ValueError(f"must not have both scaled and memory: {self.memory}, for {text}")
        return self

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        import torch

        if (k := self.number(len(vector))) >= len(vector):
            return Decoded(vector)
        places = torch.randperm(len(vector), generator=at.draw)[:k].to(vector.device)
        sent = torch.zeros_like(vector)
        sent[places] = vector[places] * (len(vector) / k if self.scaled else 1.0)
        return Decoded(sent)

    def size(self, before: Size) -> Size:
        if (k := self.number(before.length)) >= before.length:
            return before
        return before._replace(values=min(k, before.values), other_bits=before.other_bits + 64)


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


UPLINKS: tuple[type[Uplink], ...] = (NormBound, TopNumbers, RandomNumbers, Half, Quantise, Sign)
AnUplink = Annotated[Uplink, OneOf(UPLINKS, "raysim.uplink")]
