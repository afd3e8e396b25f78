"""Feddle's model atlas: the client updates that the server keeps, which are called anchors.

Zhu et al., Guided model merging for hybrid data learning, section 4.1.1 and Algorithm 1. Difference: in the paper, a
new anchor inherits the lowest score of the anchor that it replaces, so the next arrival would replace it in turn. Here
new anchors replace each other only if more updates arrive than there are places, the oldest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from raysim.algorithms.signatures import Arrivals, Record, Tensor
from raysim.parts.lazy import torch


def anchor(place: int) -> str:
    """Returns the name of the entry of the server's state that holds the anchor at a place."""
    return f"anchor_{place}"


def empty(size: int, w: Tensor) -> Record:
    """Returns the entries of the server's state for an empty atlas with `size` places.

    Each anchor is a separate entry, so that anchors that stay are not stored again at each step. At a free place,
    the anchor has no elements and the score is -1.
    """
    numbers = torch.zeros(size, dtype=torch.int64, device=w.device)
    return {
        **{anchor(place): w.new_empty(0) for place in range(size)},
        "score": w.new_full((size,), -1.0),
        "discount": w.new_zeros(size),  # factor for the staleness of the update at its arrival
        "client": numbers,
        "arrived": numbers,  # server step at which the update arrived
    }


def places(scores: Sequence[float], newcomers: int) -> list[int]:
    """Returns the place of each new anchor: the one with the lowest score, or the first of them among equal scores.

    A place that a new anchor has just taken is used again only if no other is left. newcomers: the number of new
    anchors.
    """
    by_score = sorted(range(len(scores)), key=scores.__getitem__)
    return [by_score[number % len(scores)] for number in range(newcomers)]


def admit(
    state: Record, deltas: Tensor, arrivals: Arrivals, discounts: Sequence[float], step: int
) -> tuple[Record, list[int]]:
    """Returns the entries of the atlas with new anchors in it, and the place that each of the updates took.

    Where more updates arrive than there are places, a later one takes the place of an earlier one. deltas: the updates
    that become anchors, (n, d). discounts: their factors for staleness. New anchors get the highest scores. If anchors
    are replaced by age, these scores stay, so the oldest anchor has the lowest one.
    """
    entries = {key: value.clone() for key, value in state.items() if key in ("score", "discount", "client", "arrived")}
    entries |= {anchor(place): state[anchor(place)] for place in range(len(state["score"]))}
    chosen = places(state["score"].tolist(), len(arrivals))
    youngest = float(state["score"].max().clamp(min=0))
    for order, (place, delta, arrival) in enumerate(zip(chosen, deltas, arrivals, strict=True), start=1):
        entries[anchor(place)] = delta.clone()  # a copy, because a view would keep all deltas in memory
        entries["score"][place] = youngest + order
        entries["discount"][place] = discounts[order - 1]
        entries["client"][place] = arrival.client
        entries["arrived"][place] = step
    return entries, chosen


class Anchors(NamedTuple):
    """The m anchors of an atlas as a search uses them. An anchor times its `scale` is the paper's normalised anchor."""

    places: list[int]  # their places in the atlas
    vectors: list[Tensor]  # (d,) each, as clients sent them
    norms: Tensor  # (m,)
    scale: Tensor  # (m,); 0 for an anchor of norm 0, which then has no effect

    @classmethod
    def of(cls, entries: Record, *, normalize: bool) -> Anchors:
        """Returns the anchors of an atlas, without free places.

        normalize: whether `scale` brings all anchors to the median of their norms (eq. 4). Norms of 0 do not count; the
        median of an even number of norms is the mean of the two in the middle.
        """
        here = [place for place in range(len(entries["score"])) if entries[anchor(place)].numel()]
        vectors = [entries[anchor(place)] for place in here]
        norms = torch.stack([vector.norm() for vector in vectors])
        some = norms[norms > 0]
        aim = some.quantile(0.5) if normalize and len(some) else norms
        return cls(here, vectors, norms, torch.where(norms > 0, aim / norms, 0.0))

    def move(self, w: Tensor, coefficients: Tensor) -> Tensor:
        """Returns w plus the sum of normalised anchors times their coefficients (m,), as a new vector (d,)."""
        moved = w.clone()
        for vector, factor in zip(self.vectors, coefficients * self.scale, strict=True):
            moved.addcmul_(vector, factor)
        return moved

    def project(self, gradient: Tensor) -> Tensor:
        """Returns the gradient with respect to the coefficients, (m,), given that with respect to the parameters,
        (d,): its inner products with the normalised anchors (eq. 16)."""
        return torch.stack([vector @ gradient for vector in self.vectors]) * self.scale
