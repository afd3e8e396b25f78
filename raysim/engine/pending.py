"""Jobs that were handed out for something on the timeline, which is written once they are done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from actors import Job


class Pending(ABC):
    """What something on the timeline waits for. Its other properties are there once all jobs are done."""

    @property
    @abstractmethod
    def jobs(self) -> Sequence[Job[Any]]:
        """All of its jobs."""

    @property
    def undone(self) -> int:
        """How many of them are not done."""
        return sum(not job.done for job in self.jobs)
