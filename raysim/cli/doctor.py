"""The command `doctor`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.filesize import decimal
from rich.text import Text

from actors import OnNode
from raysim.cli.command import Address, Overrides, ending_by_signals, refuse
from raysim.parts.errors import ScenarioError
from raysim.runs.inspection import guarantee
from raysim.runs.room import Node, Room, differences, examined, states, too_large
from raysim.sweep import load_sweep
from results.texts import Terminal, count, plain_table


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
    with ending_by_signals(), console.status("examining the nodes"):
        nodes, missing = examined(first, inline=inline, address=address)
    if any(one.answer for one in nodes):
        console.print(f"software: {_shared(nodes)}", soft_wrap=True)
        console.print(_table(nodes))
    cure = "see Ray's logs there, and whether raysim is installed there, in the Python that runs Ray"
    wrong = [f"{one.address}: could not be examined: {one.error}; {cure}" for one in nodes if one.answer is None]
    wrong += [missing] if missing else []
    there = [one.answer for one in nodes if one.answer]
    if not any(node.missing for node in there) and (kept := states(first)):
        room = Room(*map(sum, zip(*(node.room for node in there), strict=True)))
        console.print(f"states: {kept}, and {room}", soft_wrap=True)
        wrong += [text] if (text := too_large(kept, room, on_ray=not inline)) else []
    for text in guarantee(first):
        console.print(f"privacy: {text}", soft_wrap=True)
    lost = [
        f"{one.address}: has no {', '.join(one.answer.missing)}" for one in nodes if one.answer and one.answer.missing
    ]
    differ = list(differences(nodes))
    for label, colour, texts in (("missing", "yellow", lost), ("differs", "yellow", differ), ("wrong", "red", wrong)):
        for text in texts:
            console.print(Text.assemble((f"{label}: ", colour), text), soft_wrap=True)
    if not (wrong or differ or lost):
        console.print("nothing is wrong, and nodes do not differ")
    raise typer.Exit(1 if wrong else 0)


def _shared(nodes: list[OnNode[Node]]) -> str:
    """Returns what software all nodes have; where they differ, `differences` says how."""
    software = [node.answer.software for node in nodes if node.answer]
    alike = {what: found for what, found in software[0].items() if all(one[what] == found for one in software)}
    return ", ".join(f"{what} {found or 'none'}" for what, found in alike.items())


def _table(nodes: list[OnNode[Node]]) -> RenderableType:
    """Returns what room the nodes have, and whether they have the data."""
    import pandas as pd

    rows = []
    for place in nodes:
        if (node := place.answer) is None:
            continue
        shared = {f"{kind}s": f"{place.resources[kind]:g}" for kind in ("CPU", "GPU") if kind in place.resources}
        room = {"memory free": decimal(node.room.free_memory), "disk free": decimal(node.room.free_disk)}
        data = f"{count(len(node.missing), 'path')} missing" if node.missing else "there"
        name = f"{place.address} (here)" if place.is_driver else place.address
        rows.append({"node": name, **shared, **room, "data": data})
    frame = pd.DataFrame(rows).fillna("none")
    return plain_table(frame, frame.shape[1])
