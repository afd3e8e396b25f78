"""The groups of workers that a run asks for, as its scenario says."""

from __future__ import annotations

from actors import Group, Needs
from raysim.data.sources.in_memory import light
from raysim.scenario import Scenario
from raysim.scenario.resources import Nodes
from raysim.workers.shared_requests import CLIENT, LOADER, SERVER
from raysim.workers.workshop import OpenWorkshop


def loader(scenario: Scenario) -> Group:
    """Returns the group of the one actor that loads the data, which is all that its requests need of it.

    By default, it is on the driver's node. So the files need to be on that node only, and the loaded data are not lost
    while the run goes on.
    """
    nodes = scenario.resources.load_on
    return Group(LOADER, object, 1, Needs(with_driver=True) if nodes is None else _needs(nodes))


def clients(scenario: Scenario) -> Group:
    """Returns the group of client actors."""
    asked = scenario.resources
    needs = _needs(asked.clients_on, asked.cpus_per_client, asked.gpus_per_client)
    least, most = asked.clients(scenario.in_flight)
    workshop = OpenWorkshop(light(scenario), needs.gpus)
    further, eager = max(most - least, 0), asked.client_actors != "auto"
    return Group(CLIENT, workshop, least, needs, asked.spread, further, eager)


def aggregators(scenario: Scenario) -> Group:
    """Returns the group of aggregators."""
    asked = scenario.resources
    needs = _needs(asked.aggregators_on, gpus=asked.gpus_per_aggregator)
    workshop = OpenWorkshop(light(scenario), needs.gpus)
    return Group(SERVER, workshop, asked.aggregators, needs, asked.spread)


def _needs(nodes: Nodes, cpus: float = 0.0, gpus: float = 0.0) -> Needs:
    return Needs(cpus, gpus, nodes.custom, nodes.labels)
