"""Adagrad of the server."""

from __future__ import annotations

from raysim.algorithms.rules.adaptive import AdaptiveRule
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import Decay


class ServerAdagrad(AdaptiveRule):
    """v = v + direction^2 (Reddi et al. 2021, FedAdagrad)."""

    name: str = "adagrad"
    beta1: Decay = 0.0
    """Decay of the running mean of directions. 0, as in Reddi et al.: a step follows its own direction alone."""

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return v + square
