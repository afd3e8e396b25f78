"""Adds the noise of `release` to the sums of a step, at one place for all algorithms."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from raysim.parts.errors import BadInput
from raysim.parts.rng import torch_seed
from raysim.privacy.release import Summed
from raysim.scenario import Scenario
from raysim.terms import Record
from raysim.uplink.bounds import bounded, stretch_of
from raysim.workers.replies import Numbers
from raysim.workers.requests import StepNoise
from raysim.workers.sending import Sending


class Released(NamedTuple):
    """What a server's rule gets to see of a step."""

    sums: Record
    kept: Record  # what the release keeps for the next step
    columns: Numbers  # of the table `steps`


class Releasing:
    """Adds noise to those entries of sums that are shaped like the model."""

    def __init__(self, scenario: Scenario, sending: Sending) -> None:
        assert scenario.release is not None
        self._release, self._seed, self._sending = scenario.release, scenario.seed, sending
        self._algorithm, (_, self._after) = scenario.algorithm.name, bounded(scenario.uplink)

    def first(self) -> Record:
        """Returns what the release keeps before the first step."""
        return {name: torch.zeros(0) for name in self._release.keeps}

    def covered(self, sums: Record) -> tuple[Tensor, Callable[[Tensor], Record]]:
        """Returns the vector that noise is added to, and a function that puts another one in its place. Raises BadInput
        if there are other entries, to which none would be added."""
        whole, put_back, others = self._sending.joined(sums)
        if others and self._release.multiplier != 0:
            text = f"must not go with {self._algorithm}, of whose updates no clip_norm covers {', '.join(others)}"
            raise BadInput("release", f"{text}; take another algorithm")
        return whole, put_back

    def __call__(self, sums: Record, noise: StepNoise, adapted: float | None, version: int, kept: Record) -> Released:
        """Returns the sums with the noise of the step that makes a version.

        adapted: the largest bound of an update, where bounds adapt. kept: what the release kept before. All of the
        noise is drawn at once, on the CPU, so that it depends neither on devices nor on workers.
        """
        whole, put_back = self.covered(sums)
        norm, clip = float(whole.norm()), noise.clip if adapted is None else adapted
        longest = clip * stretch_of(self._after, len(whole))
        std = noise.scale * self._release.bound(longest, len(whole)) if noise.scale else 0.0

        def keyed(*ids: int) -> torch.Generator:
            return torch.Generator().manual_seed(torch_seed(self._seed, "release", *ids))

        of = Summed(whole, std, noise.weight, noise.updates)
        found, after = self._release.add(of, version, kept, keyed)
        noised = sums if found is whole else put_back(found)
        columns: Numbers = {"clip": clip if math.isfinite(clip) else None, "noise_std": std, "signal_norm": norm}
        return Released(noised, after, columns)
