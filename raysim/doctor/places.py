"""The files and folders that a scenario reads, by the nodes that must have them."""

from __future__ import annotations

from typing import NamedTuple

from raysim.parts.part import Part
from raysim.scenario import Scenario
from raysim.scenario.own_modules import parts_in


class Places(NamedTuple):
    """Paths that workers read. Those of the simulated world are read wherever the scenario is."""

    loading: tuple[str, ...]  # on the node where the data are loaded
    working: tuple[str, ...]  # on each node that has client actors or aggregators

    @classmethod
    def of(cls, scenario: Scenario) -> Places:
        """Returns the places of a scenario."""
        return cls(_read(scenario.data, scenario.server_data, scenario.public), _read(scenario.model))

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.loading, *self.working)))


def _read(*blocks: Part) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(path) for block in blocks for part in parts_in(block) for path in part.reads()))
