"""Commands that check files and classes: `check`, `schema` and `test`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from raysim.cli.command import Overrides, ScenarioFiles, refuse
from raysim.laws.subject import Subject
from raysim.parts.errors import Problem, ScenarioError
from raysim.parts.own import WrongClass
from raysim.runs.inspection import inspect, unfit
from raysim.runs.room import room, too_large
from raysim.scenario import Scenario
from raysim.scenario.checks import notes_of
from raysim.sweep import Plan, load_sweep
from raysim.sweep.settings import ScenarioFile
from raysim.version import __version__
from results.texts import Terminal, count

_NO_NOISE = Problem(
    "release",
    "must add the noise that --epsilon finds the size of, got none; add `release: {name: gaussian, multiplier: 1.0}`, "
    "`uplink: [{name: clip_norm, max: 1.0}]` and `privacy: {delta: 1.0e-5}`, and then give --epsilon again",
)


def check(
    scenarios: ScenarioFiles,
    overrides: Overrides = None,
    data: Annotated[
        bool, typer.Option("--data", help="Also load the data and the model, and say what is missing or does not fit.")
    ] = False,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Also load the data, and say with which noise `release` keeps all clients to this epsilon."),
    ] = None,
    propose: Annotated[
        bool, typer.Option(help="Guess what data files or folders hold, given in place of scenarios, and say why.")
    ] = False,
) -> None:
    """Check scenario files and their sweeps; this needs neither Ray nor, without --data, the data.

    Data that are here, in files of up to 256 MB, are divided even so.
    """
    if propose:
        proposals(scenarios)
        return
    wrong = []
    for path in scenarios:
        try:
            _tell(path, load_sweep(path, overrides or []), data, epsilon)
        except ScenarioError as error:
            wrong.append(error)
    if wrong:
        refuse(*wrong)


def _tell(path: Path, plan: Plan, data: bool, epsilon: float | None) -> None:
    """Prints what a scenario file is, and what there is to know of it. Raises ScenarioError with what is wrong."""
    found = plan.scenarios()
    if epsilon is not None and not any(map(_is_private, found)):
        raise ScenarioError(str(path), [_NO_NOISE])
    inspected = [inspect(_meeting(scenario, epsilon)) for scenario in found] if data or epsilon is not None else []
    largest = max(filter(None, (one.states for one in inspected)), key=lambda states: states.bytes, default=None)
    problems = dict.fromkeys(problem for one in inspected for problem in one.problems)
    if largest and (text := too_large(largest, here := room())):
        problems[Problem("data.clients", text)] = None
    if not inspected:
        ways = {
            one.data.model_dump_json(serialize_as_any=True)
            + repr((one.server_data, one.public, one.release and one)): one
            for one in reversed(found)
        }
        problems = dict.fromkeys(problem for one in ways.values() for problem in unfit(one))
    if problems:
        raise ScenarioError(str(path), list(problems))
    first, runs = found[0], f", {len(found)} runs" if len(found) > 1 else ""
    runs += ", to be tuned" if plan.search else ""
    typer.echo(f"{path}: right ({first.name}, {first.algorithm.name}, {count(first.data.clients, 'client')}{runs})")
    told = [f"data: {text}" for one in inspected for text in one.meaning]
    told += [f"states: {largest}, and {here}"] if largest else []
    guaranteed: dict[str, str] = {}  # and by which run first
    for scenario, one in zip(found, inspected, strict=False):
        for text in one.privacy:
            guaranteed.setdefault(text, f"{scenario.name}, seed {scenario.seed}: " if runs else "")
    told += [f"privacy: {run}{text}" for text, run in guaranteed.items()]
    if not inspected and any(map(_may_end_early, found)):
        told.append("privacy: privacy.epsilon may end the run early; --data says after how many steps")
    noted = [one.notes for one in inspected] if inspected else [*map(notes_of, found)]
    told += [f"note: {note}" for notes in noted for note in notes]
    for text in dict.fromkeys(told):
        typer.echo(f"{path}: {text}")


def _is_private(scenario: Scenario) -> bool:
    return scenario.release is not None and scenario.privacy is not None


def _may_end_early(scenario: Scenario) -> bool:
    """Whether privacy.epsilon may end a run whose timeline is known before training."""
    release, privacy = scenario.release, scenario.privacy
    if release is None or release.follows_length or privacy is None or privacy.epsilon is None:
        return False
    return not scenario.follows_training


def _meeting(scenario: Scenario, epsilon: float | None) -> Scenario:
    """Returns a scenario with the least noise that keeps to an epsilon; the same one without noise."""
    if epsilon is None or scenario.release is None or scenario.privacy is None:
        return scenario
    changes = {"release": {"multiplier": "auto"}, "privacy": {"epsilon": epsilon}}
    blocks = {key: getattr(scenario, key).model_copy(update=change) for key, change in changes.items()}
    return scenario.model_copy(update=blocks)


def proposals(paths: list[Path]) -> None:
    """Prints the block `data` of a scenario file for each file or folder of samples."""
    from raysim.data.propose import propose

    for path in paths:
        try:
            typer.echo(propose(path), nl=False)
        except (ValueError, OSError) as error:
            refuse(f"{path}: {error}")


def schema() -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them."""
    names = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:raysim:scenario:{__version__}"}
    schema = {**names, **ScenarioFile.model_json_schema()}
    schema["properties"]["extends"] = {
        "type": "string",
        "description": "A file whose keys apply where this has none.",
    }
    schema["patternProperties"] = {"^x-": {"description": "Ignored; for blocks that are repeated by alias."}}
    typer.echo(json.dumps(schema, indent=2))


def test(
    what: Annotated[
        str, typer.Argument(metavar="MODULE:CLASS", help="Your class; a part's name; or metrics/module:function.")
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
    """Test whether a custom class keeps the laws of its kind, such as an algorithm or a data set."""
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
