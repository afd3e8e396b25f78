"""The base of transforms that may have a memory of what they and the codecs after them cut off."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from raysim.parts.part import Fraction
from raysim.terms import Tensor
from raysim.uplink.uplink import Decoded, Uplink


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
