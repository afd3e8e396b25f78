"""How long a client takes from dispatch to arrival."""

import math
from abc import abstractmethod
from typing import Literal, NamedTuple, Self

from pydantic import model_validator

from raysim.part import NonNegative, Part
from raysim.rng import Stream
from raysim.world import distribution

Unit = Literal["rounds", "seconds"]


class Work(NamedTuple):
    """What one client's update costs."""

    flops: float  # of local training
    down_bytes: int
    up_bytes: int


class Delay(Part):
    """A model of delays, in `unit`. A subclass adds its `name`."""

    name: str
    unit: Unit
    """Of delays, and so of all virtual time."""

    @abstractmethod
    def duration(self, stream: Stream, client: int, number: int, work: Work | None) -> float:
        """Of the client's dispatch `number` (0, 1, ...). stream: keyed draws of this run's delays."""

    @property
    def least(self) -> float:
        """No delay is shorter."""
        return 0.0

    @property
    def needs_work(self) -> bool:
        """Whether `duration` must be told the work."""
        return False


class NoDelay(Delay):
    """Every update arrives at once, in the round of its dispatch."""

    name: str = "none"
    unit: Unit = "rounds"

    def duration(self, stream: Stream, client: int, number: int, work: Work | None) -> float:
        return 0.0


_ROUNDING = {"floor": math.floor, "nearest": lambda d: math.floor(d + 0.5), "ceil": math.ceil, "none": lambda d: d}


class RandomDelay(Delay, distribution.Distribution):
    """A draw for each dispatch, or one for each client.

    In rounds, an update dispatched in round k with delay d arrives in round k + d, and d is rounded (down, unless the
    scenario says otherwise; Feddle, appendix D). With rounding "ceil" nothing arrives in the round of its dispatch.
    """

    unit: Unit = "rounds"
    redraw: Literal["dispatch", "client"] = "dispatch"
    """dispatch: a draw for each dispatch. client: one for each client, whose delay then stays the same."""
    rounding: Literal["floor", "nearest", "ceil", "none"] = "floor"
    """Of delays in rounds, to whole ones; delays in seconds are not rounded."""

    @property
    def least(self) -> float:
        low, high = self.bounds
        if self.unit == "rounds" and self.rounding == "ceil" and low < high:
            return math.floor(low) + 1.0  # a draw of exactly `low` never comes
        return self._rounded(low)

    def duration(self, stream: Stream, client: int, number: int, work: Work | None) -> float:
        return self._rounded(self.draw(stream(client, number) if self.redraw == "dispatch" else stream(client)))

    def _rounded(self, delay: float) -> float:
        return delay if self.unit == "seconds" else float(_ROUNDING[self.rounding](delay))


class ConstantDelay(RandomDelay, distribution.Constant):
    """The same delay always."""

    name: str = "constant"


class HalfNormalDelay(RandomDelay, distribution.HalfNormal):
    """|N(0, sigma^2)| (Feddle, FedBuff)."""

    name: str = "half_normal"


class LogNormalDelay(RandomDelay, distribution.LogNormal):
    """median * exp(sigma * N(0, 1)): a few are very slow."""

    name: str = "log_normal"


class UniformDelay(RandomDelay, distribution.Uniform):
    """Evenly between `low` and `high` (FedAsync's simulated staleness)."""

    name: str = "uniform"


class ExponentialDelay(RandomDelay, distribution.Exponential):
    """Exponential with the given mean."""

    name: str = "exponential"


class ComputeDelay(Delay):
    """FLOPs over the client's speed, plus bytes over its bandwidth, plus a latency."""

    name: str = "compute"
    unit: Literal["seconds"] = "seconds"
    flops_per_s: distribution.AnyDistribution
    """Of a client's device; a draw for each client."""
    up_bytes_per_s: distribution.AnyDistribution
    """Of a client's uplink; a draw for each client."""
    down_bytes_per_s: distribution.AnyDistribution
    """Of a client's downlink; a draw for each client."""
    latency_s: NonNegative = 0.0
    """Added to every delay."""

    @model_validator(mode="after")
    def _speeds_are_positive(self) -> Self:
        for key in ("flops_per_s", "up_bytes_per_s", "down_bytes_per_s"):
            speed: distribution.Distribution = getattr(self, key)
            if speed.bounds[1] == 0:
                raise ValueError(f"`{key}` must be positive, got a distribution of zeros: {speed!r}")
        return self

    @property
    def least(self) -> float:
        return self.latency_s

    def duration(self, stream: Stream, client: int, number: int, work: Work | None) -> float:
        if work is None:
            raise ValueError("delay compute: needs the work of an update")
        generator = stream(client)
        speed, up, down = (d.draw(generator) for d in (self.flops_per_s, self.up_bytes_per_s, self.down_bytes_per_s))
        if min(speed, up, down) <= 0:
            drawn = f"{speed!r}, {up!r}, {down!r} for client {client}"
            raise ValueError(f"world.delay: speeds must be positive, got {drawn}; take distributions without zero")
        return self.latency_s + work.flops / speed + work.up_bytes / up + work.down_bytes / down

    @property
    def needs_work(self) -> bool:
        return True


class ScriptedDelay(Delay):
    """Delays as lists: client i's first, second ... dispatch takes delays[i][0], delays[i][1] ..."""

    name: str = "scripted"
    unit: Unit = "rounds"
    delays: tuple[tuple[NonNegative, ...], ...]
    """A list for each client, with a delay for each of its dispatches."""

    @property
    def least(self) -> float:
        return min((delay for of_client in self.delays for delay in of_client), default=0.0)

    def duration(self, stream: Stream, client: int, number: int, work: Work | None) -> float:
        scripted = self.delays[client] if client < len(self.delays) else ()
        if number >= len(scripted):
            raise ValueError(
                f"world.delay.delays: must hold a delay for every dispatch, got {len(scripted)} for client {client}, "
                f"which is dispatched once more; add one"
            )
        return scripted[number]


DELAYS: tuple[type[Delay], ...] = (
    NoDelay,
    ConstantDelay,
    HalfNormalDelay,
    LogNormalDelay,
    UniformDelay,
    ExponentialDelay,
    ComputeDelay,
    ScriptedDelay,
)
