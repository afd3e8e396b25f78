"""What a run guarantees, accounted for step by step: epsilon for each client, from the timeline and weights alone, or
for each sample, by each training that arrives."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from raysim.parts.errors import BadInput, BadValue
from raysim.privacy.exposure import Shares, epsilon_of, mu_of, shares_of
from raysim.privacy.privacy import Privacy
from raysim.privacy.release import GaussianRelease, Release
from raysim.privacy.sampled import Sampled
from raysim.terms import Arrival

_ROUNDING = 1 + 1e-9  # what an epsilon may exceed its limit by


class NoisePlan(NamedTuple):
    """What is known of a run's noise and guarantee before anything is trained."""

    multiplier: float  # standard deviation of the noise by what a client can move the sum by
    sensitivity: float = 1.0  # a factor of the noise besides, as `Release.sensitivity` gives it
    versions: float = math.inf  # server steps that `privacy.epsilon` allows
    sampled: Sampled | None = None  # where it is not known who takes part

    def mu(self, square: float) -> float:
        """Returns the mu of a client's Gaussian mechanism. square: what it is exposed to, as `Exposure` counts."""
        noise = self.multiplier * self.sensitivity
        return math.sqrt(square) / noise if noise else math.inf


def foreseen(release: Release, privacy: Privacy | None) -> bool:
    """Whether the whole timeline must be known before a run starts."""
    limited = privacy is not None and privacy.epsilon is not None
    return limited or release.multiplier == "auto" or release.spans_steps or release.alike


def plan_of(
    release: Release, privacy: Privacy | None, steps: Iterable[Shares], sampled: Sampled | None = None
) -> NoisePlan:
    """Returns the plan of a run. steps: all steps of its timeline, if it must be foreseen.

    Raises BadInput if the run cannot keep to its epsilon.
    """
    if not foreseen(release, privacy):
        assert release.multiplier != "auto"
        return NoisePlan(release.multiplier, sampled=sampled)
    exposure, squares = release.exposure(), list[float]()  # after each step, of the most exposed client
    for shares in steps:
        exposure.step(shares)
        squares.append(exposure.largest)
    sensitivity, limit = release.sensitivity(exposure), privacy.epsilon if privacy is not None else None
    if release.multiplier == "auto":
        assert privacy is not None and limit is not None
        if sampled is not None:
            return NoisePlan(sampled.multiplier(limit, len(squares)), sampled=sampled)
        most = mu_of(limit, privacy.delta, release.delta_of)
        return NoisePlan(math.sqrt(exposure.largest) / sensitivity / most, sensitivity)
    plan = NoisePlan(release.multiplier, sensitivity, sampled=sampled)
    if privacy is None or limit is None:
        return plan

    def after(versions: int) -> float:
        if sampled is not None:
            return sampled.epsilon(plan.multiplier, versions)
        return epsilon_of(plan.mu(squares[versions - 1]), privacy.delta, release.delta_of)

    allowed = bisect_right(range(1, len(squares) + 1), limit * _ROUNDING, key=after)
    if allowed == len(squares):
        return plan
    if not allowed:
        text = f"must be at least {after(1):.6g}, which the first server step takes, got {limit}"
        raise BadInput("privacy.epsilon", f"{text}; raise it, or release.multiplier")
    return plan._replace(versions=allowed)


def of_updates(multiplier: float, count_std: float) -> float:
    """Returns the multiplier of the noise on updates where how many were clipped is shown, too, such that both together
    show as much as the given multiplier (Andrew et al. 2021).

    count_std: of the noise on that number, of which a client is taken to add or subtract a half. Raises BadValue if it
    is too small.
    """
    if multiplier >= 2 * count_std:
        text = f"must be above half of release's multiplier, {multiplier:g}, got {count_std:g}"
        raise BadValue(f"{text}; raise it, or use more updates in a step", "count_noise")
    return 1 / math.sqrt(multiplier**-2 - (2 * count_std) ** -2)


class Account:
    """What clients are exposed to by the steps that a run has done."""

    def __init__(self, privacy: Privacy, release: Release, plan: NoisePlan) -> None:
        self._privacy, self._release, self._plan, self._exposure = privacy, release, plan, release.exposure()
        self._largest = self._worst = 0.0

    def step(self, arrivals: Sequence[Arrival], weights: Sequence[float]) -> float | None:
        """Counts a step. Returns the epsilon of the most exposed client after it; None without noise, and of sampled
        clients, where it takes seconds."""
        self._exposure.step(shares_of(arrivals, weights))
        return self.worst if self._plan.sampled is None else None

    def unused(self, client: int) -> None:
        """Counts an update that has arrived, and that no step uses. The steps show nothing of it."""

    @property
    def worst(self) -> float | None:
        """The epsilon of the most exposed client so far; None without noise."""
        if (largest := self._exposure.largest) != self._largest:
            self._largest, self._worst = largest, self._epsilon(largest)
        return _finite(self._worst)

    def _epsilon(self, square: float) -> float:
        return epsilon_of(self._plan.mu(square), self._privacy.delta, self._release.delta_of)

    def columns(self, clients: Sequence[int]) -> dict[str, list[Any]]:
        """Returns the table `privacy`. clients: the numbers of those that could take part."""
        return {
            "client": list(clients),
            "uses": [self._exposure.uses[client] for client in clients],
            "squared_weights": [self._exposure.squares.get(client, 0.0) for client in clients],
            "epsilon": [_finite(self.of(client)) for client in clients],
        }

    def of(self, client: int) -> float:
        """Returns the epsilon of a client; where clients are sampled, it is the same for all."""
        if self._plan.sampled is not None:
            return self._plan.sampled.epsilon(self._plan.multiplier, self._exposure.steps)
        return self._epsilon(self._exposure.squares.get(client, 0.0))

    def outcome(self, clients: Sequence[int]) -> dict[str, Any]:
        """Returns what run.json says of it. clients: the numbers of those that could take part."""
        privacy, epsilons = self._privacy, sorted(map(self.of, clients)) or [0.0]
        as_if = {key: value for key in ("population", "cohort") if (value := getattr(privacy, key)) is not None}
        return {
            "epsilon": _finite(epsilons[-1]),
            "epsilon_median": _finite(epsilons[(len(epsilons) - 1) // 2]),
            "delta": privacy.delta,
            "multiplier": self._plan.multiplier,
            "unit": "client",
            "neighbours": "a client that sends zeros in its place",
            "sampling": "none",
            "accountant": self._release.accountant,
            "largest_uses": max(self._exposure.uses.values(), default=0),
            **({"as_if": as_if} if as_if else {}),
            **({"probability": sampled.probability, **sampled.facts} if (sampled := self._plan.sampled) else {}),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
