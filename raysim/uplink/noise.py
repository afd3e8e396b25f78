"""Transforms that bound what clients send, and that add noise to it, so that nobody else need be trusted with it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.lazy import torch
from raysim.parts.part import Fraction, NonNegative, Part, Positive
from raysim.privacy.exposure import mu_of
from raysim.schedules.schedule import Schedule
from raysim.terms import Record, Tensor
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint


class Adapt(Part):
    """A bound that follows the norms of updates.

    After each step it is C exp(-rate (b - quantile)), where b is the share of updates that were not longer than it.
    Updates count by their weight over the largest one in the step, as they do in its sum.

    Andrew, Thakkar, McMahan, Ramaswamy, Differentially private learning with adaptive clipping, NeurIPS 2021.
    """

    quantile: Fraction = 0.5
    """Share of updates that the bound is to leave as they are."""
    rate: NonNegative = 0.2
    """How fast the bound changes. 0: not at all."""
    count_noise: NonNegative | None = None
    """Standard deviation of the noise on the number of updates that were not longer. null: without a `release` that
    adds noise, 0; with one, a twentieth of the updates that a step is expected to use."""


class NormBound(Uplink):
    """Shortens vectors that are longer than a bound: u min(1, max / |u|)."""

    kind: ClassVar[Literal["bound", "noise", "codec"]] = "bound"

    name: str = "clip_norm"
    max: Positive
    """Largest norm (C); with `adapt`, the first one."""
    order: Literal[2, 1, "inf"] = 2
    """Which norm is bounded: the l2 norm, the l1 norm, or the largest absolute value."""
    layers: Literal["none", "equal", "size"] = "none"
    """Whether each layer has its own bound, such that together they keep to `max` (McMahan et al. 2018). none: one
    bound for all. equal: the same for each, such as C / sqrt(L) of L layers for the l2 norm. size: C sqrt(n_l / n),
    where a layer has n_l of n numbers."""
    adapt: Annotated[Adapt | None, Field(examples=[{"quantile": 0.5, "rate": 0.2}])] = None
    """How the bound follows the norms of updates. It then travels with the model, in 4 bytes, an update is clipped by
    the bound that came with its model, and sends one bit more: whether it was longer. null: it stays."""

    @model_validator(mode="after")
    def _adapts_one(self) -> Self:
        if self.adapt and (self.layers != "none" or isinstance(self.max, Schedule)):
            got = f"layers: {self.layers}" if self.layers != "none" else "a schedule for max"
            raise ValueError(f"adapt goes with one bound that starts at a number, got {got}; leave one of them out")
        return self

    def bounds(self, layers: tuple[int, ...]) -> Iterator[float]:
        """Yields the bound of each layer, or the one of all. layers: how many numbers each has."""
        for layer in layers if self.layers != "none" else (sum(layers),):
            part = layer / sum(layers) if self.layers == "size" else 1 / len(layers)
            yield self.max if self.layers == "none" or self.order == "inf" else self.max * part ** (1 / self.order)

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        pieces = (vector,) if self.layers == "none" else vector.split_with_sizes(at.layers)
        norms = [piece.norm(float(self.order)) for piece in pieces]
        bounded = [
            piece * (bound / norm) if norm > bound else piece
            for piece, norm, bound in zip(pieces, norms, self.bounds(at.layers), strict=True)
        ]
        clipped = any(after is not before for after, before in zip(bounded, pieces, strict=True))
        after = vector if not clipped else bounded[0] if len(bounded) == 1 else torch.cat(bounded)
        return Decoded(after, logged={"clipped": float(clipped)})

    def size(self, before: Size) -> Size:
        return before._replace(other_bits=before.other_bits + 1) if self.adapt else before

    def stretch(self, length: int) -> float | None:
        return 1.0

    @property
    def bound(self) -> float | None:
        return self.max


def adapting(transforms: Sequence[Uplink]) -> int | None:
    """Returns the place of the bound that adapts; None if none does."""
    return next((place for place, one in enumerate(transforms) if isinstance(one, NormBound) and one.adapt), None)


def bounded(transforms: Sequence[Uplink]) -> tuple[NormBound | None, dict[int, Uplink]]:
    """Returns the last bound of a list for the entries that are shaped like the model, and what comes after it, by
    place."""
    bound, after = None, dict[int, Uplink]()
    for place, one in enumerate(transforms):
        if isinstance(one, NormBound) and () in one.takes:
            bound, after = one, {}
        elif () in one.takes:
            after[place] = one
    return bound, after


def stretch_of(transforms: Mapping[int, Uplink], length: int) -> float:
    """Returns by which factor, at most, transforms make the norm of a vector of so many numbers longer."""
    return math.prod(one.stretch(length) or 1.0 for one in transforms.values())


class LocalNoise(Uplink):
    """Noise on a vector, drawn anew for each client and dispatch. A subclass adds its `name`.

    Where its size follows from `epsilon`, any two updates are neighbours, which are up to 2 C apart, where C is the
    bound of the `clip_norm` right before it. Each update that arrives has this epsilon; those of several add up.
    """

    kind: ClassVar[Literal["bound", "noise", "codec"]] = "noise"
    order: ClassVar[Literal[2, 1]] = 2
    """The norm that must be bounded before it."""

    name: str

    @property
    def follows_bound(self) -> bool:
        """Whether the size of the noise follows from a bound."""
        return True

    @abstractmethod
    def noise(self, like: Tensor, at: UplinkPoint) -> Tensor | None:
        """Returns noise for a vector, (n,); None for none."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        noise = self.noise(vector, at)
        return Decoded(vector if noise is None else vector + noise.to(vector.device, vector.dtype))

    def size(self, before: Size) -> Size:
        return Size.dense(before.shapes)


