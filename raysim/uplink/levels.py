"""Transforms that send each number in few bits: as one of a few levels of a scale, as its sign, or in 16 bits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from raysim.parts.errors import BadValue
from raysim.parts.lazy import torch
from raysim.parts.part import Count, Positive
from raysim.terms import Record, Tensor
from raysim.uplink.uplink import Decoded, Remembering, Size, Uplink, UplinkPoint


class Scaled(Uplink):
    """A transform that sends levels of a scale. A subclass adds its `name`."""

    block: Literal["whole", "layer"] | Count = "whole"
    """What has its own scale, which travels in 32 bits: the whole vector, each layer, or each so many numbers."""

    @abstractmethod
    def bits_each(self) -> int:
        """Returns the bits of a level."""

    def size(self, before: Size) -> Size:
        bits = before.other_bits + 32 * len(self.blocks(before))
        return before._replace(value_bits=self.bits_each(), other_bits=bits)

    def blocks(self, size: Size) -> tuple[int, ...]:
        """Returns how many numbers each block of a vector has."""
        if self.block == "layer":
            return size.layers
        length = size.length
        each = length if self.block == "whole" else int(self.block)
        return (each,) * (length // each) + ((length % each,) if length % each else ()) if length else ()

    def scales(self, vector: Tensor, size: Size, measure: Callable[[Tensor], Tensor], zero: float = 1.0) -> Tensor:
        """Returns the scale of each number's block, (n,), or () of the whole vector; `zero` in place of 0.

        measure: returns the scale of each row of a tensor.
        """
        lengths = self.blocks(size)
        if len(lengths) == 1:
            found = measure(vector)
        else:
            each = lengths[0]
            alike = len(vector) // each * each if self.block != "layer" else 0
            rows = [measure(vector[:alike].view(-1, each))] if alike else []
            rest = vector[alike:].split_with_sizes(lengths[alike // each :])
            found = torch.cat([*rows, *(measure(piece)[None] for piece in rest)])
            found = found.repeat_interleave(torch.tensor(lengths, device=vector.device), output_size=len(vector))
        return found.where(found != 0, zero)


class Quantise(Scaled):
    """Sends whole multiples of max |u| / (2^(bits - 1) - 1), and that scale."""

    name: str = "quantise"
    bits: Annotated[int, Field(ge=2, le=16)] = 8
    """Bits of each number."""
    stochastic: bool = True
    """Whether numbers are rounded up or down at random, so that their mean is right; else to the nearest multiple."""
    buffers: bool = False
    """Whether BatchNorm's statistics are sent so, too, with their own scales."""

    @property
    def unbiased(self) -> bool:
        return self.stochastic

    def bits_each(self) -> int:
        return self.bits

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        return Decoded(self.quantised(vector, uniform(vector, at.draw) if self.stochastic else None, at.size))

    def quantised(self, vector: Tensor, drawn: Tensor | None, size: Size) -> Tensor:
        """Returns a vector as it is decoded. drawn: uniform from 0 to 1, for each number, which is changed in place;
        None: to the nearest."""
        most = 2 ** (self.bits - 1) - 1
        scale = self.scales(vector, size, lambda rows: largest(rows) / most)
        rounded = (vector / scale).round_() if drawn is None else drawn.addcdiv_(vector, scale).floor_()
        return rounded.clamp_(-most, most).mul_(scale)


class QSGD(Scaled):
    """Sends each number as a level of the norm, with its sign (Alistarh et al. 2017).

    There are s levels and 0. The level above |u_j|, or that below, is drawn so that the mean is right.
    Levels count in bits of equal length. What they take in the paper's code, Elias', is not known beforehand: the
    column `elias_bytes` of `updates` has it.
    """

    unbiased: ClassVar[bool] = True

    name: str = "qsgd"
    levels: Annotated[int, Field(ge=1, le=2**16 - 1)] = 255
    """Number of levels above 0 (s)."""
    norm: Literal[2, "inf"] = 2
    """Norm of a block that the levels are shares of: the l2 norm, or the largest |u|. Of a long vector, the l2 norm is
    so large that most numbers become 0: set `block`, too."""

    def bits_each(self) -> int:
        return 1 + math.ceil(math.log2(self.levels + 1))

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        drawn = uniform(vector, at.draw)
        scale = self.scales(vector, at.size, lambda rows: rows.norm(dim=-1) if self.norm == 2 else largest(rows))
        decoded = levelled(vector, scale, self.levels, drawn)
        places = decoded.nonzero().flatten()
        levels = (decoded / scale * self.levels).index_select(0, places).abs().round().long()
        bits = 32 * len(self.blocks(at.size)) + len(places)  # scales and signs
        bits += elias_bits(places.diff(prepend=places.new_tensor([-1]))) + elias_bits(levels)
        return Decoded(decoded, logged={"elias_bytes": math.ceil(bits / 8)})


def largest(rows: Tensor) -> Tensor:
    """Returns the largest absolute value of each row."""
    return rows.amax(-1).maximum(-rows.amin(-1))


def levelled(vector: Tensor, scale: Tensor, levels: int, drawn: Tensor) -> Tensor:
    """Returns sign(u) scale q / s, where q is s |u| / scale, rounded up where what is cut off is above the draw."""
    exact = vector.abs().mul_(levels).div_(scale).clamp_(max=levels)
    lower = exact.floor()
    return lower.add_(drawn < exact.sub_(lower)).mul_(scale / levels).copysign_(vector)


def elias_bits(numbers: Tensor) -> int:
    """Returns how many bits whole numbers from 1 on take in Elias' recursive code: 1 of 1, and 1 + floor(log2 n) more
    than floor(log2 n) takes of n."""
    bits = len(numbers)
    while len(numbers := numbers[numbers > 1]):
        numbers = numbers.double().log2().floor().long()
        bits += int(numbers.sum()) + len(numbers)
    return bits


def uniform(like: Tensor, draw: torch.Generator) -> Tensor:
    """Returns a number above 0 and below 1 for each of a vector, (n,), at random, of 16 bits.

    The last 8 bits are drawn once for all: any of the numbers is uniform, and takes half of the time.
    """
    words = torch.empty(len(like) // 8 + 1, dtype=torch.int64).random_(-(2**63), None, generator=draw)
    drawn = words.view(torch.uint8)
    return drawn[: len(like)].to(like.device).float().add_((float(drawn[len(like)]) + 0.5) / 256).mul_(1 / 256)


class Ternary(Scaled):
    """Sends 0 or the largest |u| with the sign, at random so that the mean is right (TernGrad, Wen et al. 2017).

    A level counts two bits. The paper's workers agree on one scale for all; here, each client has its own.
    """

    name: str = "ternary"
    clip_sigma: Positive | None = None
    """Standard deviations of a block beyond which its numbers are cut off before, which makes the largest |u| smaller;
    2.5 in the paper. null: none."""

    @property
    def unbiased(self) -> bool:
        return self.clip_sigma is None

    def bits_each(self) -> int:
        return 2

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        drawn = uniform(vector, at.draw)
        if self.clip_sigma is not None:
            sigma = self.scales(vector, at.size, lambda rows: rows.std(-1, correction=0), zero=math.inf)
            most = self.clip_sigma * sigma
            vector = vector.clamp(-most, most)
        scale = self.scales(vector, at.size, largest)
        return Decoded(levelled(vector, scale, 1, drawn))


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
