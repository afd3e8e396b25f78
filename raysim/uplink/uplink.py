"""What may happen to an update on its way to the server, or to a peer's message, and how many bytes then travel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from raysim.parts.errors import Problem
from raysim.schedules import Schedulable
from raysim.terms import Record, Tensor, Traffic, Trip

if TYPE_CHECKING:
    from torch import Generator


class Size(NamedTuple):
    """The size of a vector as it travels, known before anything is trained. Each transform makes one of another."""

    layers: tuple[int, ...]  # how many numbers each layer of the vector has
    values: int  # numbers that are sent
    value_bits: int = 32  # of each of them
    other_bits: int = 0  # of indices, scales and the like

    @property
    def length(self) -> int:
        """How many numbers the whole vector has."""
        return sum(self.layers)

    @property
    def bytes(self) -> int:
        """What travels, rounded up to whole bytes."""
        return -(-(self.values * self.value_bits + self.other_bits) // 8)


class UplinkPoint(NamedTuple):
    """Where a transform is at work."""

    layers: tuple[int, ...]  # how many numbers each layer of the vector has, in the vector's order
    draw: Generator  # on the CPU; its stream belongs to the client, its dispatch and the transform's place in the list


class Decoded(NamedTuple):
    """What a transform makes of a vector."""

    vector: Tensor  # (n,), what the receiver decodes; the very tensor that was given if nothing changes
    kept: Record = {}  # noqa: RUF012 - what it keeps of the client or peer for the next one; never changed


class Uplink(Schedulable):
    """A transform of what clients, or peers, send. A subclass adds its `name` and `send`.

    It gets one vector: the entries of an update that are shaped like the model, one after another, without padding. Of
    an algorithm that sends models, these are their differences from the model that was received. Between peers, it is
    the message itself.
    """

    kind: ClassVar[Literal["bound", "noise", "codec"]] = "codec"
    """Whether it bounds the vector, adds noise to it, or makes it smaller on its way."""

    name: str

    def first(self, length: int) -> Record:
        """Returns what it keeps of a client before the client first sends something, of `length` numbers; by default
        {}. What a client keeps is part of the client's state, and is left as it was if no step uses the update."""
        return {}

    @abstractmethod
    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        """Returns what the receiver decodes of a vector (n,), and what is kept for the next one. Changes neither."""

    def size(self, before: Size) -> Size:
        """Returns the size of what it sends, by that of what it is given."""
        return before

    @property
    def remembers(self) -> bool:
        """Whether what it and the codecs after it cut off is added to the client's next update."""
        return False

    @property
    def keeps(self) -> bool:
        """Whether it keeps something of each client."""
        return self.remembers or type(self).first is not Uplink.first


def traffic_of(found: Traffic, uplink: Sequence[Uplink], trip: Trip) -> Traffic:
    """Returns the bytes of an update and of the message before it or, of a peer, of its message as `up`: one count for
    tables, budgets and computed delays. found: what the algorithm says."""
    if not uplink:
        return found
    size = Size(trip.layers, values=sum(trip.layers))
    dense = size.bytes
    for transform in uplink:
        size = transform.size(size)
    return found._replace(up=found.up - dense + size.bytes)


def remembered(transforms: Sequence[Uplink], place: int) -> int:
    """Returns where the codecs end that share the memory of the transform at a place."""
    ends = range(place + 1, len(transforms))
    return next((end for end in ends if transforms[end].kind != "codec"), len(transforms))


def uplink_problems(transforms: Sequence[Uplink], increments: Sequence[str], algorithm: str) -> Iterator[Problem]:
    """Yields what is wrong with a list of transforms.

    increments: entries of updates that the algorithm sums up for good.
    """
    memories = [place for place, one in enumerate(transforms) if one.remembers]
    for place in memories[1:]:
        yield Problem(f"uplink.{place}.memory", f"must be none, for uplink.{memories[0]} has a memory; leave it out")
    covered = range(memories[0], remembered(transforms, memories[0])) if memories else range(0)
    for place, one in enumerate(transforms if increments else ()):
        if place not in covered:
            what = f"{algorithm} sums up the changes that clients send ({', '.join(increments)})"
            cure = "give it memory: ef14" if hasattr(one, "memory") else "take top_k with memory: ef14 before it"
            text = f"{what}, so what {one.name} cuts off would be lost for good; {cure}"
            yield Problem(f"uplink.{place}", text if one.kind == "codec" else f"{what}; leave {one.name} out")
