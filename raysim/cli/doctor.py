"""The command `doctor`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from raysim.cli.bad_input import refuse
from raysim.cli.options import Address, Overrides
from raysim.cli.signals import ending_by_signals
from raysim.doctor.diagnosis import Diagnosis, diagnose
from raysim.doctor.findings import Finding
from raysim.doctor.measurement import Measured
from raysim.doctor.proposal import Proposal
from raysim.parts.errors import ScenarioError
from raysim.sweep import load_sweep
from results.terminal import Terminal

_STYLES = {"wrong": "red", "differs": "yellow", "note": "dim"}


def doctor(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (YAML); of a sweep, its first run.")],
    overrides: Overrides = None,
    inline: Annotated[bool, typer.Option("--inline", help="Look at this process only, without Ray.")] = False,
    address: Address = None,
    seconds: Annotated[float, typer.Option(help="How long to let clients train.")] = 10.0,
) -> None:
    """Examine all nodes for a scenario, measure a client, and propose resources. Exit code 1: a run would fail."""
    try:
        first = load_sweep(scenario, overrides or []).scenarios()[0]
    except ScenarioError as error:
        refuse(error)

    console = Terminal(highlight=False)
    with ending_by_signals(), console.status("starting") as status:
        found = diagnose(first, inline=inline, address=address, seconds=seconds, tell=status.update)
    _show(console, found)
    raise typer.Exit(1 if found.wrong else 0)


def _show(console: Console, found: Diagnosis) -> None:
    console.print(_software(found))
    console.print(_hardware(found))
    for finding in found.findings:
        console.print(_line(finding), soft_wrap=True)
    if not found.findings:
        console.print("nothing is wrong, and nodes do not differ")
    if found.measured and found.asked and found.proposal:
        console.print(_measured(found.measured))
        console.print(_compared(found.asked, found.proposal))
        console.print(f"proposed: {' '.join(found.proposal.settings)}", soft_wrap=True)


def _line(finding: Finding) -> Text:
    return Text.assemble((f"{finding.kind}: ", _STYLES[finding.kind]), finding.text)


def _table(title: str, *heads: str) -> Table:
    return Table(*heads, title=title, title_justify="left", box=None, header_style="dim", padding=(0, 2, 0, 0))


def _software(found: Diagnosis) -> Table:
    shown = ("Python", "raysim", "Ray", "torch", "CUDA", "CPU")
    table = _table("software", "node", *shown)
    for place in found.nodes:
        if place.answer is not None:
            table.add_row(_name(place), *(place.answer.software[name] or "none" for name in shown))
    return table


def _hardware(found: Diagnosis) -> Table:
    table = _table("room", "node", "CPUs", "memory free", "GPUs (memory free)", "disk free", "object store", "data")
    for place in found.nodes:
        if (node := place.answer) is not None:
            gpus = ", ".join(f"{gpu.name} {decimal(gpu.free_bytes)} of {decimal(gpu.total_bytes)}" for gpu in node.gpus)
            store = place.resources.get("object_store_memory")
            table.add_row(
                _name(place),
                f"{place.resources.get('CPU', 0):g}",
                f"{decimal(node.free_memory_bytes)} of {decimal(node.memory_bytes)}",
                gpus or "none",
                decimal(node.free_disk_bytes),
                decimal(int(store)) if store else "none",
                f"{len(node.missing)} paths missing" if node.missing else "there",
            )
    return table


def _name(place: Any) -> str:
    return f"{place.address} (here)" if place.is_driver else str(place.address)


def _measured(measured: Measured) -> Table:
    usage = measured.usage
    table = _table(f"measured on {measured.clients} clients", "of", "is")
    table.add_row("a client", _time(measured.client_s))
    table.add_row("a server step", _time(measured.step_s))
    table.add_row("an evaluation", _time(measured.evaluation_s))
    table.add_row("memory of an actor", decimal(usage.actor_bytes))
    if usage.gpu_bytes is not None:
        table.add_row("GPU memory of an actor", decimal(usage.gpu_bytes))
    table.add_row("data, once a node", decimal(usage.data_bytes))
    table.add_row("the model", decimal(usage.model_bytes))
    planned = measured.planned
    table.add_row("the run", f"{planned.trained:,.0f} trainings, {planned.steps:,.0f} steps")
    return table


def _compared(asked: Proposal, proposal: Proposal) -> Table:
    table = _table("resources", "", "client_actors", "gpus_per_client", "chunk", "time", "memory of client actors")
    for name, one in (("asked", asked), ("proposed", proposal)):
        numbers = f"{one.client_actors}", f"{one.gpus_per_client:g}", f"{one.chunk}"
        table.add_row(name, *numbers, f"about {_time(one.seconds)}", decimal(one.actors_bytes))
    return table


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "not measured"
    for least, length, unit in ((7200, 3600, "h"), (120, 60, "min"), (1, 1, "s")):
        if seconds >= least:
            return f"{seconds / length:.3g} {unit}"
    return f"{1000 * seconds:.3g} ms"
