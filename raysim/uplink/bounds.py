"""Transforms that bound what clients send."""

from typing import ClassVar, Literal

from raysim.parts.part import Positive
from raysim.terms import Record, Tensor
from raysim.uplink.uplink import Decoded, Uplink, UplinkPoint


class NormBound(Uplink):
    """Shortens vectors that are longer than a bound: u min(1, max / |u|)."""

    kind: ClassVar[Literal["bound", "noise", "codec"]] = "bound"

    name: str = "clip_norm"
    max: Positive
    """Largest l2 norm."""

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        norm = vector.norm()
        return Decoded(vector * (self.max / norm) if norm > self.max else vector)

    def stretch(self, length: int) -> float | None:
        return 1.0
