"""Looks at every node, and says whether a scenario fits there: what is wrong, and how nodes differ."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from actors import MissingResources, OnNode
from raysim.doctor.node import Examination, Node
from raysim.parts.own_code import parts_in
from raysim.runs.machines import environment
from raysim.runs.place import connect, hired
from raysim.scenario import Scenario
from raysim.scenario.resources import Nodes
from raysim.workers.workshop import stand_in

_LITTLE_DISK = 1 << 30  # bytes
_CAPABILITIES = ("default", "avx2", "avx512")  # a CPU that has one of these has all before it
_CURES = {  # where nodes' software differs
    "Python": "install the same everywhere, or what is sent between nodes may not be read",
    "raysim": "install the same code everywhere, or bits may differ",
    "Ray": "install the same everywhere",
    "torch": "install the same everywhere, or the last bits may differ",
    "NumPy": "install the same everywhere, or the last bits may differ",
    "libc": "the last bits may differ; take one image for all nodes",
    "CPU": "set resources.cpu_capability to what all have",
    "CPU vendor": "the last bits may differ, whatever cpu_capability says",
    "GPU": "the last bits may differ",
}


Kind = Literal["wrong", "differs", "note"]  # wrong: the run would fail
KINDS: tuple[Kind, ...] = get_args(Kind)  # the most serious first


class Finding(NamedTuple):
    """A fact that the user should know before the run."""

    kind: Kind
    text: str  # where, what, and what to do


def paths_read(scenario: Scenario) -> tuple[str, ...]:
    """Returns the files and folders that must be on the node where the data are loaded."""
    blocks = (scenario.data, scenario.server_data, scenario.public, scenario.model)
    parts = (part for block in blocks for part in parts_in(block))
    return tuple(dict.fromkeys(str(path) for part in parts for path in part.reads()))


def findings(scenario: Scenario, places: Sequence[OnNode[Node]]) -> list[Finding]:
    """Returns the findings about nodes for a scenario: what is wrong, how they differ, and what else is worth
    knowing."""
    found: list[Finding] = []
    for place in places:
        if place.answer is None:
            cure = "see Ray's logs there, and whether raysim is installed there, in the Python that runs Ray"
            found.append(Finding("wrong", f"{place.address}: could not be examined: {place.error}; {cure}"))
            continue
        of_node = _of_node(scenario, place, place.answer, places)
        found += (Finding(kind, f"{place.address}: {text}") for kind, text in of_node)
    asked = scenario.resources
    if not (asked.gpus_per_client or asked.gpus_per_aggregator) and any(place.resources.get("GPU") for place in places):
        found.append(Finding("note", "the scenario uses no GPU, and there are some; see resources.gpus_per_client"))
    return [*found, *_differences(places)]


def _of_node(
    scenario: Scenario, place: OnNode[Node], node: Node, places: Sequence[OnNode[Node]]
) -> Iterator[tuple[Kind, str]]:
    """Yields what is to be said of a node. places: all nodes."""
    asked = scenario.resources
    loads = place.is_driver if asked.load_on is None else _allowed(asked.load_on, place)
    if loads and (lost := list(node.missing)):
        there = [one.address for one in places if one.answer and not set(lost) & set(one.answer.missing)]
        cure = f"it is on {', '.join(there)}: start the run there, or name that node by resources.load_on"
        cure = cure if there else "put the data there, or correct the path"
        yield "note", f"loads the data, and has no {', '.join(lost)}; {cure}"
    pinned, has = asked.cpu_capability, (node.software["CPU"] or "").lower()
    if pinned and has in _CAPABILITIES and _CAPABILITIES.index(has) < _CAPABILITIES.index(pinned):
        text = f"resources.cpu_capability is {pinned}, and the CPU has {has} at most"
        yield "wrong", f"{text}; take {has}, or keep workers off this node"
    if asked.gpus_per_client or asked.gpus_per_aggregator:
        yield from _of_gpus(place, node)
    if node.free_disk_bytes < _LITTLE_DISK:
        text = f"{node.free_disk_bytes / 2**20:.0f} MiB of disk are free, where Ray spills what memory cannot hold"
        yield "note", f"{text}; free some"


def _allowed(nodes: Nodes, place: OnNode[Node]) -> bool:
    return nodes.allow(place.labels) and all(name in place.resources for name in nodes.custom)


def _of_gpus(place: OnNode[Node], node: Node) -> Iterator[tuple[Kind, str]]:
    declared = place.resources.get("GPU", 0)
    stands_in = any(gpu.name == "stand-in" for gpu in node.gpus)
    if declared and not stands_in and node.torch_sees < declared:
        torch, cuda = node.software["torch"], node.software["CUDA"]
        built = f"torch {torch} is built for CUDA {cuda}" if cuda else "torch has no CUDA"
        text = f"Ray has {declared:g} GPU there, and torch sees {node.torch_sees} ({built})"
        yield "wrong", f"{text}; install a driver and a torch that fit each other"
    for number, gpu in enumerate(node.gpus):
        if gpu.free_bytes < 0.9 * gpu.total_bytes:
            used = (gpu.total_bytes - gpu.free_bytes) / 2**30
            yield "note", f"{used:.1f} GiB of GPU {number} are in use by others"


def _differences(places: Sequence[OnNode[Node]]) -> Iterator[Finding]:
    for what, cure in _CURES.items():
        having: dict[str | None, list[str]] = {}
        for place in places:
            if place.answer is not None:
                having.setdefault(place.answer.software[what], []).append(place.address)
        if len(having) > 1:
            text = ", ".join(f"{value or 'none'} on {_some(where)}" for value, where in having.items())
            yield Finding("differs", f"{what}: {text}; {cure}")


def _some(addresses: list[str]) -> str:
    return ", ".join(addresses[:3]) + (f" and {len(addresses) - 3} more" if len(addresses) > 3 else "")


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
