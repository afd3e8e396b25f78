"""The simulated world: who is picked when, how long it takes, who is there, what becomes of messages."""

from typing import Annotated, Literal, Self

from pydantic import model_validator

from raysim.part import Count, Fraction, OneOf, Part, Positive
from raysim.world.availability import AVAILABILITY, Always, Availability, Dropout
from raysim.world.delay import DELAYS, Delay, NoDelay
from raysim.world.edge_delay import EDGE_DELAYS, ConstantEdgeDelay, EdgeDelay


class Dispatch(Part):
    """Who is picked: exactly one of `per_round`, `concurrency` and `picks`. A client in flight is not picked again."""

    per_round: Count | None = None
    """So many idle clients are picked at the start of every round, uniformly."""
    concurrency: Count | None = None
    """Enough are picked to keep so many in flight: at the start of rounds, or, with delays in seconds, at any time."""
    picks: tuple[tuple[int, ...], ...] | None = None
    """The clients of each round, by number, as lists."""
    round_s: Positive | None = None
    """With delays in seconds, a round lasts so long; without it, until the last picked client has reported."""

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if len(self.given) > 1:
            raise ValueError(f"must have exactly one of per_round, concurrency and picks, got {self.given}")
        if self.round_s is not None and self.concurrency is not None:
            raise ValueError("round_s goes with per_round or picks: with concurrency in seconds there are no rounds")
        return self

    @property
    def given(self) -> list[str]:
        """Which of the three; none where there is no server."""
        return [key for key in ("per_round", "concurrency", "picks") if getattr(self, key) is not None]

    @property
    def size(self) -> int | None:
        """How many clients are picked in a round, at most; None where they are picked as others arrive."""
        return max((len(picked) for picked in self.picks), default=None) if self.picks else self.per_round


class World(Part):
    """The world of a scenario. Time is in the unit of its delay: rounds or seconds."""

    dispatch: Dispatch = Dispatch()
    """Needed with a server; peers are all at work, always."""
    delay: Annotated[Delay, OneOf(DELAYS)] = NoDelay()
    availability: Annotated[Availability, OneOf(AVAILABILITY)] = Always()
    dropout: Dropout = Dropout()
    staleness: Literal["rounds", "versions"] | None = None
    """Its unit: rounds or versions (server steps) between dispatch and arrival. Unset: rounds, if there are any."""
    synchronous: bool = True
    """Of peers: all wait for all, round by round. false: each mixes whenever its own training is over."""
    edge_delay: Annotated[EdgeDelay, OneOf(EDGE_DELAYS)] = ConstantEdgeDelay(value=0.0)
    """Of a message from peer to peer, in seconds."""
    loss: Fraction = 0.0
    """Probability that a message from peer to peer is lost."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.dispatch.round_s is not None and self.delay.unit == "rounds":
            raise ValueError("dispatch.round_s needs a delay in seconds, got one in rounds")
        if self.staleness == "rounds" and not self.has_rounds:
            raise ValueError("staleness must be versions where delays are in seconds and dispatch keeps a concurrency")
        return self

    @property
    def has_rounds(self) -> bool:
        """Whether clients are picked at the start of rounds, not whenever one has arrived."""
        return self.delay.unit == "rounds" or self.dispatch.concurrency is None

    @property
    def round_length(self) -> float | None:
        """In the unit of time. None: a round lasts until its last arrival, or there are no rounds at all."""
        return 1.0 if self.delay.unit == "rounds" else self.dispatch.round_s

    @property
    def staleness_unit(self) -> Literal["rounds", "versions"]:
        return self.staleness or ("rounds" if self.has_rounds else "versions")
