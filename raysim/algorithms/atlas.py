"""Feddle's model atlas: the client updates, or anchors, that a server keeps and steers by.

Zhu et al., Guided model merging for hybrid data learning, section 4.1.1 and Algorithm 1. Difference: there a new
anchor takes over the lowest score with its place, so that the next arrival would overwrite it; here newcomers are
replaced only where more arrive than there are places, the oldest of them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from raysim.terms import Arrival, Record

if TYPE_CHECKING:
    from torch import Tensor


def anchor(place: int) -> str:
    """The entry of the server's state that holds the anchor at a place."""
    return f"anchor_{place}"


def empty(size: int, w: Tensor) -> Record:
    """The entries of the server's state that make up an atlas of so many places, all free.

    Anchors are entries of their own, so that those that stay are not stored again at each step. A free place has an
    anchor of no elements and a score of -1.
    """
    import torch

    numbers = torch.zeros(size, dtype=torch.int64, device=w.device)
    return {
        **{anchor(place): w.new_empty(0) for place in range(size)},
        "score": w.new_full((size,), -1.0),
        "discount": w.new_zeros(size),  # for staleness, at arrival
        "client": numbers,
        "arrived": numbers,  # server step
    }


def places(scores: Sequence[float], newcomers: int) -> list[int]:
    """Where each of so many new anchors goes: to the lowest score, the first among equals, never to another newcomer's
    place while there is one left."""
    taken: list[int] = []
    for _ in range(newcomers):
        old = [place for place in range(len(scores)) if place not in taken]
        taken.append(min(old, key=scores.__getitem__) if old else taken[-len(scores)])
    return taken


def admit(
    state: Record, deltas: Tensor, arrivals: Sequence[Arrival], discounts: Sequence[float], step: int
) -> tuple[Record, list[int]]:
    """The atlas with new anchors, deltas (n, d), and the places of those. Their score is above all others: they are the
    youngest, which is all that counts where anchors are not scored."""
    entries = {key: value.clone() for key, value in state.items() if key in ("score", "discount", "client", "arrived")}
    entries |= {anchor(place): state[anchor(place)] for place in range(len(state["score"]))}
    chosen = places(state["score"].tolist(), len(arrivals))
    youngest = float(state["score"].max().clamp(min=0))
    for order, (place, delta, arrival) in enumerate(zip(chosen, deltas, arrivals, strict=True), start=1):
        entries[anchor(place)] = delta.clone()  # not a view, which would keep them all
        entries["score"][place] = youngest + order
        entries["discount"][place] = discounts[order - 1]
        entries["client"][place] = arrival.client
        entries["arrived"][place] = step
    return entries, sorted(set(chosen))


class Anchors(NamedTuple):
    """The anchors of an atlas as a search uses them. `scale` makes an anchor the normalised one of the paper."""

    places: list[int]
    vectors: list[Tensor]  # (d,) each, as they came
    norms: Tensor  # (m,)
    scale: Tensor  # (m,); 0 for an anchor of norm 0, which is left out

    @classmethod
    def of(cls, entries: Record, *, normalize: bool) -> Anchors:
        """Those there are. normalize: to the median of their norms (eq. 4), those of norm 0 not counted; of an even
        number the mean of the two in the middle."""
        import torch

        here = [place for place in range(len(entries["score"])) if entries[anchor(place)].numel()]
        vectors = [entries[anchor(place)] for place in here]
        norms = torch.stack([vector.norm() for vector in vectors])
        some = norms[norms > 0]
        aim = some.quantile(0.5) if normalize and len(some) else norms
        return cls(here, vectors, norms, torch.where(norms > 0, aim / norms, 0.0))

    def move(self, w: Tensor, coefficients: Tensor) -> Tensor:
        """w plus each normalised anchor times its coefficient, (d,)."""
        moved = w.clone()
        for vector, factor in zip(self.vectors, coefficients * self.scale, strict=True):
            moved.addcmul_(vector, factor)
        return moved

    def project(self, gradient: Tensor) -> Tensor:
        """What a gradient (d,) is for the coefficients: inner products with the normalised anchors, (m,) (eq. 16)."""
        import torch

        return torch.stack([vector @ gradient for vector in self.vectors]) * self.scale
