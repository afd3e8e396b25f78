"""A delay: say here what it models."""

from raysim.parts.part import Fraction, Positive
from raysim.parts.rng import Stream
from raysim.world.delay import Cost, Delay, TimeUnit


class DelayTemplate(Delay):
    """Some clients are slow, always; the others are fast."""

    name: str = "template"
    unit: TimeUnit = "seconds"
    share: Fraction = 0.2
    """Share of the clients that are slow."""
    fast: Positive = 1.0
    """How long a fast client takes, in `unit`."""
    slow: Positive = 10.0
    """How long a slow client takes, in `unit`."""

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        # stream(client) draws once for each client, stream(client, number) for each of its dispatches
        return self.slow if stream(client).random() < self.share else self.fast

    @property
    def least(self) -> float:  # a lower bound of all delays
        return min(self.fast, self.slow)
