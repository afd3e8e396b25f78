"""A pool in this process, without Ray: every job runs when it is submitted."""

import time
from typing import Any

from actors.gang import Gang
from actors.host import timed
from actors.interrupt import allowing
from actors.job import Content, Job, Outcome, Setup, Value, values_of
from actors.pool import Group, JobFailed, Pool
from actors.process import Life, Process, this_machine


class InlinePool(Pool):
    """A pool that makes one worker for each group, however many it asks for. Answers are as on Ray."""

    def __init__(self) -> None:
        super().__init__()
        self._workers: dict[str, Any] = {}  # by group
        self._process = Process.this()
        self.lives.append(Life("inline", self._process, time.time()))

    def start(self, group: Group) -> None:
        """Makes the group's worker. No signal ends that, because the process would abort in the import of torch."""
        self._workers[group.name] = _guarded(f"{group.name}: start", group.factory)

    def set_up(self, setups: dict[str, Setup]) -> None:
        for group, setup in setups.items():
            self._workers[group] = _guarded(f"{group}: set-up", _allowed, setup.build, self._workers[group])
            self.machines[group] = this_machine()

    def _take_on(self, job: Job[Any, Any]) -> None:
        assert job.request is not None
        answer, took = _guarded(job.label, _allowed, timed, job.request.call, self._workers[job.group], Gang())
        left = values_of(answer.left)
        if len(left) != len(job.values):
            raise JobFailed(job.label, f"must leave {len(job.values)} values, left {len(left)}", "")
        for value, given in zip(job.values, left, strict=True):
            value.content = given.content
        job.end(Outcome(answer.result, "inline", took, self._process))

    def wait(self) -> None:
        """Does nothing: every job is already done."""

    def spare(self, seconds: float) -> None:
        """Does nothing: every job is already done."""

    def put(self, content: Any) -> Value[Any]:
        return Value(content)

    def get(self, value: Value[Content]) -> Content:
        content: Content = value.content
        return content

    def size(self, group: str) -> int:
        return 1

    def close(self) -> None:
        self._workers.clear()


def _guarded(label: str, call: Any, *args: Any) -> Any:
    """Returns what the call returns. Raises JobFailed with the label if it raises an exception."""
    try:
        return call(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the hosted code raises is named and passed on
        raise JobFailed.by(error, label) from error


def _allowed(call: Any, *args: Any) -> Any:
    """Returns what the call returns. A signal may end it."""
    with allowing():
        return call(*args)
