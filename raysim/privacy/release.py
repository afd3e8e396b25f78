"""The base of noise that the server adds to the sum of a step, before its rule moves the model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from raysim.parts.part import NonNegative, Part
from raysim.privacy.exposure import Exposure
from raysim.terms import Record, Tensor

Normal: TypeAlias = "Callable[..., Tensor]"
"""Returns as many standard normal numbers as clients send together, (n,). Equal arguments, of which there may be two
integers beside the scenario's seed, give equal numbers."""


class Release(Part):
    """Noise on the sum of a step at the server. A subclass adds its `name` and `draw`.

    Its standard deviation is `multiplier` times the largest bound of an update in the step, times the largest weight.
    Of several aggregators, each draws the same noise. It covers what `clip_norm` in `uplink` bounds: the entries of an
    update that are shaped like the model.
    """

    spans_steps: ClassVar[bool] = False
    """Whether noise of one step comes back in later ones, so that the largest weight must be the same in all steps."""

    name: str
    multiplier: Annotated[NonNegative | Literal["auto"], Field(examples=[1.0])]
    """Standard deviation of the noise by what a client can move the sum by (z). auto: the least with which the most
    exposed client keeps to `privacy.epsilon` at the end of the run."""

    @abstractmethod
    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        """Returns noise of a standard deviation of 1, (n,), for the step that makes a version, from 1 on, and what the
        server keeps for the next step. kept: what the step before kept. Changes nothing in place."""

    @property
    def keeps(self) -> tuple[str, ...]:
        """The names of what the server keeps from one step to the next; empty tensors before the first."""
        return ()

    @property
    def follows_length(self) -> bool:
        """Whether the noise of a step depends on how many steps come after it."""
        return self.multiplier == "auto"

    def exposure(self) -> Exposure:
        """Returns a new count of what clients are exposed to."""
        return Exposure()

    def sensitivity(self, exposure: Exposure) -> float:
        """Returns a factor of the noise, with which `multiplier` stands for as much as in `gaussian`. exposure: that of
        the whole run."""
        return 1.0


class GaussianRelease(Release):
    """Independent Gaussian noise on the sum of each step (DP-FedAvg: McMahan, Ramage, Talwar, Zhang 2018)."""

    name: str = "gaussian"

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        return normal(version), {}
