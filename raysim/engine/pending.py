"""The jobs that were submitted for a happening on the timeline. The happening is written to the tables once they are
done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from actors import Job


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
