"""How long messages from peer to peer take."""

from typing import ClassVar, Literal

from raysim.parts.rng import Stream
from raysim.world import distribution


class EdgeDelay(distribution.Distribution):
    """How long messages between neighbours take, in seconds."""

    drawn_in: ClassVar[str] = "s"

    redraw: Literal["message", "edge"] = "message"
    """When a delay is drawn. message: for each message. edge: once for each pair of neighbours; it then holds both ways
    during the whole run."""

    def durations(self, stream: Stream, source: int, number: int, targets: tuple[int, ...]) -> list[float]:
        """Returns the delay of a peer's message `number` (0, 1, ...) to each target.

        stream: keyed draws of this run's messages.
        """
        if self.redraw == "edge":
            return [self.draw(stream(min(source, target), max(source, target))) for target in targets]
        generator = stream(source, number)
        return [self.draw(generator) for _ in targets]


class ConstantEdgeDelay(EdgeDelay, distribution.Constant):
    """All messages take the same time."""

    name: str = "constant"


class HalfNormalEdgeDelay(EdgeDelay, distribution.HalfNormal):
    """Messages take |N(0, sigma^2)|, on average 0.8 sigma."""

    name: str = "half_normal"


class LogNormalEdgeDelay(EdgeDelay, distribution.LogNormal):
    """Messages take median * exp(sigma * N(0, 1)): a few are very slow."""

    name: str = "log_normal"


class UniformEdgeDelay(EdgeDelay, distribution.Uniform):
    """Messages take between `low` and `high`, uniformly."""

    name: str = "uniform"


class ExponentialEdgeDelay(EdgeDelay, distribution.Exponential):
    """Messages take an exponentially distributed time with the given mean."""

    name: str = "exponential"


EDGE_DELAYS: tuple[type[EdgeDelay], ...] = (
    ConstantEdgeDelay,
    HalfNormalEdgeDelay,
    LogNormalEdgeDelay,
    UniformEdgeDelay,
    ExponentialEdgeDelay,
)
