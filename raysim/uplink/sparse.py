"""Transforms that send some numbers of a vector; the others are zero."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.part import Count
from raysim.terms import Record, Tensor
from raysim.uplink.memory import Remembering
from raysim.uplink.uplink import Decoded, Size, UplinkPoint

PositiveShare = Annotated[float, Field(gt=0, le=1)]


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
