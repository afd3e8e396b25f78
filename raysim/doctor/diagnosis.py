"""Looks at every node, and says whether a scenario fits there."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from actors import MissingResources, OnNode
from raysim.doctor.findings import KINDS, Finding, findings, paths_read
from raysim.doctor.node import Examination, Node
from raysim.runs.machines import environment
from raysim.runs.place import connect, hired
from raysim.scenario import Scenario
from raysim.workers.device import stand_in

EXAMINED_S = 120.0  # seconds that the examination of all nodes may take

Tell = Callable[[str], None]


class Diagnosis(NamedTuple):
    """What was found out."""

    nodes: Sequence[OnNode[Node]]
    findings: Sequence[Finding]

    @property
    def wrong(self) -> bool:
        """Whether a run would fail."""
        return any(finding.kind == "wrong" for finding in self.findings)


def diagnose(scenario: Scenario, *, inline: bool, address: str | None, tell: Tell) -> Diagnosis:
    """Looks at the nodes of a cluster, or at this process, and finds out whether there is room for the scenario's run.

    address: as in `raysim.run`. tell: called with a text for each step of the work. Raises MissingResources if no
    cluster answers.
    """
    stand_in()  # refuses one outside of tests
    examination = Examination(paths_read(scenario))
    if inline:
        node = examination({})
        nodes = [OnNode("this process", True, {"CPU": float(node.cpus)}, {}, node)]
        return Diagnosis(nodes, findings(scenario, nodes))
    tell("connecting to Ray")
    connect([scenario], address)
    from actors.nodes import on_every_node

    tell("examining the nodes")
    nodes = on_every_node(examination, environment(scenario.resources.cpu_capability) | stand_in(), EXAMINED_S)
    found = findings(scenario, nodes)
    tell("looking for room")
    try:
        with hired(scenario):
            pass  # there is room for the run
    except MissingResources as missing:
        found.append(Finding("wrong", str(missing)))
    return Diagnosis(nodes, sorted(found, key=lambda finding: KINDS.index(finding.kind)))
