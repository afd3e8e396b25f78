"""Gradient descent of the server, with or without momentum."""

from __future__ import annotations

from raysim.algorithms.rules.rule import ServerRule
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import Decay
from raysim.terms import Record


class ServerSGD(ServerRule):
    """v = momentum v + direction, w = w + lr v. By default, the server adds the direction to its model."""

    name: str = "sgd"
    momentum: Decay = 0.0
    """Decay of the sum of directions. 0: the server keeps no such sum."""
    nesterov: bool = False
    """Whether to step along direction + momentum v instead of v."""

    def init(self, w: Tensor) -> Record:
        return {"velocity": w * 0} if self.momentum else {}

    def move(self, kept: Record, w: Tensor, direction: Tensor, lr: float) -> tuple[Tensor, Record]:
        after: Record = {}
        if self.momentum:
            velocity = self.momentum * kept["velocity"] + direction
            direction = direction + self.momentum * velocity if self.nesterov else velocity
            after = {"velocity": velocity}
        return w.add(direction, alpha=lr), after
