"""A tracker of the tests' own, which keeps what it is sent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import PrivateAttr

from raysim.observers import RunBegin, RunEnd
from raysim.observers.trackers import Tracker
from raysim.observers.trackers.points import RoundPoint


class Kept(Tracker):
    """Keeps points, by the round in which they were sent, as a service would."""

    name: str = "kept"
    fails: str | None = None
    """The method that raises an exception."""
    _kept: dict[int, RoundPoint] = PrivateAttr(default_factory=dict)
    _files: list[str] = PrivateAttr(default_factory=list)
    _sent: list[int] = PrivateAttr(default_factory=list)

    @property
    def kept(self) -> dict[int, RoundPoint]:
        return self._kept

    @property
    def sent(self) -> list[int]:
        """The rounds of all points, in the order in which they were sent."""
        return self._sent

    @property
    def files(self) -> list[str]:
        return self._files

    def open(self, run: RunBegin) -> int | None:
        self._fail("open")
        return max(self._kept, default=None)

    def log(self, point: RoundPoint) -> None:
        self._fail("log")
        self._kept[point.round] = point
        self._sent.append(point.round)

    def close(self, end: RunEnd, files: Sequence[Path]) -> None:
        self._files = [file.name for file in files]

    def _fail(self, method: str) -> Any:
        if self.fails == method:
            raise ConnectionError("no answer")


class Lacking(Kept):
    """Needs a package that there is not."""

    library: ClassVar[str | None] = "no_such_package"
    package: ClassVar[str] = "no-such-package"
    name: str = "lacking"
