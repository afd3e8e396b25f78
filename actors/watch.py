"""Looks after the workers of a pool on Ray: who does not answer, who waits for a node, and for whom there is room."""

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from actors.crew import Crew
from actors.pool import JobFailed
from actors.worker import Worker, interval

LOOK_S = 2.0  # seconds between looks for room, and for workers that wait for a node
LEAST_WAIT_S = 120.0  # seconds that a run always waits for a node, because Ray takes a while to see that one is lost


class Gone(NamedTuple):
    """A worker that must be replaced."""

    worker: Worker
    cause: str
    blame: bool  # whether its job may be the cause


class Watch:
    """Looks after workers whenever it is asked, though not too often."""

    def __init__(self, crews: Mapping[str, Crew], patience_s: float | None, wait_s: float) -> None:
        """crews: those of all groups; they may change. patience_s: how long a worker may be silent; None: for ever.
        wait_s: how long workers may wait for a node while nothing else goes on, if that is more than LEAST_WAIT_S."""
        self._crews, self._patience_s = crews, patience_s
        self._wait_s = max(wait_s, LEAST_WAIT_S)
        self._pinged = self._looked = time.monotonic()
        self.moved = time.monotonic()  # when a worker was last seen to do anything

    def gone(self) -> Iterator[Gone]:
        """Yields the workers that must be replaced now. Lets further workers join where there is room.

        Raises JobFailed if workers have waited for a node for too long, and nothing else goes on.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            yield from self._in_the_way(now)
        if self._patience_s is not None and (passed := now - self._pinged) >= interval(self._patience_s):
            self._pinged = now
            for crew in self._crews.values():
                for worker in crew.silent(passed, self._patience_s):
                    yield Gone(worker, f"{worker.name} has not answered for {worker.pulse.silent_s:.0f} s", True)

    def _in_the_way(self, now: float) -> Iterator[Gone]:
        """Yields a worker without a place of its own if others, which have one, wait for a node."""
        late = [worker for crew in self._crews.values() for worker in crew.late()]
        if not late:
            for crew in self._crews.values():
                crew.grow()
            return
        if further := [worker for crew in self._crews.values() for worker in crew.further()]:
            yield Gone(further[-1], f"{late[0].name} needs its room", False)
            return
        stands_s = min(now - self.moved, max(worker.waits_s for worker in late))
        working = any(worker.jobs for crew in self._crews.values() for worker in crew.workers if worker.node_id)
        if stands_s >= self._wait_s and not working:
            cause = f"no node has had room for it for {stands_s:.0f} s, and nothing else can go on; resume the run when"
            raise JobFailed(late[0].name, f"{cause} there is one, or let it wait longer with resources.wait_s", "")
