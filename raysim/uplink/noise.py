"""Transforms that add noise to what clients send, so that nobody else need be trusted with it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.lazy import torch
from raysim.parts.part import NonNegative, Positive
from raysim.privacy.gaussian import mu_of
from raysim.terms import Record, Tensor
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint


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
