"""The group of workers that every run has: those of clients, or of peers."""

from __future__ import annotations

from actors import Group, Needs
from raysim.scenario import Scenario
from raysim.workers.shared_requests import CLIENT
from raysim.workers.workshop import OpenWorkshop


def client_group(scenario: Scenario, factory: OpenWorkshop) -> Group:
    """Returns the group of client actors that a scenario asks for."""
    wanted = scenario.resources
    least, most = wanted.clients(scenario.in_flight)
    return Group(
        CLIENT,
        factory,
        least,
        Needs(wanted.cpus_per_client, wanted.gpus_per_client),
        further=max(most - least, 0),
        eager=wanted.client_actors != "auto",
    )
