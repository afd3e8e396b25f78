"""Yogi of the server."""

from __future__ import annotations

from raysim.algorithms.rules.adam import ServerAdam
from raysim.algorithms.signatures import Tensor


class ServerYogi(ServerAdam):
    """v = v - (1 - beta2) direction^2 sign(v - direction^2) (Reddi et al. 2021, FedYogi)."""

    name: str = "yogi"

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return v - (1 - self.beta2) * square * (v - square).sign()
