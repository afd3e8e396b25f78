"""The bound of `uplink` that follows the norms of updates: the server keeps it, and each message carries it."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from raysim.parts.errors import BadValue
from raysim.parts.rng import torch_seed
from raysim.scenario import Scenario
from raysim.terms import Arrival, Population, Record
from raysim.uplink.bounds import NormBound, adapting
from raysim.uplink.uplink import Uplink
from raysim.workers import records
from raysim.workers.requests import StepRequest

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
