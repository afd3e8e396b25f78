"""Keeps the workforces of runs that are over, for next runs that they can carry out."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from actors.placement import Demand, Placement, left, refuse_too_small, reserved
from actors.pool import MissingResources
from actors.workforce import Terms, Workforce

MOST = 3  # workforces that wait at a time
IDLE_S = 60.0  # seconds that a workforce waits for its next run, unless a session is held


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
            while self._waiting and (len(self._waiting) >= MOST or demand.takes_all or not demand.fits(free)):
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
