"""The base of transforms that may have a memory of what they and the codecs after them cut off."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from raysim.parts.part import Fraction
from raysim.terms import Tensor
from raysim.uplink.uplink import Uplink


class Remembering(Uplink):
    """A transform that may have a memory of what is cut off. A subclass adds its `name`."""

    memory: Literal["none", "ef14", "ef21", "shadow"] = "none"
    """What becomes of what this transform and the codecs after it, up to the next bound or noise, cut off. none: it is
    lost. ef14: it is added to the client's next update, or the peer's next message (Seide et al. 2014; Karimireddy et
    al. 2019). ef21: sender and receiver keep what was decoded last, only the difference from that is sent, and what is
    decoded is the sum (Richtarik, Sokolov, Fatkhullin 2021). shadow: the same in `downlink`, where the first copy is
    the whole first message (EF21-P, Gruntkowska et al. 2023)."""
    shadow: Literal["all", "client"] = "all"
    """Who has one copy. all: each version's increment goes to all clients, and one that was away is sent those that it
    missed, or the whole if that is smaller. client: the server keeps a copy for each client."""
    decay: Fraction = 1.0
    """With ef14, the factor of what was cut off when it is added next time, so that old parts fade."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.decay != 1.0 and self.memory != "ef14":
            raise ValueError(f"must not have `decay` with memory: {self.memory}; leave it out, or set memory to ef14")
        if self.shadow != "all" and self.memory != "shadow":
            raise ValueError(
                f"must not have `shadow` with memory: {self.memory}; leave it out, or set memory to shadow"
            )
        return self

    @property
    def remembers(self) -> bool:
        return self.memory != "none"

    @property
    def contracts(self) -> bool:
        """Whether what it sends is nearer to a vector than zero is, as ef21 and shadow need."""
        return True


def entering(transform: Uplink, vector: Tensor, memory: Tensor | None) -> Tensor:
    """Returns what a transform with a memory, and the codecs after it, are given in place of a vector."""
    if memory is None or not transform.remembers:
        return vector
    if _adds(transform):
        return vector.add(memory, alpha=getattr(transform, "decay", 1.0))
    return vector - memory


def leaving(
    transform: Uplink, vector: Tensor, given: Tensor, sent: Tensor, memory: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Returns what the receiver decodes, and the memory for the next vector; None if there is nothing to remember.

    given: what `entering` returned. sent: what became of that.
    """
    if not transform.remembers:
        return sent, None
    if _adds(transform):
        return sent, None if sent is given else given - sent
    if memory is None:  # the first copy is the whole of the first vector, or what is sent if copies begin with 0
        decoded = vector if is_shadow(transform) else sent
    else:
        decoded = vector if sent is given else memory + sent
    return decoded, decoded


def is_shadow(transform: Uplink) -> bool:
    """Whether a transform has the memory of `downlink`."""
    return getattr(transform, "memory", "") == "shadow"


def _adds(transform: Uplink) -> bool:
    return getattr(transform, "memory", "ef14") == "ef14"
