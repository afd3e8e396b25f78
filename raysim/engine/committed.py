"""What a run would need to go on from the happening that was written last.

The engine submits jobs ahead of what it writes. So the newest model that it has submitted is not the one that belongs
to the last row of its tables. Here, changes take effect only when their happening is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from actors import Value

if TYPE_CHECKING:
    from raysim.workers.wire import Wire


class Kept(NamedTuple):
    """A record that the run needs to go on."""

    value: Value[Any]  # what a job left
    place: tuple[int, ...] = ()  # where in the value's content the record lies, as indices from the outside in
    note: Callable[[], Any] | None = None  # returns plain data to keep beside it, once the job is done

    def record_in(self, content: Any) -> Wire:
        """Returns the record as named arrays. content: that of the value. A bare array gets the name ""."""
        for index in self.place:
            content = content[index]
        return content if isinstance(content, dict) else {"": content}


class Change(NamedTuple):
    """What a happening changes of what the run needs."""

    new: dict[str, Kept]  # by key
    gone: Sequence[str] = ()  # keys that are needed no more


class Committed:
    """The records that the run needs to go on from the happening that was written last, by key."""

    def __init__(self, records: dict[str, Kept]) -> None:
        self.records = records

    def apply(self, change: Change) -> None:
        """Applies what a happening changes. Called when the happening has been written."""
        self.records.update(change.new)
        for key in change.gone:
            self.records.pop(key, None)
