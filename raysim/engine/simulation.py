"""How the engine's loop sees runs with a server and runs of peers alike, and what they need to continue."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from actors import Job, Pool, Value, finished
from raysim.engine.progress import Happened, Mark, Stopwatch
from raysim.scenario import Scenario
from raysim.terms import ClientState, Wire
from raysim.workers.replies import Described
from raysim.workers.workshop import LOADER, Become, DescribeRequest, LoadRequest

HappeningT = TypeVar("HappeningT", bound=Happened)  # something on a timeline, such as a server step
PendingT = TypeVar("PendingT", bound="Pending")  # the jobs of a happening
BEST = "best/"  # what keys of the best model begin with


class Kept(NamedTuple):
    """A record that a resumed run would need."""

    value: Value[Any]  # the value that a job left
    place: tuple[int, ...] = ()  # indices that lead from the value's content to the record
    note: Callable[[], Any] | None = None  # returns plain data to keep beside it, once the job is done

    def record_in(self, content: Any) -> Wire:
        """Returns the record as named arrays. content: that of the value. A bare array gets the name ""."""
        for index in self.place:
            content = content[index]
        if isinstance(content, ClientState):
            return content.flat()
        return content if isinstance(content, dict) else {"": content}


class Change(NamedTuple):
    """How a happening changes the records that a resumed run would need."""

    new: dict[str, Kept]  # by key
    gone: Sequence[str] = ()  # keys that are needed no more


class Committed:
    """The records, by key, that a run needs to continue after the happening that was written last.

    The engine submits jobs ahead of what it writes, so the newest model that it has submitted is not the one that
    belongs to the last row of its tables. Changes that a happening makes are applied here only when it is written.
    """

    def __init__(self, records: dict[str, Kept]) -> None:
        self.records = records

    def keep_best(self, keys: Iterable[str]) -> None:
        """Keeps the records of these keys as those of the best model, instead of those before, as best/ and the key."""
        for key in [key for key in self.records if key.startswith(BEST)]:
            del self.records[key]
        self.records.update({f"{BEST}{key}": self.records[key] for key in keys})

    @property
    def best(self) -> dict[str, Kept]:
        """The records of the best model, by the keys that they had when it was kept; {} if none is kept."""
        return {key.removeprefix(BEST): kept for key, kept in self.records.items() if key.startswith(BEST)}

    def numbered(self, kind: str) -> dict[int, Value[Any]]:
        """Returns the values of the records of a kind with one number, such as message/3, by that number."""
        keys = ((key, *key.split("/")) for key in self.records)
        return {int(number[0]): self.records[key].value for key, first, *number in keys if first == kind}

    def apply(self, change: Change) -> None:
        """Applies the change that a happening makes, once the happening has been written."""
        self.records.update(change.new)
        for key in change.gone:
            self.records.pop(key, None)


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


def load(scenario: Scenario, pool: Pool, first: str, *others: str) -> Described:
    """Loads the data, sets up the workers of groups, which must have started, and asks the first what the data are.

    Raises JobFailed if that fails.
    """
    loaded = finished(pool, pool.submit(LOADER, LoadRequest(pool.put(scenario)), label="load data"))
    become = Become(loaded.left, loaded.result)
    pool.set_up({first: become})
    describing = pool.submit(first, DescribeRequest(), label="describe data")
    pool.set_up(dict.fromkeys(others, become))
    return finished(pool, describing).result


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
    """The records that the run needs to continue from the happening that was written last."""

    def happenings(self) -> Iterator[HappeningT]:
        """Returns the happenings of the timeline, in order. A run that continues starts after those already written."""

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
