"""Adaptive asynchronous optimisation.

Wang, Wang, Lu, Chen, FADAS: Towards federated adaptive asynchronous optimization, ICML 2024. No difference, but that
options tell the paper and the authors' code apart. Without bias correction, as in the paper, the first step is
(1 - beta1) / sqrt(1 - beta2) times `server_lr` in each coordinate, 1 by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from raysim.algorithms.central import Central
from raysim.part import Count, NonNegative, Positive
from raysim.terms import Arrival, Buffer, Population, Record

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.task import Task

Decay = Annotated[float, Field(ge=0, lt=1)]


class FADAS(Central):
    """FedBuff whose mean update is an AMSGrad step, a shorter one where updates are stale (Wang et al. 2024)."""

    name: str = "fadas"
    buffer: Count = 5
    """M, the updates of a step."""
    server_lr: Positive = 1e-3
    """eta. The authors take 1e-4 where steps do not adapt to the delay."""
    beta1: Decay = 0.9
    """Of the mean of updates."""
    beta2: Decay = 0.99
    """Of the mean of their squares."""
    eps: Positive = 1e-8
    """Added to the root."""
    delay_adaptive: Literal["scaled", "capped", "none"] = "scaled"
    """By the largest staleness tau of a step, which the authors count in server steps, `world.staleness: versions`.
    scaled, their code: eta / tau where tau is above `delay_threshold`. capped, the paper: min(eta, 1 / tau). none:
    eta."""
    delay_threshold: NonNegative = 1.0
    """Of `scaled`."""
    bias_correction: bool = False
    """That of Adam, which the authors' code has and the paper has not."""

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
        """eta of a step. delay: tau, the largest staleness in it."""
        if self.delay_adaptive == "scaled" and delay > self.delay_threshold:
            return self.server_lr / delay
        if self.delay_adaptive == "capped" and delay > 0:
            return min(self.server_lr, 1 / delay)
        return self.server_lr
