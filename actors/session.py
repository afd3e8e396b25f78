"""Who uses the cluster: runs that share it, and workforces that wait for the next run that they can carry out."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TypeVar

import ray

from actors.placement import Demand, Placement, left, refuse_too_small, reserved, together
from actors.pool import MissingResources
from actors.workforce import Terms, Workforce

Answer = TypeVar("Answer")

MOST = 3  # workforces that wait at a time
IDLE_S = 60.0  # seconds that a workforce waits for its next run, unless a session is held


class Budget:
    """Shares the resources of a cluster among runs: a run that asks for more than is left waits. Threads may share it.

    At least one runs. most: how many may run at a time; None: as many as there is room for.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._spent: list[Demand] = []
        self._changed = threading.Condition()

    def spend(self, demand: Demand, run: Callable[[], Answer]) -> Answer:
        """Waits until there is room for the demand, then calls what spends it, and returns what that returns.

        If it raises MissingResources while others run, because no single node has room, it is tried again after them.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._has_room(demand))
                others = len(self._spent)
                self._spent.append(demand)
            try:
                return run()
            except MissingResources:
                if not others:
                    raise
            finally:
                with self._changed:
                    self._spent.remove(demand)
                    self._changed.notify_all()
            with self._changed:
                self._changed.wait_for(partial(self._fewer_than, others))

    def _fewer_than(self, others: int) -> bool:
        return len(self._spent) < others

    def _has_room(self, demand: Demand) -> bool:
        if not self._spent:
            return True
        if self._most is not None and len(self._spent) >= self._most:
            return False
        have = ray.cluster_resources()  # asked anew, because the cluster may have grown
        wanted = together([demand.total, *(spent.total for spent in self._spent)])
        return all(amount <= have.get(kind, 0) for kind, amount in wanted.items())


class Session:
    """Hires workforces for runs. A run gets one that waits, if there is one that can carry it out, else a new one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: dict[Workforce, threading.Timer | None] = {}  # each ends when its timer does
        self._held = 0

    @contextmanager
    def hired(self, terms: Terms) -> Iterator[Workforce]:
        """Yields a workforce, which nobody else has meanwhile.

        Raises MissingResources if the cluster has no room for a new one. Others that wait are ended where they take it.
        """
        if found := self._found(terms):
            yield from self._lent(found)
            return
        with ExitStack() as held:
            yield from self._lent(Workforce(terms, self._room(terms.demand, held)))

    def _room(self, demand: Demand, held: ExitStack) -> Placement:
        refuse_too_small(demand)  # and end nobody for it
        self._make_room(demand)
        try:
            return held.enter_context(reserved(demand))
        except MissingResources:  # there is enough in all, but not on the nodes where it is wanted
            if not self._waiting:
                raise
        self.shutdown()
        return held.enter_context(reserved(demand))

    def _make_room(self, demand: Demand) -> None:
        """Ends those that have waited longest, as many as it takes."""
        with self._lock:
            free, ended = left(one.terms.demand for one in self._waiting), []
            while self._waiting and (len(self._waiting) >= MOST or not demand.fits(free)):
                ended.append(oldest := next(iter(self._waiting)))
                self._take(oldest)
                for kind, amount in oldest.terms.demand.total.items():
                    free[kind] = free.get(kind, 0.0) + amount
        for workforce in ended:
            workforce.end()

    def _found(self, terms: Terms) -> Workforce | None:
        with self._lock:
            for workforce in [one for one in self._waiting if one.terms == terms]:
                self._take(workforce)
                if workforce.answers:
                    return workforce
                workforce.end()
        return None

    def _take(self, workforce: Workforce) -> None:
        if timer := self._waiting.pop(workforce):
            timer.cancel()

    def _lent(self, workforce: Workforce) -> Iterator[Workforce]:
        try:
            yield workforce
        finally:
            if workforce.is_started:
                with self._lock:
                    self._waiting[workforce] = None if self._held else self._timer(workforce)

    def _timer(self, workforce: Workforce) -> threading.Timer:
        timer = threading.Timer(IDLE_S, self._expire, (workforce,))
        timer.daemon = True
        timer.start()
        return timer

    def _expire(self, workforce: Workforce) -> None:
        with self._lock:
            if workforce not in self._waiting:
                return  # it was hired at the last moment
            del self._waiting[workforce]
        workforce.end()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lets workforces wait for as long as the block lasts, then ends them."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self.shutdown()

    def shutdown(self) -> None:
        """Ends all workforces that wait."""
        with self._lock:
            ended = list(self._waiting)
            for workforce in ended:
                self._take(workforce)
        for workforce in ended:
            workforce.end()


SESSION = Session()  # of this process, as Ray has one connection for each process
