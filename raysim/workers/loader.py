"""The worker of the actor that loads the data. It is on the node with the files, and needs no torch."""

from __future__ import annotations

from raysim.data import Federation, federate
from raysim.parts.standard_state import standard_state
from raysim.scenario import Scenario


class FederationLoader:
    """Loads the data."""

    def load(self, scenario: Scenario) -> Federation:
        """Loads the data and divides them among clients. scenario: with the contents of arrays in memory."""
        with standard_state():  # another run may have been here before
            return federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