class GaussianNoise(LocalNoise):
    """Adds Gaussian noise, of a size that is given or that follows from epsilon and delta (Balle, Wang 2018)."""

    name: str = "gaussian"
    std: Annotated[NonNegative | None, Field(examples=[0.01])] = None
    """Standard deviation of the noise in each entry."""
    epsilon: Positive | None = None
    """Epsilon of one update, in place of `std`: the noise is the least with which the analytic Gaussian mechanism keeps
    to it and to `delta`."""
    delta: Annotated[float | None, Field(gt=0, lt=1)] = None
    """Delta that goes with `epsilon`."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.std is None) == (self.epsilon is None) or (self.epsilon is None) != (self.delta is None):
            given = [key for key in ("std", "epsilon", "delta") if getattr(self, key) is not None]
            raise ValueError(f"must have either std, or both of epsilon and delta, got {', '.join(given) or 'none'}")
        return self

    @property
    def follows_bound(self) -> bool:
        return self.std is None

    def std_for(self, bound: float | None) -> float:
        """Returns the standard deviation. bound: of the l2 norm before it."""
        if self.std is not None:
            return self.std
        assert self.epsilon is not None and self.delta is not None and bound is not None  # or it is refused
        return 2 * bound / mu_of(self.epsilon, self.delta)

    def noise(self, like: Tensor, at: UplinkPoint) -> Tensor | None:
        std = self.std_for(at.bound)
        return std * torch.randn(len(like), generator=at.draw) if std else None


class LaplaceNoise(LocalNoise):
    """Adds Laplace noise of scale 2 C / epsilon (Dwork, McSherry, Nissim, Smith 2006), where the l1 norm is bounded."""

    order: ClassVar[Literal[2, 1]] = 1

    name: str = "laplace"
    epsilon: Positive
    """Epsilon of one update."""

    def noise(self, like: Tensor, at: UplinkPoint) -> Tensor:
        assert at.bound is not None  # or it is refused
        # In 64 bits: of floats of 32 bits, one in 17 million is 0, whose noise would be infinite.
        drawn = torch.rand(len(like), generator=at.draw, dtype=torch.float64) - 0.5
        return -2 * at.bound / self.epsilon * drawn.sign() * (-2 * drawn.abs()).log1p()
