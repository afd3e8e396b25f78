"""How often a run goes on from its checkpoint by itself, after a lost node took with it what the run needs."""

from __future__ import annotations

import logging
from pathlib import Path

from actors import ValuesLost
from raysim.engine.checkpoint import Checkpoint

MOST = 3  # a run fails if it loses values so often without a new checkpoint in between

_log = logging.getLogger("raysim")


class Recoveries:
    """Counts how often a run has lost values. It tells of each loss where the run goes on."""

    def __init__(self, folder: Path) -> None:
        """folder: the run's."""
        self._folder = folder
        self._version = -1  # of the checkpoint from which it went on last
        self._lost = 0  # how often in a row it went on from there

    def count(self, lost: ValuesLost) -> None:
        """Counts a loss. Raises it if the run has come no further since the last ones."""
        checkpoint = Checkpoint.read(self._folder)
        version = checkpoint.version if checkpoint else 0
        self._lost = self._lost + 1 if version == self._version else 1
        self._version = version
        if self._lost == MOST:
            raise lost
        where = f"its checkpoint of version {version}" if checkpoint else "its beginning"
        _log.warning(f"{self._folder.name}: {lost}; it goes on from {where}")
