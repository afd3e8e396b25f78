"""The command `test`, which tries the laws that classes of a kind must keep."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from raysim.cli.ending import refuse
from raysim.laws.subject import Subject
from raysim.parts.errors import ScenarioError
from raysim.parts.own import WrongClass
from results.terminal import Terminal


def test(
    what: Annotated[
        str, typer.Argument(metavar="MODULE:CLASS", help="Your own class; a part's name; or metrics/module:function.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Give a key of the class a value; can be repeated."),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(help="Scenario file to try it in; by default a small one is made.", exists=True, dir_okay=False),
    ] = None,
    ray: Annotated[bool, typer.Option("--ray/--no-ray", help="Whether to try the laws that need Ray.")] = True,
) -> None:
    """Test whether a class of your own keeps the laws of what it is, such as an algorithm or a data set."""
    from raysim.laws.check import check

    try:
        subject = Subject(what, settings or [], scenario)
    except (WrongClass, ScenarioError) as error:
        refuse(error)
    console = Terminal(highlight=False, soft_wrap=True)
    keys = ", ".join(f"{key}={value!r}" for key, value in subject.block.items() if key != "name")
    console.print(f"[bold]{subject.kind.key}: {escape(what)}[/]" + (f" with {escape(keys)}" if keys else ""))
    counts = {"ok": 0, "failed": 0, "not tried": 0}
    for outcome in check(subject, ray=ray):
        counts[outcome.state] += 1
        colour = {"ok": "green", "failed": "red", "not tried": "dim"}[outcome.state]
        console.print(f"[{colour}]{outcome.state:9}[/]  {escape(outcome.law)}")
        if outcome.text:
            console.print(escape("".join(f"           {line}\n" for line in outcome.text.splitlines())), end="")
    if counts["failed"] and scenario is None:
        console.print("[dim]tried in a small scenario that is made for it; --scenario FILE tries it in yours[/]")
    console.print(", ".join(f"{count} {state}" for state, count in counts.items() if count))
    raise typer.Exit(1 if counts["failed"] else 0)
