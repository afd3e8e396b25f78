"""What differs between runs with a server and runs of peers. The engine's loop sees both through these protocols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from actors import Group, Pool
from raysim.engine.pending import Pending
from raysim.engine.progress import Mark, Stopwatch
from raysim.engine.recorder import Recorder
from raysim.workers.replies import Described
from results import Writer

HappeningT = TypeVar("HappeningT")  # something on a timeline, such as a server step or the end of a round
PendingT = TypeVar("PendingT", bound=Pending)  # the jobs of a happening
RecorderT = TypeVar("RecorderT", bound=Recorder)


JOBS_AHEAD = 6  # jobs that are submitted and not yet done, for each client actor


class Final(NamedTuple):
    """The models that a run leaves beside its tables, as flat vectors `w` and `buffers`.

    The models of several peers or clients are rows of these arrays.
    """

    model: dict[str, np.ndarray]
    clients: dict[str, np.ndarray] | None  # clients' own models, with their numbers under `client`; None: not kept


class Simulation(Protocol[HappeningT, PendingT]):
    """A run that has started: its workers exist, and its data are loaded."""

    described: Described
    stopwatch: Stopwatch
    ahead: int
    """How many jobs may be submitted and not yet done. More keep all workers busy; fewer keep fewer model versions and
    updates in memory."""

    def happenings(self) -> Iterator[HappeningT]:
        """Returns the happenings of the timeline, in order."""

    def hand_out(self, happening: HappeningT) -> PendingT | None:
        """Submits the jobs of a happening and returns them; None if it has none."""

    def record(self, happening: HappeningT, pending: PendingT | None) -> Mark | None:
        """Writes a happening to the tables, once its jobs are done. Returns a mark if it ends a round, else None."""

    def finish(self) -> Final:
        """Does what is left after the timeline, and returns the final models."""


class Family(Protocol[RecorderT]):
    """How algorithms of one kind are run: those with a server, or those without."""

    @property
    def groups(self) -> Sequence[Group]:
        """The workers that a run needs."""

    def recorder(self, writer: Writer) -> RecorderT:
        """Returns a new recorder, which writes to the writer's tables."""

    def start(self, pool: Pool, recorder: RecorderT) -> Simulation[Any, Any]:
        """Starts a run: makes the workers and loads the data. Raises JobFailed if that fails."""

    def dry(self, recorder: RecorderT) -> None:
        """Writes the timeline to the recorder, and trains nothing."""
