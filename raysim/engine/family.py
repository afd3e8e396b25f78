"""What differs between runs with a server and runs of peers, behind one protocol."""

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

Happening = TypeVar("Happening")
Waiting = TypeVar("Waiting", bound=Pending)
Records = TypeVar("Records", bound=Recorder)


class Final(NamedTuple):
    """What a run leaves beside its tables: flat vectors `w` and `buffers`, a row a peer or a client where there are
    several."""

    model: dict[str, np.ndarray]
    clients: dict[str, np.ndarray] | None  # clients' own models, and `client`, their numbers; None: they are not kept


class Simulation(Protocol[Happening, Waiting]):
    """A run that has started: its workers are made, and its data are loaded."""

    described: Described
    stopwatch: Stopwatch
    ahead: int
    """So many jobs may be handed out that are not done: enough that no worker waits, few enough that few model versions
    and updates are alive."""

    def happenings(self) -> Iterator[Happening]:
        """The timeline, in order."""

    def hand_out(self, happening: Happening) -> Waiting | None:
        """Submits the jobs of something on the timeline. None: it has none."""

    def record(self, happening: Happening, pending: Waiting | None) -> Mark | None:
        """Writes what happened, once its jobs are done. Returns a mark at the end of a round."""

    def finish(self) -> Final:
        """What is left to do after the timeline."""


class Family(Protocol[Records]):
    """How algorithms of one kind are run."""

    @property
    def groups(self) -> Sequence[Group]:
        """The workers that a run needs."""

    def recorder(self, writer: Writer) -> Records:
        """A recorder of nothing yet."""

    def start(self, pool: Pool, recorder: Records) -> Simulation[Any, Any]:
        """Makes the workers and loads the data. Raises JobFailed where that fails."""

    def dry(self, recorder: Records) -> None:
        """Writes the timeline alone: nothing is trained."""
