"""How long a client takes from dispatch to arrival."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raysim.parts.errors import BadInput, BadValue
from raysim.parts.part import NonNegative, Part, Seconds, Unit, is_number
from raysim.parts.rng import Stream
from raysim.world import distribution

TimeUnit = Literal["rounds", "seconds"]


class Cost(NamedTuple):
    """What one client's update costs, or one training of a peer."""

    flops: float  # FLOPs of the training
    down_bytes: int
    up_bytes: int
    samples: float  # samples trained on, forward and backward; a sample that is only predicted counts as a third


class Delay(Part):
    """How long a client takes from dispatch to arrival, in `unit`. A subclass adds its `name`."""

    name: str
    unit: TimeUnit
    """Unit of delays, and so of all virtual time."""

    @abstractmethod
    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        """Returns the delay of the client's dispatch `number` (0, 1, ...).

        stream: keyed draws of this run's delays. cost: what the update costs; needed only if `needs_cost`.
        """

    def watts(self, stream: Stream, clients: int) -> list[float] | None:
        """Returns the power of each client while it is under way, in W, a positive number; None if it is not known."""
        return None

    def memory(self, stream: Stream, clients: int) -> list[float] | None:
        """Returns the memory of each client's device in bytes; None if it is not known."""
        return None

    def check(self, clients: int) -> None:
        """Raises ValueError if a file that it reads does not hold what so many clients need."""

    @property
    def least(self) -> float:
        """A lower bound of all delays."""
        return 0.0

    @property
    def needs_cost(self) -> bool:
        """Whether `duration` must be given the cost of the update."""
        return False


def duration_of(delay: Delay, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
    """Returns the delay of a dispatch. Raises ValueError unless it is a finite number that is not negative."""
    found = delay.duration(stream, client, number, cost)
    if type(found) is float and 0 <= found < math.inf:  # like most, which is found out sooner
        return found
    if not is_number(found) or not 0 <= found < math.inf:
        must = f"must return a finite number of {delay.unit}, 0 or more"
        raise BadInput("world.delay.duration", f"{must}, got {found!r} for client {client}, its dispatch {number}")
    return float(found)  # it may be a number of numpy, which JSON has none of


def first_delays(
    clients: NDArray[np.int64], delay: Delay, delays: Stream, cost: Callable[[int], Cost | None]
) -> NDArray[np.float64]:
    """Returns how long the first update of each of some clients takes or would take.

    delays: the stream of the run's delays. cost: returns the cost of a client's first update; None if none is needed.
    """
    return np.array([duration_of(delay, delays, client, 0, cost(client)) for client in clients.tolist()])


class NoDelay(Delay):
    """Every update arrives at once, in the round of its dispatch."""

    name: str = "none"
    unit: TimeUnit = "rounds"

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        return 0.0


_ROUNDING = {"floor": math.floor, "nearest": lambda d: math.floor(d + 0.5), "ceil": math.ceil, "none": lambda d: d}


class RandomDelay(Delay, distribution.Distribution):
    """A random delay, drawn for each dispatch or once for each client.

    In rounds, an update dispatched in round k with delay d arrives in round k + d. By default, d is rounded down (as in
    Feddle, appendix D). With rounding "ceil", nothing arrives in the round of its dispatch.
    """

    drawn_in: ClassVar[str] = "`unit`"

    unit: TimeUnit = "rounds"
    redraw: Literal["dispatch", "client"] = "dispatch"
    """When a delay is drawn. dispatch: for each dispatch. client: once for each client, whose delay stays the same."""
    rounding: Literal["floor", "nearest", "ceil", "none"] = "floor"
    """How delays in rounds are rounded to whole rounds; none: not at all. Delays in seconds are never rounded."""

    @property
    def least(self) -> float:
        low, high = self.bounds
        if self.unit == "rounds" and self.rounding == "ceil" and low < high:
            return math.floor(low) + 1.0  # because a draw is never exactly `low`
        return self._rounded(low)

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        drawn = self.draw(stream(client, number) if self.redraw == "dispatch" else stream(client))
        return drawn if self.unit == "seconds" else self._rounded(drawn)

    def _rounded(self, delay: float) -> float:
        return delay if self.unit == "seconds" else float(_ROUNDING[self.rounding](delay))


RANDOM_DELAYS = distribution.each_drawn(RandomDelay, "delays of updates")
ConstantDelay, HalfNormalDelay, LogNormalDelay, UniformDelay, ExponentialDelay = RANDOM_DELAYS


def _example(median: float) -> Any:
    """Returns an example of a speed's distribution, for `raysim list`."""
    return Field(examples=[{"name": "log_normal", "median": median, "sigma": 0.5}])


class ComputeDelay(Delay):
    """An update takes its FLOPs over the client's speed, plus its bytes over the bandwidth, plus a latency."""

    name: str = "compute"
    unit: Literal["seconds"] = "seconds"
    flops_per_s: Annotated[distribution.AnyDistribution, _example(1e10)]
    """Speed of a client's device, in FLOPs a second, drawn once for each client."""
    up_bytes_per_s: Annotated[distribution.AnyDistribution, _example(1e6)]
    """Bandwidth of a client's uplink, in bytes a second, drawn once for each client."""
    down_bytes_per_s: Annotated[distribution.AnyDistribution, _example(1e7)]
    """Bandwidth of a client's downlink, in bytes a second, drawn once for each client."""
    latency_s: Seconds = 0.0
    """Time added to every delay, in seconds."""

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

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        if cost is None:
            raise BadValue("compute needs the cost of an update")
        generator = stream(client)
        speed, up, down = (d.draw(generator) for d in (self.flops_per_s, self.up_bytes_per_s, self.down_bytes_per_s))
        if min(speed, up, down) <= 0:
            drawn = f"{speed!r}, {up!r}, {down!r} for client {client}"
            raise BadInput("world.delay", f"speeds must be positive, got {drawn}; take distributions without zero")
        return self.latency_s + cost.flops / speed + cost.up_bytes / up + cost.down_bytes / down

    @property
    def needs_cost(self) -> bool:
        return True


class ScriptedDelay(Delay):
    """Delays are given: client i's dispatches take delays[i][0], delays[i][1], ... in turn."""

    name: str = "scripted"
    unit: TimeUnit = "rounds"
    delays: Annotated[tuple[tuple[NonNegative, ...], ...], Field(examples=[[[0.0, 2.0], [1.0]]]), Unit("`unit`")]
    """A list for each client, with the delay of each of its dispatches, in `unit`."""

    @property
    def least(self) -> float:
        return min((delay for of_client in self.delays for delay in of_client), default=0.0)

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        scripted = self.delays[client] if client < len(self.delays) else ()
        if number >= len(scripted):
            raise BadValue(
                f"world.delay.delays: must hold a delay for every dispatch, got {len(scripted)} for client {client}, "
                "which is dispatched once more; add one"
            )
        return scripted[number]
