"""The families of algorithms that raysim can run."""

from __future__ import annotations

from typing import Any

from raysim.engine.family import Family
from raysim.engine.peers.family import PeersFamily
from raysim.engine.server.family import ServerFamily
from raysim.scenario import Scenario


def family_of(scenario: Scenario) -> Family[Any]:
    """Returns the family of the scenario's algorithm."""
    return ServerFamily(scenario) if scenario.has_server else PeersFamily(scenario)
