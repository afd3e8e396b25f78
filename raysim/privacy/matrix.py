"""Correlated noise of matrix factorisations: some noise of a step is taken back in later ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from raysim.parts.errors import BadInput
from raysim.parts.lazy import torch
from raysim.parts.part import Count
from raysim.privacy.exposure import Exposure, MatrixExposure
from raysim.privacy.release import Normal, Release
from raysim.terms import Record, Tensor

# By separation: theta and omega that make the largest error of a prefix sum, times what a client can move it by, least
# for ten uses so many steps apart. Found by a Nelder-Mead search.
_BLT: dict[int, tuple[tuple[float, float], tuple[float, float]]] = {
    5: ((0.75226, 0.752257), (0.16294, 0.526498)),
    10: ((0.87047, 0.765767), (0.594742, 0.0)),
    20: ((0.932548, 0.0), (0.471831, 0.067176)),
    50: ((0.972453, 0.428428), (0.318455, 0.200069)),
    100: ((0.986072, 0.623144), (0.231319, 0.272538)),
    200: ((0.992904, 0.743581), (0.168177, 0.313711)),
}


class MatrixRelease(Release):
    """Noise L^-1 Z, where Z is independent noise and L a lower triangular Toeplitz matrix with falling coefficients.

    Kairouz et al. 2021; Choquette-Choo et al. 2023; McMahan, Xu, Zhang, A hassle-free algorithm for strong differential
    privacy in federated learning systems, 2024. The coefficients are 1 = c_0 >= c_1 >= ... >= 0. All noise is
    multiplied by what a client can move L times its updates by, so that `multiplier` means what it does in `gaussian`.
    The largest weight of a step must be the same in all steps.
    """

    follows_length: ClassVar[bool] = True
    spans_steps: ClassVar[bool] = True

    name: str = "matrix"
    strategy: Literal["root", "banded", "blt", "file"] = "root"
    """root: c_k = c_(k-1) (2k - 1) / 2k, the square root of prefix sums, for which all earlier noise is drawn again in
    each step. banded: the first `bands` of these. blt: c_k = sum_j omega_j theta_j^(k-1), for which the server keeps a
    vector for each theta; a table has theta and omega for a number of steps and a separation. file: those in `path`."""
    bands: Count | None = None
    """How many coefficients are above 0, with `strategy: banded`."""
    path: str | None = None
    """Text file of coefficients, one a line, with `strategy: file`."""
    separation: Count | None = None
    """Least number of steps from one use of a client to the next. The timeline must keep to it; each client is taken to
    be used as often as it allows. null: noise is scaled by what the most exposed client is really used for."""

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        for key, strategy in (("bands", "banded"), ("path", "file")):
            if (getattr(self, key) is None) == (self.strategy == strategy):
                got = "none" if getattr(self, key) is None else f"it with strategy: {self.strategy}"
                raise ValueError(f"{key} goes with strategy: {strategy}, and is needed there, got {got}")
        if self.strategy == "blt" and self.separation is None:
            raise ValueError("separation must be given with strategy: blt, which is chosen by it, got none; set it")
        return self

    def reads(self) -> tuple[str, ...]:
        return (self.path,) if self.path else ()

    def column(self, steps: int) -> NDArray[np.float64]:
        """Returns the first column of L, (steps,)."""
        if self.strategy == "blt":
            theta, omega = map(np.array, self._blt)
            powers = theta[:, None] ** np.arange(steps - 1)
            return np.concatenate(([1.0], omega @ powers))
        found = self._given if self.strategy == "file" else root_column(min(steps, self.bands or steps))
        return np.concatenate((found, np.zeros(max(0, steps - len(found)))))[:steps]

    @property
    def _blt(self) -> tuple[Sequence[float], Sequence[float]]:
        """Theta and omega: those of the largest separation in the table that is not above the given one, or of the
        smallest one there."""
        known = [key for key in _BLT if key <= (self.separation or 1)]
        return _BLT[max(known, default=min(_BLT))]

    @cached_property
    def _given(self) -> NDArray[np.float64]:
        assert self.path is not None
        try:
            found = np.array([float(line) for line in Path(self.path).read_text(encoding="utf-8").split()])
        except (OSError, ValueError) as error:
            raise BadInput("release.path", f"must be a text file with a number a line: {error}") from None
        if not len(found) or found[0] != 1 or (np.diff(found) > 0).any() or found[-1] < 0:
            raise BadInput("release.path", "must begin with 1, and fall from there, at most to 0; sort it")
        return found

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        own = normal(version)
        if self.strategy == "blt":
            theta, omega = (own.new_tensor(of)[:, None] for of in self._blt)
            last = kept["last"] if version > 1 else own.new_zeros(len(theta), len(own))
            noise = own - (omega * last).sum(0)
            return noise, {"last": theta * last + noise}
        if self.strategy == "root":
            inverse = root_column(version) / (1 - 2 * np.arange(version))  # of the square root of the matrix of ones
            return sum((normal(version - k) * float(inverse[k]) for k in range(1, version)), own), {}
        factors = self.column(self.bands or len(self._given))
        earlier = list(kept["last"]) if version > 1 else []  # the newest first
        noise = sum((-float(c) * one for c, one in zip(factors[1:], earlier, strict=False)), own)
        left = [noise, *earlier][: len(factors) - 1]
        return noise, {"last": torch.stack(left) if left else own.new_zeros(0)}

    @property
    def keeps(self) -> tuple[str, ...]:
        return () if self.strategy == "root" else ("last",)

    def exposure(self) -> MatrixExposure:
        return MatrixExposure(self.column)

    def sensitivity(self, exposure: Exposure) -> float:
        assert isinstance(exposure, MatrixExposure)
        if self.separation is None:
            return math.sqrt(exposure.largest) or 1.0
        if (found := exposure.separation) < self.separation:
            text = f"must be at most {found:g}, the fewest steps from one use of a client to the next in this run's"
            raise BadInput("release.separation", f"{text} timeline, got {self.separation}; lower it")
        return self.sensitivity_of(exposure.steps)

    def sensitivity_of(self, steps: int) -> float:
        """Returns the norm of what a client can move L times its updates by, used as often as `separation` allows."""
        column, moved = self.column(steps), np.zeros(steps)
        for first in range(0, steps, self.separation or steps):
            moved[first:] += column[: steps - first]
        return float(np.linalg.norm(moved))


def root_column(steps: int) -> NDArray[np.float64]:
    """Returns the first column of the square root of the lower triangular matrix of ones: 1, 1/2, 3/8, ..."""
    k = np.arange(1, steps)
    found: NDArray[np.float64] = np.cumprod(np.concatenate(([1.0], (2 * k - 1) / (2 * k))), dtype=np.float64)
    return found
