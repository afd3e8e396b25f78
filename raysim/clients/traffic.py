"""How many bytes travel: one count for tables, budgets and computed delays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raysim.clients.uplink import Size, Uplink
from raysim.terms import Traffic, Trip

if TYPE_CHECKING:
    from raysim.algorithms.algorithm import Algorithm


def traffic_of(algorithm: Algorithm, uplink: Sequence[Uplink], trip: Trip) -> Traffic:
    """Returns the bytes of an update and of the message before it or, of a peer, of its message as `up`."""
    found = algorithm.traffic(trip)
    if not uplink:
        return found
    size = Size(trip.layers, values=sum(trip.layers))
    dense = size.bytes
    for transform in uplink:
        size = transform.size(size)
    return found._replace(up=found.up - dense + size.bytes)
