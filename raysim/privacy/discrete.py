"""Discrete Gaussian noise on sums of integers, as clients add it to what a secure aggregation sums up."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.parts.errors import BadValue, located
from raysim.parts.lazy import torch
from raysim.parts.part import Positive
from raysim.privacy.exposure import Exposure
from raysim.privacy.release import GaussianRelease, Keyed, Summed
from raysim.terms import Record, Tensor
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint

_LEAST_SHARE = 2.0  # steps of the grid; below, sums of discrete noise are too far from discrete noise


class DiscreteRelease(GaussianRelease):
    """Discrete Gaussian noise, of which each client adds a part, on integers that a secure aggregation sums up.

    Clients round what they send to multiples of `grid` at random, without bias; the server learns the sum modulo
    2^bits, centred. Kairouz, Liu, Steinke, The distributed discrete Gaussian mechanism for federated learning with
    secure aggregation, ICML 2021, without its rotation. The noise of all clients is drawn at once. Rounding makes what
    a client can move the sum by a little larger, and the noise with it. `bits` of each number travel. The updates of a
    step must have equal weights. Epsilon is that of concentrated differential privacy, a little above that of
    `gaussian`.
    """

    alike: ClassVar[bool] = True
    accountant: ClassVar[str] = "concentrated"

    name: str = "discrete"
    grid: Annotated[Positive, Field(examples=[1e-4])]
    """The distance of two numbers that a client can send next to each other."""
    bits: Annotated[int, Field(ge=2, le=24)] = 16
    """Bits of each number. A sum outside of grid times -2^(bits - 1) to 2^(bits - 1) - 1 wraps around."""
    missing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the noise that is missing because clients who were to add it are gone. Epsilon counts what is left."""

    @property
    def transforms(self) -> tuple[Uplink, ...]:
        return (Rounded(grid=self.grid, bits=self.bits),)

    def sensitivity(self, exposure: Exposure) -> float:
        return math.sqrt(1 - self.missing)

    def bound(self, clip: float, length: int) -> float:
        return rounded_norm(clip, self.grid, length)

    def require(self, std: float, updates: int) -> None:
        if (part := std / self.grid / math.sqrt(updates * (1 - self.missing))) < _LEAST_SHARE:
            text = f"must be so fine that the noise of each of {updates} clients is {_LEAST_SHARE:g} steps of it"
            raise BadValue(f"{text} or more, got {self.grid:g} and {part:.3g} steps; lower it", "grid")

    @staticmethod
    def delta_of(mu: float, epsilon: float) -> float:
        return concentrated_delta(mu, epsilon)

    def add(self, of: Summed, version: int, kept: Record, keyed: Keyed) -> tuple[Tensor, Record]:
        unit = self.grid * of.weight  # of the sum
        if not unit:
            return of.sums, kept
        whole = (of.sums.double() / unit).round()
        if of.std:
            with located("release"):
                self.require(of.std / of.weight, of.updates)  # a bound that adapts may have become too small
            noise = discrete_gaussian(of.std / unit, len(whole), keyed(version).initial_seed())
            whole += torch.from_numpy(noise).to(whole.device)
        half = 2.0 ** (self.bits - 1)
        return (((whole + half).remainder(2 * half) - half) * unit).to(of.sums.dtype), kept


class Rounded(Uplink):
    """Rounds numbers to multiples of a grid at random, again until the vector is not longer than `rounded_norm`."""

    kind: ClassVar[Literal["bound", "noise", "codec"]] = "noise"

    name: str = "rounded"
    grid: Positive
    bits: int

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        if not math.isfinite(norm := float(vector.norm())):
            return Decoded(vector)  # so that divergence is seen
        below, longest = (vector / self.grid).floor(), rounded_norm(norm, self.grid, len(vector)) * (1 + 1e-5)
        above = vector / self.grid - below
        while True:
            found = self.grid * (below + (torch.rand(len(vector), generator=at.draw).to(vector.device) < above))
            if float(found.norm()) <= longest:
                return Decoded(found)

    def size(self, before: Size) -> Size:
        return Size.dense(before.shapes)._replace(value_bits=self.bits)


def rounded_norm(norm: float, grid: float, length: int) -> float:
    """Returns the norm that rounding at random keeps to with a probability of at least 1 - e^(-1/2), from one that the
    vector keeps to (Kairouz, Liu, Steinke 2021, with beta = e^(-1/2))."""
    if not math.isfinite(norm):
        return norm
    square = norm**2 + grid**2 * length / 4 + grid * (norm + grid * math.sqrt(length) / 2)
    return min(math.sqrt(square), norm + grid * math.sqrt(length))


def discrete_gaussian(std: float, count: int, seed: int) -> NDArray[np.int64]:
    """Returns integers k, each with a probability that is proportional to exp(-k^2 / (2 std^2)), (count,).

    Canonne, Kamath, Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020, Algorithm 3: discrete
    Laplace numbers, some of which are drawn again.
    """
    draw, found, left, scale = np.random.default_rng(seed), np.zeros(count, np.int64), np.arange(count), int(std) + 1
    while len(left):
        size, negative = np.floor(draw.exponential(scale, len(left))), draw.random(len(left)) < 0.5
        taken = draw.random(len(left)) < np.exp(-((size - std**2 / scale) ** 2) / (2 * std**2))
        taken &= (size > 0) | ~negative  # else 0 would count twice
        found[left[taken]] = np.where(negative, -size, size)[taken]
        left = left[~taken]
    return found


def concentrated_delta(mu: float, epsilon: float) -> float:
    """Returns a delta for an epsilon that each mechanism of (mu^2 / 2)-concentrated differential privacy keeps to, the
    least over orders alpha of the Renyi divergence (Canonne, Kamath, Steinke 2020)."""
    if mu == 0:
        return 0.0
    low, high = -25.0, 25.0  # of log(alpha - 1), between which a golden section finds the least
    ratio = (math.sqrt(5) - 1) / 2

    def exponent(x: float) -> float:
        over = math.exp(x)
        return over * ((1 + over) * mu**2 / 2 - epsilon) - x - (1 + over) * math.log1p(1 / over)

    for _ in range(80):
        one, other = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, other) if exponent(one) < exponent(other) else (one, high)
    return math.exp(min(0.0, exponent((low + high) / 2)))
