"""The records with which a run could go on after the happening that was written last.

The engine submits jobs ahead of what it writes. So the newest model that it has submitted is not the one that belongs
to the last row of its tables. So the changes that a happening makes are applied here only when it is written.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from actors import Value
from raysim.terms import ClientState, Wire

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
    """The records, by key, that a run needs to go on after the happening that was written last."""

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
