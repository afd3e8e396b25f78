"""Looks at every node, measures a client of a scenario, and proposes resources."""

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from typing import NamedTuple

from actors import InlinePool, JobFailed, MissingResources, OnNode
from raysim.doctor.findings import KINDS, Finding, findings, paths_read
from raysim.doctor.measurement import Measured, Measurement, to_measure
from raysim.doctor.node import Examination, Node
from raysim.doctor.proposal import Proposal, as_asked, propose
from raysim.parts.process import isolated
from raysim.runs.explained import explained
from raysim.runs.machines import environment, pin
from raysim.runs.place import connect, hired
from raysim.scenario import Scenario
from raysim.workers.device import stand_in

EXAMINED_S = 120.0  # seconds that the examination of all nodes may take

Tell = Callable[[str], None]


class Diagnosis(NamedTuple):
    """What was found out."""

    nodes: Sequence[OnNode[Node]]
    findings: Sequence[Finding]
    measured: Measured | None  # None if nothing could be measured; a finding then says why
    asked: Proposal | None  # what the scenario asks for
    proposal: Proposal | None

    @property
    def wrong(self) -> bool:
        """Whether a run would fail."""
        return any(finding.kind == "wrong" for finding in self.findings)


def diagnose(scenario: Scenario, *, inline: bool, address: str | None, seconds: float, tell: Tell) -> Diagnosis:
    """Looks at the nodes of a cluster, or at this process, and measures the scenario's work there.

    address: as in `raysim.run`. seconds: for how long clients train. tell: called with a text for each step of the
    work. Raises MissingResources if no cluster answers.
    """
    stand_in()  # refuses one outside of tests
    examination = Examination(paths_read(scenario))
    if inline:
        node = examination({})
        nodes = [OnNode("this process", True, {"CPU": float(node.cpus)}, {}, node)]
    else:
        tell("connecting to Ray")
        connect([scenario], address)
        from actors.nodes import on_every_node

        tell("examining the nodes")
        nodes = on_every_node(examination, environment(scenario.resources.cpu_capability) | stand_in(), EXAMINED_S)
    found = findings(scenario, nodes)
    try:
        with nullcontext() if inline else hired(scenario):
            pass  # there is room for the run
    except MissingResources as missing:
        found.append(Finding("wrong", str(missing)))
    tell("measuring a client")
    measured = None
    try:
        measured = _measure(Measurement(scenario, seconds), inline=inline)
        if measured is None:
            text = "no client trains in this run, so none was measured; see what `raysim check` notes"
            found.append(Finding("note", text))
    except JobFailed as failed:
        found.append(Finding("wrong", str(explained(failed, scenario))))
    except MissingResources as missing:
        found += [] if any(finding.kind == "wrong" for finding in found) else [Finding("wrong", str(missing))]
    found.sort(key=lambda finding: KINDS.index(finding.kind))
    if measured is None:
        return Diagnosis(nodes, found, None, None, None)
    return Diagnosis(nodes, found, measured, as_asked(scenario, measured), propose(scenario, measured, nodes))


def _measure(measurement: Measurement, *, inline: bool) -> Measured | None:
    scenario = measurement.scenario
    if inline:
        pin(scenario.resources.cpu_capability)
        with isolated(torch=True):
            return next(measurement(InlinePool()))
    name = f"{scenario.name}-doctor"
    with hired(to_measure(scenario)) as workforce, closing(workforce.run(measurement, name)) as program:
        measured: Measured | None = next(program)
    return measured
