"""The command `doctor`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.text import Text

from raysim.cli.ending import ending_by_signals, refuse
from raysim.cli.options import Address, Overrides
from raysim.doctor.findings import Diagnosis, diagnose
from raysim.doctor.room import Room, too_large
from raysim.parts.errors import ScenarioError
from raysim.runs.inspection import guarantee
from raysim.runs.states import states
from raysim.sweep import load_sweep
from results.render import plain_table
from results.terminal import Terminal

_STYLES = {"wrong": "red", "differs": "yellow", "note": "dim"}
_SOFTWARE = ("Python", "raysim", "Ray", "torch", "CUDA", "CPU")


def doctor(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (YAML); of a sweep, its first run.")],
    overrides: Overrides = None,
    inline: Annotated[bool, typer.Option("--inline", help="Look at this process only, without Ray.")] = False,
    address: Address = None,
) -> None:
    """Examine all nodes for a scenario: what they have, how they differ, and whether the run fits. Exit code 1: it
    would fail."""
    try:
        first = load_sweep(scenario, overrides or []).scenarios()[0]
    except ScenarioError as error:
        refuse(error)

    console = Terminal(highlight=False)
    with ending_by_signals(), console.status("starting") as status:
        found = diagnose(first, inline=inline, address=address, tell=status.update)
    for table in _tables(found):
        console.print(table)
    for finding in found.findings:
        console.print(Text.assemble((f"{finding.kind}: ", _STYLES[finding.kind]), finding.text), soft_wrap=True)
    wrong, there = found.wrong, [place.answer for place in found.nodes if place.answer]
    if not any(node.missing for node in there) and (kept := states(first)):
        sums = zip(*((n.memory_bytes, n.free_memory_bytes, n.free_disk_bytes) for n in there), strict=True)
        room = Room(*map(sum, sums))
        console.print(f"states: {kept}, and {room}", soft_wrap=True)
        if text := too_large(kept, room, on_ray=not inline):
            wrong = True
            console.print(Text.assemble(("wrong: ", _STYLES["wrong"]), text), soft_wrap=True)
    for text in guarantee(first):
        console.print(f"privacy: {text}", soft_wrap=True)
    if not found.findings and not wrong:
        console.print("nothing is wrong, and nodes do not differ")
    raise typer.Exit(1 if wrong else 0)


def _tables(found: Diagnosis) -> list[Any]:
    """Returns the software of the nodes, and what room they have."""
    import pandas as pd

    software, room = [], []
    for place in found.nodes:
        if (node := place.answer) is None:
            continue
        name = f"{place.address} (here)" if place.is_driver else str(place.address)
        software.append([name, *(node.software[key] or "none" for key in _SOFTWARE)])
        gpus = ", ".join(f"{gpu.name} {decimal(gpu.free_bytes)} of {decimal(gpu.total_bytes)}" for gpu in node.gpus)
        store = place.resources.get("object_store_memory")
        room.append(
            [
                name,
                f"{place.resources.get('CPU', 0):g}",
                f"{decimal(node.free_memory_bytes)} of {decimal(node.memory_bytes)}",
                gpus or "none",
                decimal(node.free_disk_bytes),
                decimal(int(store)) if store else "none",
                f"{len(node.missing)} paths missing" if node.missing else "there",
            ]
        )
    heads = ("node", "CPUs", "memory free", "GPUs (memory free)", "disk free", "object store", "data")
    frames = (pd.DataFrame(software, columns=["node", *_SOFTWARE]), pd.DataFrame(room, columns=list(heads)))
    return [plain_table(frame, frame.shape[1]) for frame in frames]
