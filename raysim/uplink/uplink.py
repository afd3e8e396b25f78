"""The base of transforms: what may happen to a vector on its way, how many bytes then travel, and what is remembered of
what they cut off."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple, Self

from pydantic import model_validator

from raysim.parts.lazy import torch
from raysim.parts.part import Fraction
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


class Remembering(Uplink):
    """A transform that may have a memory of what is cut off. A subclass adds its `name`."""

    memory: Literal["none", "ef14", "ef21", "shadow"] = "none"
    """What happens to the error of this transform and of the codecs after it, up to the next bound or noise. none: it
    is lost. ef14: it is added to the client's next update, or the peer's next message (Seide et al. 2014; Karimireddy
    et al. 2019). ef21: sender and receiver keep what was decoded last, only the difference from that is sent, and what
    is decoded is the sum (Richtarik, Sokolov, Fatkhullin 2021). shadow: the same in `downlink`, where the first copy is
    the whole first message (EF21-P, Gruntkowska et al. 2023)."""
    shadow: Literal["all", "client"] = "all"
    """Who has one copy. all: each version's increment goes to all clients, and one that was away is sent those that it
    missed, or the whole if that is smaller. client: the server keeps a copy for each client."""
    decay: Fraction = 1.0
    """With ef14, the factor of what was cut off when it is added next time, so that old parts fade."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for key, given, memory in (("decay", self.decay != 1, "ef14"), ("shadow", self.shadow != "all", "shadow")):
            if given and self.memory != memory:
                text = f"must not have `{key}` with memory: {self.memory}; leave it out, or set memory to {memory}"
                raise ValueError(text)
        return self

    @property
    def remembers(self) -> bool:
        return self.memory != "none"

    @property
    def contracts(self) -> bool:
        """Whether what it sends is nearer to a vector than zero is, as ef21 and shadow need."""
        return True


def memory_of(transform: Uplink) -> str:
    """Returns which memory a transform has; a custom one that remembers has ef14."""
    return getattr(transform, "memory", "ef14") if transform.remembers else "none"


def shadows_each(transform: Uplink) -> bool:
    """Whether the server keeps a copy for each client of what that has received."""
    return memory_of(transform) == "shadow" and getattr(transform, "shadow", "all") == "client"


def entering(transform: Uplink, vector: Tensor, memory: Tensor | None) -> Tensor:
    """Returns what a transform with a memory, and the codecs after it, are given in place of a vector."""
    if memory is None or (kind := memory_of(transform)) == "none":
        return vector
    return vector.add(memory, alpha=getattr(transform, "decay", 1.0)) if kind == "ef14" else vector - memory


def leaving(
    transform: Uplink, vector: Tensor, given: Tensor, sent: Decoded, memory: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Returns what the receiver decodes, and the memory for the next vector; None if there is nothing to remember.

    given: what `entering` returned, which is changed in place unless it is the vector. sent: what became of that.
    """
    kind, found = memory_of(transform), sent.vector
    if kind == "none" or (kind == "ef14" and found is given):
        return found, None
    if kind != "ef14":
        if memory is None:  # the first copy is the whole of the first vector, or what is sent if copies begin with 0
            decoded = vector if kind == "shadow" else found
        else:
            decoded = vector if found is given else memory + found
        return decoded, decoded
    if sent.places is None:
        return found, given - found
    left = given.clone() if given is vector else given  # elsewhere, nothing was sent
    return found, left.index_add_(0, sent.places, found.index_select(0, sent.places), alpha=-1)
