"""The base of transforms: what may happen to a vector on its way, and how many bytes then travel."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

from raysim.parts.lazy import torch
from raysim.schedules import Schedulable
from raysim.terms import Record, Shapes, Tensor

BUFFERS = ("buffers",)  # the entry that holds BatchNorm's statistics


class Size(NamedTuple):
    """The size of a vector as it travels, known before anything is trained. Each transform makes one of another."""

    shapes: Shapes  # of each layer of the vector
    values: int  # numbers that are sent
    value_bits: int = 32  # of each of them
    other_bits: int = 0  # of indices, scales and the like

    @classmethod
    def dense(cls, shapes: Shapes) -> Size:
        """Returns the size of a vector that no transform has changed."""
        return cls(shapes, sum(map(math.prod, shapes)))

    @property
    def layers(self) -> tuple[int, ...]:
        """How many numbers each layer of the vector has, in the vector's order."""
        return tuple(map(math.prod, self.shapes))

    @property
    def length(self) -> int:
        """How many numbers the whole vector has."""
        return sum(self.layers)

    @property
    def bits(self) -> int:
        """What travels."""
        return self.values * self.value_bits + self.other_bits

    @property
    def bytes(self) -> int:
        """What travels, rounded up to whole bytes."""
        return -(-self.bits // 8)


class UplinkPoint(NamedTuple):
    """Where a transform is at work."""

    size: Size  # of the vector as it would travel without this transform
    draw: torch.Generator  # on the CPU; its stream belongs to the client, its dispatch and the transform's place
    bound: float | None = None  # of the norm, if the transform right before this one bounds it

    @property
    def layers(self) -> tuple[int, ...]:
        """How many numbers each layer of the vector has, in the vector's order."""
        return self.size.layers


class Decoded(NamedTuple):
    """What a transform makes of a vector."""

    vector: Tensor  # (n,), what the receiver decodes; the very tensor that was given if nothing changes
    kept: Record = {}  # noqa: RUF012 - what it keeps of the client or peer for the next one; never changed
    logged: Mapping[str, float] = {}
    places: Tensor | None = None  # where the vector may be other than 0, if these are few; None: anywhere


class Uplink(Schedulable):
    """A transform of what clients, or peers, send. A subclass adds its `name` and `send`.

    It gets one vector: the entries of an update that are shaped like the model, one after another, without padding. Of
    an algorithm that sends models, these are their differences from the model that was received. Between peers, it is
    the message itself.
    """

    kind: ClassVar[Literal["bound", "noise", "codec"]] = "codec"
    """Whether it bounds the vector, adds noise to it, or makes it smaller on its way."""

    name: str
    entries: tuple[str, ...] = ()
    """The entries of an update that it takes, such as [prototypes]. []: those that are shaped like the model."""

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

    def stretch(self, length: int) -> float | None:
        """Returns by which factor, at most, it makes the l2 norm of a vector of so many numbers longer; None if no
        bound is known. Without a memory: what that adds is not counted."""
        return None

    @property
    def unbiased(self) -> bool:
        """Whether the mean of what is decoded, over its draws, is the vector that it was given."""
        return False

    @property
    def bound(self) -> float | None:
        """The bound of the norm of what it sends; None if it has none."""
        return None

    @property
    def takes(self) -> tuple[tuple[str, ...], ...]:
        """The vectors that it takes, each by the names of the entries that are joined to it; () stands for those that
        are shaped like the model. A transform with a key `buffers` takes BatchNorm's statistics, too, if it is true."""
        return (self.entries, BUFFERS) if getattr(self, "buffers", False) else (self.entries,)

    @property
    def remembers(self) -> bool:
        """Whether what it and the codecs after it cut off is added to the client's next update."""
        return False

    @property
    def keeps(self) -> bool:
        """Whether it keeps something of each client."""
        return self.remembers or type(self).first is not Uplink.first

    @property
    def draws_alike(self) -> bool:
        """Whether all clients that received the same version of the model, or peers in the same mix, draw the same."""
        return False
