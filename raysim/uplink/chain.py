"""Takes vectors through a list of transforms: what is joined to a vector, what a memory covers, what then travels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from raysim.parts.errors import located
from raysim.terms import Record, Shapes, Tensor, Traffic, Trip, Vectors
from raysim.uplink.memory import entering, is_shadow, leaving
from raysim.uplink.uplink import Size, Uplink, UplinkPoint

if TYPE_CHECKING:
    from torch import Generator

MEMORY = "memory"  # the entry that a transform with a memory keeps besides its own

Chain = Mapping[int, Uplink]
"""Transforms that take one vector, by their place in the list, in its order."""


def chains(transforms: Sequence[Uplink]) -> dict[tuple[str, ...], dict[int, Uplink]]:
    """Returns the transforms of each vector, by the entries that are joined to it."""
    found: dict[tuple[str, ...], dict[int, Uplink]] = {}
    for place, one in enumerate(transforms):
        for taken in one.takes:
            found.setdefault(taken, {})[place] = one
    return found


def groups(chain: Chain) -> Iterator[dict[int, Uplink]]:
    """Yields the transforms one by one, and one that has a memory together with the codecs that it covers: all after
    it up to the next bound or noise."""
    group: dict[int, Uplink] = {}
    for place, one in chain.items():
        covered = group and next(iter(group.values())).remembers and one.kind == "codec"
        if group and not covered:
            yield group
            group = {}
        group[place] = one
    if group:
        yield group


class Transformed(NamedTuple):
    """What a chain makes of a vector."""

    vector: Tensor  # what the receiver decodes; the very tensor that was given if nothing changes
    kept: dict[int, Record]  # what transforms keep for the next one, by their place
    memory: Tensor | None  # what is remembered; None without a memory, and if there is nothing to remember
    logged: dict[str, float]


def passed(
    link: str,
    chain: Chain,
    vector: Tensor,
    shapes: Shapes,
    kept: Mapping[int, Record],
    draw: Callable[[int], Generator],
) -> Transformed:
    """Takes a vector through a chain.

    link: the key of the scenario's list that the transforms stand in. shapes: of the vector's layers. kept: what
    transforms kept before. draw: returns the generator of a transform, by its place.
    """
    after: dict[int, Record] = {}
    memory, logged, size, bound = None, dict[str, float](), Size.dense(shapes), None
    for group in groups(chain):
        head = next(iter(group))
        before = kept.get(head, {}).get(MEMORY)
        sent = given = entering(group[head], vector, before)
        for place, transform in group.items():
            own = {name: entry for name, entry in kept.get(place, {}).items() if name != MEMORY}
            with located(f"{link}.{place}"):
                point = UplinkPoint(size, draw(place), bound)
                found = transform.send(sent, own or transform.first(len(vector)), point)
            sent, size, bound = found.vector, transform.size(size), transform.bound
            after[place] = found.kept
            logged.update(found.logged)
        vector, remembered = leaving(group[head], vector, given, sent, before)
        if remembered is not None:
            memory, after[head] = remembered, {**after[head], MEMORY: remembered}
    return Transformed(vector, {place: record for place, record in after.items() if record}, memory, logged)


def bits_of(transforms: Sequence[Uplink], vectors: Vectors, versions: int | None = None) -> tuple[int, int]:
    """Returns how many bits vectors take after a list of transforms, and without it.

    versions: how many newer ones there are than what the receiver has a copy of; None if it has none.
    """
    after = before = 0
    if not transforms:
        return 0, 0
    for taken, chain in chains(transforms).items():
        dense = size = Size.dense(vectors.get(taken, ()))
        before += dense.bits
        if not dense.values:
            continue
        for transform in chain.values():
            size = transform.size(size)
        bits = size.bits
        if shadow := next((one for one in chain.values() if is_shadow(one)), None):
            increments = 1 if getattr(shadow, "shadow", "all") == "client" else versions
            bits = dense.bits if versions is None or increments is None else min(increments * bits, dense.bits)
        after += bits
    return after, before


def traffic_of(found: Traffic, uplink: Sequence[Uplink], downlink: Sequence[Uplink], trip: Trip) -> Traffic:
    """Returns the bytes of an update and of the message before it or, of a peer, of its message as `up`: one count for
    tables, budgets and computed delays. found: what the algorithm says."""
    if not uplink and not downlink:
        return found
    sent, whole = bits_of(uplink, trip.up)
    received, message = bits_of(downlink, trip.down, trip.missed.versions)
    return Traffic(found.up - whole // 8 + -(-sent // 8), found.down - message // 8 + -(-received // 8))


def shadows_each(downlink: Sequence[Uplink]) -> bool:
    """Whether the server keeps a copy for each client of what that has received."""
    return any(is_shadow(one) and getattr(one, "shadow", "all") == "client" for one in downlink)
