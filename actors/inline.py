"""The in-process twin: every job runs at once, in the order of submission, in this process."""

import traceback
from typing import Any

from actors.gang import Alone
from actors.host import describe, timed
from actors.pool import Group, Job, JobFailed, Value


class InlinePool:
    """A pool of one worker, whatever the groups ask for. Same jobs, same answers."""

    def __init__(self) -> None:
        self._hosted: dict[str, Any] = {}
        self._made: list[tuple[Any, Any]] = []  # factories, which need not be hashable, and what they built

    def start(self, group: Group) -> None:
        """Groups with equal factories share what it builds."""
        hosted = next((hosted for factory, hosted in self._made if factory == group.factory), None)
        if hosted is None:
            hosted = _guarded(f"{group.name}: start", group.factory)
            self._made.append((group.factory, hosted))
        self._hosted[group.name] = hosted

    def broadcast(self, group: str, method: str, *args: Any) -> None:
        self.submit(group, method, *args, label=f"{group}: {method}")

    def submit(
        self,
        group: str,
        method: str,
        *args: Any,
        values: int = 0,
        priority: tuple[int, ...] = (),
        label: str = "",
        together: bool = False,
    ) -> Job:
        job = Job(group, method, (), priority, label or method, together=together, worker="inline", done=True)
        unpacked = [arg.content if isinstance(arg, Value) else arg for arg in args]
        if together:
            unpacked.insert(0, Alone())
        (job.result, *contents), job.took = _guarded(job.label, timed, getattr(self._hosted[group], method), *unpacked)
        job.values = [Value(content=content) for content in contents]
        if len(contents) != values:
            raise JobFailed(job.label, f"must leave {values} values, left {len(contents)}", "")
        return job

    def wait(self) -> None:
        """Nothing to wait for."""

    def put(self, content: Any) -> Value:
        return Value(content=content)

    def gauge(self, readings: dict[str, float]) -> None:
        """There is no dashboard."""

    def close(self) -> None:
        self._hosted.clear()
        self._made.clear()


def _guarded(label: str, call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:  # whatever the hosted code raises is named and passed on
        raise JobFailed(label, describe(error), traceback.format_exc()) from error
