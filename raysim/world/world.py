"""The simulated world: who is picked when, how long it takes, who is there."""

from typing import Literal, Self

from pydantic import model_validator

from raysim.part import Count, Part, Positive
from raysim.world.availability import Always, AnyAvailability, Dropout
from raysim.world.delay import AnyDelay, NoDelay


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
    def _exactly_one(self) -> Self:
        given = [key for key in ("per_round", "concurrency", "picks") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"must have exactly one of per_round, concurrency and picks, got {given or 'none'}")
        if self.round_s is not None and self.concurrency is not None:
            raise ValueError("round_s goes with per_round or picks: with concurrency in seconds there are no rounds")
        return self


class World(Part):
    """The world of a scenario. Time is in the unit of its delay: rounds or seconds."""

    dispatch: Dispatch
    delay: AnyDelay = NoDelay()
    availability: AnyAvailability = Always()
    dropout: Dropout = Dropout()
    staleness: Literal["rounds", "versions"] | None = None
    """Its unit: rounds or versions (server steps) between dispatch and arrival. Unset: rounds, if there are any."""

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
