"""Transforms that send fewer numbers: some of a vector, where the others are zero, or two thin factors of each
layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from raysim.parts.lazy import torch
from raysim.parts.part import Count
from raysim.terms import Record, Tensor
from raysim.uplink.uplink import Decoded, Remembering, Size, UplinkPoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

FACTORS = "factors"  # the entry that is kept: Q of each layer, one after another


class Sparse(Remembering):
    """A transform that sends some numbers of a vector; the others are zero. A subclass adds its `name`."""

    share: Annotated[float | None, Field(gt=0, le=1, examples=[0.1])] = None
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
    per: Literal["all", "layer"] = "all"
    """all: the largest of the whole vector. layer: those of each layer, so many of each."""
    index: Literal["bits", "int32", "bitmap", "golomb"] = "bits"
    """How their places travel. bits: as few bits each as they need. int32: 32 bits each. bitmap: one bit for each
    number of the vector. golomb: the distances between them in Golomb's code, of which the mean length counts (Sattler
    et al. 2019)."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        lengths = self._lengths(at.size)
        if all(self.number(length) >= length for length in lengths):
            return Decoded(vector)
        found, start = [], 0
        for length in lengths:
            found.append(largest(vector[start : start + length], self.number(length)) + start)
            if not len(found[-1]):
                return Decoded(vector)  # so that NaN shows
            start += length
        return scattered(vector, torch.cat(found))

    def size(self, before: Size) -> Size:
        sent = [(self.number(length), length) for length in self._lengths(before)]
        if all(k >= length for k, length in sent):
            return before
        bits = sum(self._index_bits(k, length) for k, length in sent if k < length)
        return before._replace(values=min(sum(k for k, _ in sent), before.values), other_bits=before.other_bits + bits)

    def stretch(self, length: int) -> float | None:
        return 1.0

    def _lengths(self, size: Size) -> tuple[int, ...]:
        return size.layers if self.per == "layer" else (size.length,)

    def _index_bits(self, k: int, length: int) -> int:
        if self.index == "golomb":
            return math.ceil(k * golomb_bits(k / length))
        return {"bits": k * math.ceil(math.log2(length)), "int32": 32 * k, "bitmap": length}[self.index]


def scattered(vector: Tensor, places: Tensor, factor: float = 1.0) -> Decoded:
    """Returns a vector of zeros, but for the numbers of another one at these places, times a factor."""
    sent = torch.zeros_like(vector).index_copy_(0, places, vector.index_select(0, places).mul_(factor))
    return Decoded(sent, places=places)


def largest(vector: Tensor, k: int) -> Tensor:
    """Returns the places of the k numbers with the largest absolute values, (k,); of equal ones, the first; of
    NaN, none."""
    if k >= len(vector):
        return torch.arange(len(vector), device=vector.device)
    if vector.device.type == "cpu":
        places, sizes = _likely(vector, k)
    else:
        whole = vector.abs()
        likely = (~(whole < torch.topk(whole, k).values[-1])).nonzero().flatten()
        places, sizes = likely.cpu().numpy(), whole[likely].cpu().numpy()
    least = np.partition(sizes, len(sizes) - k)[len(sizes) - k]
    taken = sizes > least
    taken[np.flatnonzero(sizes == least)[: k - np.count_nonzero(taken)]] = True
    return torch.from_numpy(places[taken if not np.isnan(sizes).any() else slice(0)]).to(vector.device)


