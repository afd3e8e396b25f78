"""Noise that the server adds to the sum of a step, before its rule moves the model: the base, independent noise, and
noise of binary trees, of which sums over many steps hold little (DP-FTRL)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import Field

from raysim.parts.lazy import torch
from raysim.parts.part import Count, NonNegative, Part
from raysim.privacy.exposure import Exposure, TreeExposure, delta_of
from raysim.terms import Record, Tensor

if TYPE_CHECKING:
    from raysim.uplink.uplink import Uplink


Normal: TypeAlias = "Callable[..., Tensor]"
"""Returns as many standard normal numbers as clients send together, (n,). Equal arguments, of which there may be two
integers beside the scenario's seed, give equal numbers."""
Keyed: TypeAlias = "Callable[..., torch.Generator]"
"""Returns a generator on the CPU. Equal arguments, as those of `Normal`, give equal draws."""


class Summed(NamedTuple):
    """The sum of a step's updates, before the noise."""

    sums: Tensor  # (n,)
    std: float  # of the noise in each number
    weight: float  # the largest of an update
    updates: int  # how many there are


class Release(Part):
    """Noise on the sum of a step at the server. A subclass adds its `name` and `draw`.

    Its standard deviation is `multiplier` times the largest bound of an update in the step, times the largest weight.
    Of several aggregators, each draws the same noise. It covers what `clip_norm` in `uplink` bounds: the entries of an
    update that are shaped like the model.
    """

    spans_steps: ClassVar[bool] = False
    """Whether noise of one step comes back in later ones, so that the largest weight must be the same in all steps."""
    alike: ClassVar[bool] = False
    """Whether all updates of a step must have the same weight."""
    accountant: ClassVar[str] = "exact"
    """How epsilon is found, where clients are not sampled."""

    name: str
    multiplier: Annotated[NonNegative | Literal["auto"], Field(examples=[1.0])]
    """Standard deviation of the noise by what a client can move the sum by (z). auto: the least with which the most
    exposed client keeps to `privacy.epsilon` at the end of the run."""

    @abstractmethod
    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        """Returns noise of a standard deviation of 1, (n,), for the step that makes a version, from 1 on, and what the
        server keeps for the next step. kept: what the step before kept. Changes nothing in place."""

    def add(self, of: Summed, version: int, kept: Record, keyed: Keyed) -> tuple[Tensor, Record]:
        """Returns a sum with the noise of a step, (n,), and what the server keeps; the very sum without noise."""
        if not of.std:
            return of.sums, kept
        noise, after = self.draw(version, kept, lambda *ids: torch.randn(len(of.sums), generator=keyed(*ids)))
        return of.sums.add(noise.to(of.sums.device), alpha=of.std), after

    @property
    def transforms(self) -> tuple[Uplink, ...]:
        """What happens to what clients send after all of `uplink`."""
        return ()

    def bound(self, clip: float, length: int) -> float:
        """Returns the bound of an update of so many numbers after `transforms`. clip: its bound before."""
        return clip

    @staticmethod
    def delta_of(mu: float, epsilon: float) -> float:
        """Returns the delta of noise for an epsilon. mu: what a client can move all steps by, in its standard
        deviations."""
        return delta_of(mu, epsilon)

    @property
    def keeps(self) -> tuple[str, ...]:
        """The names of what the server keeps from one step to the next; empty tensors before the first."""
        return ()

    @property
    def follows_length(self) -> bool:
        """Whether the noise of a step depends on how many steps come after it."""
        return self.multiplier == "auto"

    def require(self, std: float, updates: int) -> None:
        """Raises BadValue if noise does not protect as it says. std: its standard deviation in a sum of so many updates
        with a weight of 1."""

    def exposure(self) -> Exposure:
        """Returns a new count of what clients are exposed to."""
        return Exposure()

    def sensitivity(self, exposure: Exposure) -> float:
        """Returns a factor of the noise besides `multiplier`. exposure: that of the whole run."""
        return 1.0


class GaussianRelease(Release):
    """Independent Gaussian noise on the sum of each step (DP-FedAvg: McMahan, Ramage, Talwar, Zhang 2018)."""

    name: str = "gaussian"

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        return normal(version), {}


class TreeRelease(Release):
    """Noise of a binary tree over steps, so that the noise of n steps together grows with log n, not with n.

    The steps 1 to t together have the noise of those nodes of the tree that make up 1 to t; a step adds the difference
    to the step before. Needs no sampling. Kairouz, McMahan, Song, Thakkar, Thakurta, Xu, Practical and private deep
    learning without sampling or shuffling, ICML 2021. As the largest weight of a step must be the same in all steps,
    `fedbuff` needs `staleness: none` where some buffers hold stale updates only.
    """

    keeps: ClassVar[tuple[str, ...]] = ("nodes",)
    spans_steps: ClassVar[bool] = True

    name: str = "tree"
    efficient: bool = True
    """Whether a node's noise is estimated from all nodes below it, too, which makes it smaller: of a node k levels up,
    w_k of its own and 1 - w_k of the sum of the two below it, with w_k = 1 / (2 - 2^-k) (Honaker 2015)."""
    restart: Count | None = None
    """Steps after which a new tree begins. null: one tree for all."""

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        place = version if self.restart is None else (version - 1) % self.restart + 1
        before = list(kept["nodes"]) if place > 1 else []
        nodes, node, level = list(before), normal(version), 0
        while place >> level & 1 == 0:  # the node that is complete now, and the one before it, are below another one
            level += 1
            own, left = normal(version, level), nodes.pop()
            share = 1 / (2 - 2.0**-level) if self.efficient else 1.0
            node = share * own + (1 - share) * (left + node)
        nodes.append(node)
        return sum(nodes[1:], nodes[0]) - sum(before, torch.zeros_like(node)), {"nodes": torch.stack(nodes)}

    def exposure(self) -> TreeExposure:
        return TreeExposure(self.restart)
