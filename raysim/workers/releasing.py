"""What the server keeps and does for clipped updates: the bound of `uplink` that follows their norms, which each
message carries, and the noise of `release` on the sums of a step, at one place for all algorithms."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from raysim.parts.errors import BadInput, BadValue
from raysim.parts.rng import torch_seed
from raysim.privacy.release import Summed
from raysim.scenario import Scenario
from raysim.terms import Arrival, Population, Record
from raysim.uplink.noise import NormBound, adapting, bounded, stretch_of
from raysim.uplink.uplink import Uplink
from raysim.workers import records
from raysim.workers.replies import Numbers
from raysim.workers.requests import StepNoise, StepRequest
from raysim.workers.sending import Sending

NAME = "uplink.max"  # of its entry in records


class Adapting:
    """Keeps, sends and changes the bound that adapts, if there is one.

    Its entry holds, in the server's state, the bound of each version of the model so far, (versions,); in a message,
    the newest one, 0-d; and in an update, 1 if that was not longer than it, else 0. Algorithms see none of these.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._seed, self._place = scenario.seed, adapting(scenario.uplink) if scenario.uplink else None
        self._part = scenario.uplink[self._place] if self._place is not None else None

    def apart(self, record: Record) -> tuple[Record, Record]:
        """Returns a record as algorithms see it, and the bound's entry."""
        return records.split(record, NAME) if self._part else (record, {})

    def first(self, like: Tensor) -> Record:
        """Returns the entry in the server's first state. like: a tensor on the device."""
        return {NAME: like.new_tensor([self._part.bound])} if self._part else {}

    def sent(self, kept: Record) -> Record:
        """Returns the entry of a message. kept: that of the state."""
        return {name: bounds[-1] for name, bounds in kept.items()}

    def bounded(self, transforms: Sequence[Uplink], sent: Record) -> Sequence[Uplink]:
        """Returns transforms with the bound that came with a message."""
        if not self._part:
            return transforms
        changed = {"max": float(sent[NAME])}
        return [one.model_copy(update=changed) if n == self._place else one for n, one in enumerate(transforms)]

    def counted(self, measured: Mapping[str, float | None], like: Tensor) -> Record:
        """Returns the entry of an update. measured: columns of the table `updates`."""
        return {NAME: like.new_tensor(1.0 - (measured.get("clipped") or 0.0))} if self._part else {}

    def largest(self, kept: Record, arrivals: Sequence[Arrival]) -> float | None:
        """Returns the largest bound by which updates were clipped; None if it does not adapt."""
        return max(float(kept[NAME][arrival.version]) for arrival in arrivals) if kept else None

    def after(self, kept: Record, counts: Record, request: StepRequest, population: Population) -> Record:
        """Returns the entry in the server's state after a step. counts: the sum by weights, or the stack, of those of
        updates; {} if none arrived."""
        if not isinstance(self._part, NormBound) or not self._part.adapt:
            return {}
        weights = []
        for one in request.weights or [1.0] * len(request.arrivals):
            if isinstance(one, Mapping):
                raise BadValue("uplink: a bound that adapts needs one sum of updates, got several; leave adapt out")
            weights.append(abs(one))
        adapt, bound, largest = self._part.adapt, kept[NAME][-1], max(weights, default=0.0)
        if largest:
            draw = torch.Generator().manual_seed(torch_seed(self._seed, "uplink count", request.version))
            std = request.noise.count_std if request.noise else adapt.count_noise or 0.0
            noise = std * float(torch.randn((), generator=draw))
            number = population.expected or sum(weights) / largest
            share = (counts[NAME].sum() / largest + noise) / number
            bound = bound * (adapt.rate * (adapt.quantile - share)).exp()
        return {NAME: torch.cat((kept[NAME], bound[None]))}


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
