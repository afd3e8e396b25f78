"""Limits how often a run goes on from its checkpoint by itself after values were lost with a node."""

from __future__ import annotations

import logging
from pathlib import Path

from actors import ValuesLost
from raysim.engine.checkpoint import Checkpoint

MOST = 3  # losses without a new checkpoint in between, after which the run fails

_log = logging.getLogger("raysim")


class Recoveries:
    """Counts how often a run has lost values, and logs where the run goes on after each loss."""

    def __init__(self, folder: Path) -> None:
        """folder: the run's."""
        self._folder = folder
        self._version = -1  # version of the checkpoint from which it went on last
        self._lost = 0  # how often in a row it went on from that one

    def count(self, lost: ValuesLost) -> None:
        """Counts a loss. Raises it again if there was no new checkpoint since the last losses."""
        checkpoint = Checkpoint.read(self._folder)
        version = checkpoint.version if checkpoint else 0
        self._lost = self._lost + 1 if version == self._version else 1
        self._version = version
        if self._lost == MOST:
            raise lost
        where = f"its checkpoint of version {version}" if checkpoint else "its beginning"
        _log.warning(f"{self._folder.name}: {lost}; it goes on from {where}")
