"""A transform of what clients send: say here what it does."""

from raysim.terms import Record, Tensor
from raysim.uplink import Decoded, Size, Uplink, UplinkPoint


class UplinkTemplate(Uplink):
    """Sends the signs of an update, and the mean of its sizes."""

    name: str = "template"

    def send(self, vector: Tensor, kept: Record, at: UplinkPoint) -> Decoded:
        return Decoded(vector.abs().mean().copysign(vector))  # what the receiver decodes, not what travels

    def size(self, before: Size) -> Size:  # what travels, in bits, known before anything is trained
        return before._replace(value_bits=1, other_bits=before.other_bits + 32)
