"""What happens in a run with a server, as its timeline tells it."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

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


class Ended(NamedTuple):
    """A dispatch whose update no step uses: it is late, dropped out, or unfinished at the end."""

    dispatched: Dispatched
    status: Literal["discarded", "dropped", "unfinished"]
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


class Closed(NamedTuple):
    """The end of a round, or of a server step where the world has no rounds; or a moment within one at which the model
    is evaluated as it is then, because of the virtual time or because the run ends."""

    round: int
    time: float
    version: int
    in_flight: int
    evaluated: bool  # whether the model is evaluated after it
    ends: str | None = (
        None  # what ends the run here: rounds, updates, virtual_time, epsilon or clients; None if it continues
    )
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


Waiting = tuple[int, Dispatched, float]  # an update that has arrived: its serial number, its dispatch, its staleness


class Flights:
    """The dispatches of a run that no step has used yet, and what is counted of all. clients: how many there are."""

    def __init__(self, clients: int) -> None:
        self.serial = 0  # of the next dispatch
        self.numbers = [0] * clients  # of dispatches, by client
        self.had: list[int | None] = [None] * clients  # by client: as `Dispatched.had`
        self.flying: dict[int, Dispatched] = {}  # by serial
        self.waiting: list[Waiting] = []
        self.live: Counter[int] = Counter()  # by version: number of later updates that start from it

    def add(self, dispatched: Dispatched, matters: bool) -> None:
        """Takes note of the next dispatch. matters: whether a step may use its update."""
        self.serial += 1
        self.numbers[dispatched.client] += 1
        self.flying[dispatched.serial] = dispatched
        if matters:
            self.live[dispatched.version] += 1

    def follow(self, serial: int, version: int) -> None:
        """Takes note of dispatches of a version, all of which matter. serial: of the next one."""
        if serial > self.serial:
            self.live[version] += serial - self.serial
        self.serial = serial

    def use(self, arrived: list[Waiting]) -> tuple[tuple[Dispatched, ...], tuple[float, ...]]:
        """Takes some of those that wait away, for a step. Returns their dispatches in order, and their staleness."""
        serials, members, staleness = zip(*sorted(arrived), strict=True) if arrived else ((), (), ())
        gone = set(serials)
        self.waiting = [one for one in self.waiting if one[0] not in gone]
        return members, staleness

    def release(self, ended: Iterable[Dispatched]) -> None:
        """Lets go of the versions from which updates start that have ended."""
        for version, updates in Counter(dispatched.version for dispatched in ended).items():
            self.live[version] -= updates
            if self.live[version] == 0:
                del self.live[version]

    def end_of_round(self, round: int, wanted: int | None) -> float | None:
        """Returns when a round without a fixed length ends: with its last arrival, or as soon as so many clients as are
        wanted have reported. If it picked nobody, with the next arrival of an earlier round; None if there is none."""
        picked = [dispatched for dispatched in self.flying.values() if dispatched.round == round]
        reported = sorted(dispatched.arrives for dispatched in picked if dispatched.reports)
        if wanted is not None and len(reported) >= wanted:
            return reported[wanted - 1]
        if picked:
            return max(dispatched.arrives for dispatched in picked)
        return min((dispatched.arrives for dispatched in self.flying.values()), default=None)
