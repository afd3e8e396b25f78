"""How long messages from peer to peer take."""

from typing import Literal

from raysim.rng import Stream
from raysim.world import distribution


class EdgeDelay(distribution.Distribution):
    """Of messages between neighbours, in seconds."""

    redraw: Literal["message", "edge"] = "message"
    """message: a draw for each message. edge: one for each two neighbours, the same both ways and always."""

    def durations(self, stream: Stream, source: int, number: int, targets: tuple[int, ...]) -> list[float]:
        """Of message `number` (0, 1, ...) of a peer to each target. stream: keyed draws of this run's messages."""
        if self.redraw == "edge":
            return [self.draw(stream(min(source, target), max(source, target))) for target in targets]
        generator = stream(source, number)
        return [self.draw(generator) for _ in targets]


class ConstantEdgeDelay(EdgeDelay, distribution.Constant):
    """The same delay always."""

    name: str = "constant"


class HalfNormalEdgeDelay(EdgeDelay, distribution.HalfNormal):
    """|N(0, sigma^2)|: mean 0.8 sigma."""

    name: str = "half_normal"


class LogNormalEdgeDelay(EdgeDelay, distribution.LogNormal):
    """median * exp(sigma * N(0, 1)): a few are very slow."""

    name: str = "log_normal"


class UniformEdgeDelay(EdgeDelay, distribution.Uniform):
    """Evenly between `low` and `high`."""

    name: str = "uniform"


class ExponentialEdgeDelay(EdgeDelay, distribution.Exponential):
    """Exponential with the given mean."""

    name: str = "exponential"


EDGE_DELAYS: tuple[type[EdgeDelay], ...] = (
    ConstantEdgeDelay,
    HalfNormalEdgeDelay,
    LogNormalEdgeDelay,
    UniformEdgeDelay,
    ExponentialEdgeDelay,
)
