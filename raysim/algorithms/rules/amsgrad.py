"""AMSGrad of the server."""

from __future__ import annotations

from raysim.algorithms.rules.adam import ServerAdam
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import NonNegative, Positive
from raysim.terms import Record


class ServerAMSGrad(ServerAdam):
    """Adam that divides by the root of the largest second moment so far (Reddi, Kale, Kumar, ICLR 2018)."""

    name: str = "amsgrad"
    eps: Positive = 1e-8
    """Added to the root in the denominator."""
    initial: NonNegative | None = 0.0
    """Value that v starts with. null: eps squared."""

    def init(self, w: Tensor) -> Record:
        return {**super().init(w), "largest": w * 0}

    def moments(self, kept: Record, square: Tensor) -> Record:
        second = self.second(kept["second"], square)
        return {"second": second, "largest": second.maximum(kept["largest"])}
