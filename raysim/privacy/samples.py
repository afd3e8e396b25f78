"""How exposed single samples are, where clients train with noise: by each training that arrives, used or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from raysim.privacy.account import Account, NoisePlan
from raysim.privacy.privacy import Privacy
from raysim.privacy.release import GaussianRelease
from raysim.privacy.sampled import Sampled
from raysim.terms import Arrival


class ShownSteps(NamedTuple):
    """What one training of a client shows of a sample."""

    steps: int  # how many of its steps can show the sample
    noise: float  # multiplier of the noise of each
    probability: float = 1.0  # with which each draws the sample


class SampleAccount(Account):
    """What samples are exposed to. The server sees all trainings that arrive, also those that are late.

    Each step is a Gaussian mechanism of its own, and samples of other clients are not touched by it. With another
    accountant than `exact`, it counts that a step draws a sample with a probability only.
    """

    def __init__(self, privacy: Privacy, shown: Callable[[int], ShownSteps]) -> None:
        """shown: returns what a training of a client shows of any of its samples."""
        super().__init__(privacy, GaussianRelease(multiplier=1.0), NoisePlan(1.0))
        self._shown = shown

    def step(self, arrivals: Sequence[Arrival], weights: Sequence[float]) -> float | None:
        for arrival in arrivals:
            self.unused(arrival.client)
        return self.worst if self._privacy.accountant == "exact" else None

    def unused(self, client: int) -> None:
        steps, noise, _ = self._shown(client)
        self._exposure.uses[client] += steps
        self._exposure.add(client, steps / noise**2)

    def of(self, client: int) -> float:
        if self._privacy.accountant == "exact":
            return super().of(client)
        shown = self._shown(client)
        return self._sampled(shown.probability).epsilon(shown.noise, self._exposure.uses[client])

    def _sampled(self, probability: float) -> Sampled:
        return Sampled(self._privacy.accountant, probability, self._privacy.delta)

    def outcome(self, clients: Sequence[int]) -> dict[str, Any]:
        noise = {self._shown(client).noise for client in self._exposure.uses}
        found = {"unit": "sample", "neighbours": "a sample whose gradients are zero in its place"}
        facts = self._sampled(1.0).facts if self._privacy.accountant != "exact" else {}
        return {**super().outcome(clients), "multiplier": min(noise, default=None), **found, **facts}


def shown_by(steps: int, epoch_steps: int, passes: float, *, drawn: float | None, noise: float) -> ShownSteps:
    """Returns what a training shows of a sample.

    steps: mini-batches of a training. epoch_steps: those of an epoch. passes: trainings in one update. drawn: with
    which probability a mini-batch has the sample, where they are drawn; None where one of each epoch has it.
    """
    if drawn is None:
        return ShownSteps(math.ceil(passes * math.ceil(steps / epoch_steps)), noise)
    return ShownSteps(math.ceil(passes * steps), noise, drawn)
