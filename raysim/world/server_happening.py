"""What happens in a run with a server, as its timeline tells it."""

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raysim.terms import Arrival, ModelKey, Moment
from raysim.world.clock import Horizon


class Dispatched(NamedTuple):
    """A client that was picked."""

    serial: int  # number of the dispatch in the run
    client: int
    number: int  # dispatches of this client before it
    round: int
    version: int  # of the model that it received
    time: float
    arrives: float  # when its update arrives, or would have
    reports: bool  # False: it never reports
    level: ModelKey = 1.0  # of the client's model
    had: int | None = None  # version that the client received for its last update that a step has used; None: none was

    @property
    def moment(self) -> Moment:
        """When it was picked."""
        return Moment(self.round, self.version, self.time)


class Started(NamedTuple):
    """A dispatch whose training must start now, because its arrival, or who is picked after it, depends on that."""

    dispatched: Dispatched  # its `arrives` is infinite if it depends on the work done
    version: int  # as in `dispatched`, and so are round and time
    round: int
    time: float


Status: TypeAlias = Literal["discarded", "dropped", "unfinished"]


class Ended(NamedTuple):
    """A dispatch whose update no step uses: it is late, dropped out, or unfinished at the end."""

    dispatched: Dispatched
    status: Status
    round: int
    time: float
    version: int  # server steps done so far
    staleness: float  # at its arrival or, if it did not arrive, at the end of the run

    @property
    def arrived(self) -> bool:
        """Whether the update came to the server, late or when too few others were there for a step."""
        return self.dispatched.reports and self.dispatched.arrives <= self.time


class Stepped(NamedTuple):
    """A server step."""

    version: int  # of the model that it makes
    round: int
    time: float
    members: tuple[Dispatched, ...]  # the dispatches whose updates it uses, in order
    arrivals: tuple[Arrival, ...]  # the members, as algorithms see them
    in_flight: int  # clients in flight after it

    @property
    def moment(self) -> Moment:
        """Right before the step."""
        return Moment(self.round, self.version - 1, self.time)


_arrival = partial(tuple.__new__, Arrival)  # sooner than by the class


def arrivals_of(
    members: Sequence[Dispatched],
    staleness: Sequence[float],
    samples: Sequence[int],
    tiers: NDArray[np.int64] | None,
) -> tuple[Arrival, ...]:
    """Returns the members of a step as algorithms see them. samples, tiers: of each client; None: it has no tiers."""
    if not members:
        return ()
    serials, clients, _, rounds, versions, _, _, _, levels, _ = zip(*members, strict=True)
    held, of = map(samples.__getitem__, clients), repeat(0) if tiers is None else tiers[[*clients]].tolist()
    widths = [1.0 if isinstance(level, str) else level for level in levels]
    names = [level if isinstance(level, str) else None for level in levels]
    every = zip(clients, serials, rounds, versions, staleness, held, of, widths, names, strict=False)
    return tuple(map(_arrival, every))


class Closed(NamedTuple):
    """The end of a round, or of a server step where the world has no rounds; or a moment within one at which the model
    is evaluated as it is then, because of the virtual time or because the run ends."""

    round: int
    time: float
    version: int
    in_flight: int
    evaluated: bool  # whether the model is evaluated after it
    ends: str | None = None  # what ends the run: rounds, updates, virtual_time, epsilon or clients; None: it continues
    early: str | None = None  # why the run ends within this round; None if it does not
    whole: bool = True  # whether the round is over

    @property
    def over(self) -> int:
        """Number of rounds that are over."""
        return self.round + self.whole

    def last_of(self, horizon: Horizon) -> Horizon:
        """Returns when the timeline ends if this is the evaluation that ends it. horizon: when it would end."""
        return horizon._replace(rounds=self.over) if self.whole else horizon._replace(time=self.time)


Happening: TypeAlias = Started | Ended | Stepped | Closed
