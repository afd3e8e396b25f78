"""Federated adaptive asynchronous optimisation (FADAS).

Wang, Wang, Lu, Chen, FADAS: Towards federated adaptive asynchronous optimization, ICML 2024.

Differences from the paper: none, but where the authors' code differs from the paper, options choose between the two.
Without bias correction, as in the paper, the first step is `server_lr` times (1 - beta1) / sqrt(1 - beta2) in each
coordinate; that factor is 1 by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from raysim.algorithms.central import Central
from raysim.parts.part import Count, Decay, NonNegative, Positive
from raysim.terms import Arrival, Buffer, Population, Record

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.task import Task


class FADAS(Central):
    """FedBuff whose server takes AMSGrad steps, shorter ones where updates are stale (Wang et al. 2024)."""

    name: str = "fadas"
    buffer: Count = 5
    """How many updates make a server step (M)."""
    server_lr: Positive = 1e-3
    """Learning rate of the server (eta). The authors take 1e-4 with `delay_adaptive: none`."""
    beta1: Decay = 0.9
    """Decay of the running mean of updates."""
    beta2: Decay = 0.99
    """Decay of the running mean of squared updates."""
    eps: Positive = 1e-8
    """Added to the root in the step's denominator."""
    delay_adaptive: Literal["scaled", "capped", "none"] = "scaled"
    """How a step's learning rate depends on tau, the largest staleness of its updates. scaled, as in the authors' code:
    eta / tau if tau is above `delay_threshold`, else eta. capped, as in the paper: min(eta, 1 / tau). none: eta. The
    authors count staleness in server steps, which is `world.staleness: versions`."""
    delay_threshold: NonNegative = 1.0
    """Largest tau at which `delay_adaptive: scaled` leaves the learning rate as it is."""
    bias_correction: bool = False
    """Whether to correct the bias of the running means as Adam does. The authors' code does, the paper does not."""

    @property
    def trigger(self) -> Buffer:
        return Buffer(self.buffer)

    def init(self, model: Model, population: Population) -> Record:
        zeros = model.w * 0
        return {"w": model.w, "first": zeros, "second": zeros, "largest": zeros, "steps": model.w.new_zeros(())}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1 / self.buffer] * len(arrivals)

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Task) -> Record:
        delta = updates["delta"]
        first = self.beta1 * state["first"] + (1 - self.beta1) * delta
        second = self.beta2 * state["second"] + (1 - self.beta2) * delta.square()
        largest, steps = second.maximum(state["largest"]), state["steps"] + 1
        mean, root = first, largest.sqrt()
        if self.bias_correction:
            mean, root = first / (1 - self.beta1**steps), root / (1 - self.beta2**steps).sqrt()
        w = state["w"] + self.rate(max(a.staleness for a in arrivals)) * mean / (root + self.eps)
        return {"w": w, "first": first, "second": second, "largest": largest, "steps": steps}

    def rate(self, delay: float) -> float:
        """Returns the learning rate of a step. delay: tau, the largest staleness of its updates."""
        if self.delay_adaptive == "scaled" and delay > self.delay_threshold:
            return self.server_lr / delay
        if self.delay_adaptive == "capped" and delay > 0:
            return min(self.server_lr, 1 / delay)
        return self.server_lr
