"""Compares the updates of a step: the length of each, and how far it agrees with their mean.

Zhu et al., Guided model merging for hybrid data learning, 2025, figure 2: the less clients' data are alike, and the
staler updates are, the less they agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from raysim.terms import Arrival, Record
from raysim.workers.replies import Numbers


def compare(stacks: Sequence[Record], arrivals: Sequence[Arrival]) -> list[Numbers]:
    """Returns norm and cosine of each update for the table `updates`, in order; null where they are not defined.

    stacks: the step's updates, whose "delta" is (n, d) each; [] is returned if they have none. The cosine is that
    between an update and the mean of all, weighted by samples.
    """
    if not stacks or "delta" not in stacks[0]:
        return []
    deltas = torch.cat([stack["delta"] for stack in stacks])
    samples = deltas.new_tensor([float(arrival.samples) for arrival in arrivals])
    mean = samples @ deltas / samples.sum()
    norms = deltas.norm(dim=1)
    cosines = deltas @ mean / (norms * mean.norm())
    pairs = zip(norms.tolist(), cosines.tolist(), strict=True)
    return [{"update_norm": _finite(norm), "update_cosine": _finite(cosine)} for norm, cosine in pairs]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