def _likely(vector: Tensor, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns places among which the k largest are, and all NaN, and their absolute values: of a long vector not many
    more, which a sample of it tells. This is many times as fast as `torch.topk`."""
    numbers = vector.numpy()
    some = np.abs(numbers[::16])
    most = len(some) - (k * 3 // 32 + 8)  # a sixteenth and a half more
    bound = np.partition(some, most)[most] if most > 0 else 0.0
    below = numbers < bound
    below &= numbers > -bound
    places = np.flatnonzero(np.logical_not(below, out=below))
    if len(places) < k:
        places = np.arange(len(numbers))
    return places, np.abs(numbers[places])


def golomb_bits(p: float) -> float:
    """Returns the mean bits of a distance between places, of which each is taken with probability p, in Golomb's code
    (Sattler et al. 2019)."""
    b = 1 + math.floor(math.log2(math.log((math.sqrt(5) - 1) / 2) / math.log1p(-p)))
    return float(b + 1 / (1 - (1 - p) ** 2**b))


class RandomNumbers(Sparse):
    """Sends numbers at places that are drawn anew for each update, which travel as a seed of 64 bits."""

    name: str = "random_k"
    scaled: bool = True
    """Whether what is sent is multiplied by n / k, for n numbers of which k are sent, so that its mean is right. Must
    be false with a memory, which would grow without end."""
    shared: bool = False
    """Whether all clients that received one version of the model, or peers in one mix, send the same places, which
    then need not travel."""

    @model_validator(mode="after")
    def _shortens(self) -> Self:
        if self.remembers and self.scaled:
            text = "a memory adds next time what was multiplied too much, and grows without end; set scaled to false"
            raise ValueError(f"must not have both scaled and memory: {self.memory}, because {text}")
        return self

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        if (k := self.number(len(vector))) >= len(vector):
            return Decoded(vector)
        places = torch.randperm(len(vector), generator=at.draw)[:k].to(vector.device)
        return scattered(vector, places, len(vector) / k if self.scaled else 1.0)

    def size(self, before: Size) -> Size:
        if (k := self.number(before.length)) >= before.length:
            return before
        seed = 0 if self.shared else 64
        return before._replace(values=min(k, before.values), other_bits=before.other_bits + seed)

    def stretch(self, length: int) -> float | None:
        return length / self.number(length) if self.scaled else 1.0

    @property
    def unbiased(self) -> bool:
        return self.scaled

    @property
    def draws_alike(self) -> bool:
        return self.shared


class LowRankFactors(Remembering):
    """Sends P and Q of each layer M (outputs, rest), which is decoded as P Q^T (PowerSGD, Vogels et al. 2019).

    P is M Q, made orthonormal, and Q is then M^T P. Vectors, and layers of which P and Q hold more than half as many
    numbers, travel as they are. In a data centre, PowerSGD averages P over workers before Q is made; here each client
    has its own factors, as one message up allows, and it sends them from the first update on.
    """

    name: str = "low_rank"
    rank: Count = 2
    """Columns of P and Q."""
    iterations: Count = 1
    """How often P and Q are made anew for an update."""
    warm: bool = True
    """Whether a client begins with the Q of its last update; else with one that is drawn."""
    memory: Literal["none", "ef14", "ef21", "shadow"] = "ef14"
    """What happens to the error, as in top_k."""

    @property
    def keeps(self) -> bool:
        return self.warm or self.remembers

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        cut = [self._factors(shape) for shape in at.size.shapes]
        if not any(cut) or not bool(vector.isfinite().all()):
            return Decoded(vector, kept)
        start = kept.get(FACTORS)
        if start is None:
            rests = [math.prod(shape[1:]) for shape, small in zip(at.size.shapes, cut, strict=True) if small]
            start = torch.randn(sum(rests) * self.rank, generator=at.draw).to(vector.device)
        decoded, factors, used = [], [], 0
        for piece, shape, small in zip(vector.split_with_sizes(at.layers), at.size.shapes, cut, strict=True):
            if small:
                matrix = piece.view(shape[0], -1)
                q = start[used : used + matrix.shape[1] * self.rank].view(-1, self.rank)
                p, new = self.factored(matrix, q)
                used, piece = used + q.numel(), (p @ new.T).flatten()
                factors.append(torch.where(new.any(), new, q).flatten())  # from 0, it might never get away
            decoded.append(piece)
        return Decoded(torch.cat(decoded), {FACTORS: torch.cat(factors)} if self.warm else {})

    def factored(self, matrix: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Returns P (outputs, rank), whose columns are orthonormal, and Q (rest, rank) of a layer."""
        for _ in range(self.iterations):
            p, r = torch.linalg.qr(matrix @ q)
            p = p * torch.where(r.diagonal() < 0, -1.0, 1.0)
            q = matrix.T @ p
        return p, q

    def size(self, before: Size) -> Size:
        sent = [self._factors(shape) or math.prod(shape) for shape in before.shapes]
        return before if sum(sent) == before.length else Size(before.shapes, sum(sent))

    def stretch(self, length: int) -> float | None:
        return 1.0

    def _factors(self, shape: tuple[int, ...]) -> int:
        """Returns how many numbers the factors of a layer hold; 0 if it travels as it is."""
        outputs, rest = shape[0] if shape else 1, math.prod(shape[1:])
        numbers = self.rank * (outputs + rest)
        return numbers if len(shape) > 1 and 2 * numbers <= outputs * rest else 0
