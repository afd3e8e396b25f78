"""How the engine's loop sees runs with a server and runs of peers alike."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from actors import Job
from raysim.engine.committed import Change, Committed
from raysim.engine.progress import Mark, Stopwatch
from raysim.engine.rows import Happened
from raysim.workers.replies import Described

HappeningT = TypeVar("HappeningT", bound=Happened)  # something on a timeline, such as a server step
PendingT = TypeVar("PendingT", bound="Pending")  # the jobs of a happening


class Pending(ABC):
    """The jobs that a happening waits for. Properties of subclasses with results may be read once all jobs are done."""

    @property
    @abstractmethod
    def jobs(self) -> Sequence[Job[Any, Any]]:
        """All jobs of the happening."""

    @property
    def undone(self) -> int:
        """The number of jobs that are not done."""
        return sum(not job.done for job in self.jobs)


class Final(NamedTuple):
    """The models that a run leaves beside its tables, as flat vectors `w` and `buffers`.

    The models of several peers or clients are rows of these arrays.
    """

    model: dict[str, np.ndarray]
    clients: dict[str, np.ndarray] | None = None  # clients' own, with their numbers under `client`; None: not kept
    best: dict[str, np.ndarray] | None = None  # those of the best evaluation; None: not kept


class Simulation(Protocol[HappeningT, PendingT]):
    """A run that has started: its workers exist, and its data are loaded."""

    described: Described
    stopwatch: Stopwatch
    committed: Committed
    """The records that the run needs to go on from the happening that was written last."""

    def happenings(self) -> Iterator[HappeningT]:
        """Returns the happenings of the timeline, in order. A run that goes on starts after those already written."""

    def is_last(self, happening: HappeningT) -> bool:
        """Whether the happening is as it is because the run ends, as the last evaluation is. In a longer run it
        would differ."""

    def end(self) -> None:
        """Ends the run with the evaluation that was written last: as if it had no more rounds, or no more time.

        Jobs that were submitted since are forgotten, and `happenings` gives what is left of the timeline.
        """

    def hand_out(self, happening: HappeningT) -> tuple[PendingT | None, Change]:
        """Submits the jobs of a happening. Returns them, or None if it has none, and what the happening changes."""

    def record(self, happening: HappeningT, pending: PendingT | None) -> Mark | None:
        """Writes a happening to the tables, once its jobs are done. Returns a mark if it ends a round, else None."""

    def memory(self) -> dict[str, Any]:
        """Returns what a checkpoint must hold beside records, as plain data."""

    def model_keys(self) -> list[str]:
        """Returns the keys of the records of the last model, or of the models of peers when they were last kept."""

    def finish(self) -> Final:
        """Does the work that is left after the timeline, and returns the final models."""

    def left(self) -> tuple[Final, dict[str, Any]] | None:
        """Returns the last good models of a run that ends early, and their step, round and virtual time.

        That is the last model that was written or, after a divergence, the last one whose evaluation was finite, if
        there was one. None: there is no model yet.
        """
