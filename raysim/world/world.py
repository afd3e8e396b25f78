"""The simulated world: who is picked, how long updates take, who is available, what becomes of messages."""

from typing import Annotated, Literal, Self

from pydantic import model_validator

from raysim.part import Count, Fraction, OneOf, Part, Positive
from raysim.world.availability import AVAILABILITY, Always, Availability, Dropout
from raysim.world.delay import DELAYS, Delay, NoDelay
from raysim.world.edge_delay import EDGE_DELAYS, ConstantEdgeDelay, EdgeDelay


class Dispatch(Part):
    """Which clients are picked, by exactly one of `per_round`, `concurrency` and `picks`; never one in flight."""

    per_round: Count | None = None
    """Number of idle clients that are picked at the start of every round, uniformly at random."""
    concurrency: Count | None = None
    """Number of clients to keep in flight. They are picked at the start of rounds or, with delays in seconds, whenever
    others arrive."""
    picks: tuple[tuple[int, ...], ...] | None = None
    """Clients to pick: for each round, a list of their numbers."""
    round_s: Positive | None = None
    """Length of a round in seconds, if delays are in seconds. null: a round then ends with its last arrival."""

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if len(self.given) > 1:
            raise ValueError(f"must have exactly one of per_round, concurrency and picks, got {self.given}")
        if self.round_s is not None and self.concurrency is not None:
            raise ValueError("round_s goes with per_round or picks: with concurrency in seconds there are no rounds")
        return self

    @property
    def given(self) -> list[str]:
        """Which of the three keys are set; none if there is no server."""
        return [key for key in ("per_round", "concurrency", "picks") if getattr(self, key) is not None]

    @property
    def size(self) -> int | None:
        """Largest number of clients that a round picks; None with `concurrency`."""
        return max((len(picked) for picked in self.picks), default=None) if self.picks else self.per_round


class World(Part):
    """The simulated world. All its times are in the unit of its delay: rounds or seconds."""

    dispatch: Dispatch = Dispatch()
    """Which clients are picked, and when. Needed with a server; without one, all peers train all the time."""
    delay: Annotated[Delay, OneOf(DELAYS, "raysim.delays")] = NoDelay()
    """How long a client takes from dispatch to arrival or, without a server, how long a peer's training takes."""
    availability: Annotated[Availability, OneOf(AVAILABILITY, "raysim.availability")] = Always()
    """Which clients can be picked at what time."""
    dropout: Dropout = Dropout()
    """How often picked clients never report."""
    staleness: Literal["rounds", "versions"] | None = None
    """Unit of staleness: rounds or versions (server steps) from dispatch to arrival. null: rounds, if there are any."""
    synchronous: bool = True
    """For peers only. true: all wait for all, round by round. false: each peer mixes when its own training is over."""
    edge_delay: Annotated[EdgeDelay, OneOf(EDGE_DELAYS, "raysim.edge_delays")] = ConstantEdgeDelay(value=0.0)
    """For peers only: how long a message to a neighbour takes, in seconds."""
    loss: Fraction = 0.0
    """For peers only: probability that a message to a neighbour is lost."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.dispatch.round_s is not None and self.delay.unit == "rounds":
            raise ValueError("dispatch.round_s needs a delay in seconds, got one in rounds")
        if self.staleness == "rounds" and not self.has_rounds:
            raise ValueError("staleness must be versions where delays are in seconds and dispatch keeps a concurrency")
        return self

    @property
    def has_rounds(self) -> bool:
        """Whether clients are picked at the start of rounds, instead of whenever one has arrived."""
        return self.delay.unit == "rounds" or self.dispatch.concurrency is None

    @property
    def round_length(self) -> float | None:
        """Length of a round, in the unit of time; None if it ends with its last arrival, or if there are no rounds."""
        return 1.0 if self.delay.unit == "rounds" else self.dispatch.round_s

    @property
    def staleness_unit(self) -> Literal["rounds", "versions"]:
        """Unit of staleness: `staleness` or, if it is not set, rounds if there are rounds, else versions."""
        return self.staleness or ("rounds" if self.has_rounds else "versions")
