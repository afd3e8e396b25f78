"""Noise of binary trees, of which sums over many steps hold little (DP-FTRL)."""

from __future__ import annotations

from typing import ClassVar

from raysim.parts.lazy import torch
from raysim.parts.part import Count
from raysim.privacy.exposure import TreeExposure
from raysim.privacy.release import Normal, Release
from raysim.terms import Record, Tensor


class TreeRelease(Release):
    """Noise of a binary tree over steps, so that the noise of n steps together grows with log n, not with n.

    The steps 1 to t together have the noise of those nodes of the tree that make up 1 to t; a step adds the difference
    to the step before. Needs no sampling. Kairouz, McMahan, Song, Thakkar, Thakurta, Xu, Practical and private deep
    learning without sampling or shuffling, ICML 2021. As the largest weight of a step must be the same in all steps,
    `fedbuff` needs `staleness: none` where some buffers hold stale updates only.
    """

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

    @property
    def keeps(self) -> tuple[str, ...]:
        return ("nodes",)

    def exposure(self) -> TreeExposure:
        return TreeExposure(self.restart)
