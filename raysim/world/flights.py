"""The dispatches of a timeline with a server: those under way, and those that have arrived and wait for a step."""

from collections import Counter
from collections.abc import Iterable

from raysim.terms import Arrival
from raysim.world.server_happening import Dispatched

Waiting = tuple[int, Dispatched, Arrival]  # an update that has arrived; the dispatch's serial number comes first


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

    def use(self, arrived: list[Waiting]) -> tuple[tuple[Dispatched, ...], tuple[Arrival, ...]]:
        """Takes some of those that wait away, for a step. Returns their dispatches in order, and their arrivals."""
        serials, members, arrivals = zip(*sorted(arrived), strict=True) if arrived else ((), (), ())
        gone = set(serials)
        self.waiting = [one for one in self.waiting if one[0] not in gone]
        for dispatched in members:
            self.had[dispatched.client] = dispatched.version
        return members, arrivals

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
