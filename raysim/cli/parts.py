"""The command `list`: everything that a scenario file can name, a kind of it, or one part with its keys."""

import inspect
import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from raysim.cli.command import refuse
from raysim.laws.subject import own_part
from raysim.parts.errors import nearest
from raysim.parts.own import WrongClass
from raysim.parts.part import Part, names_of, one_of, parts_of
from raysim.scenario.kinds import Kind, find_keys, find_kinds, find_parts, kinds
from raysim.scenario.words import Key, example, keys_of, source_of
from raysim.sweep.settings import ScenarioFile
from results.texts import Terminal

_TOP_K = "uplink: [top_k] sends the largest numbers of an update; raysim list top_k shows its keys."
_DP = (
    "release: gaussian adds noise to what the server releases, where uplink: [clip_norm] bounds each client's update; "
    "local.gradients: [per_sample] is DP-SGD; privacy accounts for both. raysim list release shows more."
)
_WIDTHS = (
    "capacity lets clients train smaller models: narrower ones with algorithm: heterofl, fedrolex or fjord, and less "
    "deep ones with depthfl or inclusivefl."
)
_OPT = "FedOpt is algorithm: fedadam, fedyogi, fedadagrad or fedavgm, or algorithm.server of others, such as fedavg."
_ELSEWHERE = {  # names that people look for, without what joins their parts, and what does it
    "fedbn": "FedBN is algorithm: fedper with model.norm: local, which keeps normalisation layers with each client.",
    **dict.fromkeys(("fedopt", "serveroptimizer", "serveropt"), _OPT),
    **dict.fromkeys(("dpfedavg", "dp", "dpsgd", "differentialprivacy"), _DP),
    **dict.fromkeys(
        ("lora", "qlora", "peft"), "model.lora trains low-rank adapters; raysim list model.lora shows its keys."
    ),
    **dict.fromkeys(("topk", "sparsification", "compression"), _TOP_K),
    **dict.fromkeys(("hetero", "heterogeneous", "width", "depth"), _WIDTHS),
    **dict.fromkeys(
        ("qfedavg", "qffl"), "q-FedAvg does not come with raysim; raysim new algorithm writes one to start from."
    ),
}


def list_parts(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY|NAME|MODULE:CLASS]",
            help="A key, such as local.lr or search; a part, such as fedbuff; or a custom class. By default: all.",
            autocompletion=lambda incomplete: [name for name in _every_name() if name.startswith(incomplete)],
            show_default=False,
        ),
    ] = None,
) -> None:
    """List what a scenario can name: algorithms, data sets, models, delays and more; or describe one of them."""
    console = Terminal()
    if what is None:
        console.print(_names())
    elif ":" in what:
        _tell(*_own(what), what, console)
    else:
        parts, named = find_parts(what), find_kinds(what)
        keys = [kind.key for kind in named]
        found = {path: owners for key in keys or [what] for path, owners in find_keys(key, ScenarioFile).items()}
        told = [one for path, owners in found.items() if path in (keys or found) for one in _key(path, owners)]
        if not (parts or named or told):
            typer.echo(_ELSEWHERE.get(re.sub(r"[-_. ]", "", what.lower())) or refuse(_unknown(what)))
        for shown in told:
            console.print(shown)
        if named:
            console.print(_table(named))
        for place, (kind, part) in enumerate(parts):
            _tell(kind, part, what.rpartition(".")[2], console, after=bool(place or named or told))


def _every_name() -> list[str]:
    return sorted({name for kind in kinds() for part in kind.parts for name in (kind.key, *names_of(part))})


def _names() -> RenderableType:
    """Returns the names of all parts, kind by kind."""
    table = Table("key", "what it can name", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for kind in kinds():
        table.add_row(f"[bold]{kind.key}", ", ".join(name for part in kind.parts for name in names_of(part)))
    return Group(
        table, "", "raysim list KEY describes a key, such as raysim list delay; raysim list NAME describes a part."
    )


def _key(path: str, having: dict[type[Part], Any]) -> list[Group]:
    """Returns all about the key at a dotted path: the keys of a block; the type and meaning of any other key.

    Parts that mean different things by it are told apart. having: what `find_keys` returned for the path.
    """
    name = path.rpartition(".")[2]
    blocks: dict[type[Part], None] = {}
    owners: dict[str, list[str]] = {}  # by what the key is
    for owner, annotation in having.items():
        held = parts_of(annotation)
        if held and not one_of(annotation):
            blocks |= dict.fromkeys(held)
        else:
            key = next(key for key in keys_of(owner) if key.name == name)
            owners.setdefault(_described(key), []).extend(names_of(owner)[:1])
    abouts = [(_indented(_reflowed(inspect.getdoc(block) or "")), _indented(_keys(block))) for block in blocks]
    shown = [Group(Text(path, "bold"), "", about, "", keys, "") for about, keys in abouts]
    for text, names in owners.items():
        whose = f" of {', '.join(names)}" if len(owners) > 1 else ""
        shown.append(Group(Text.assemble((path, "bold"), whose), _indented(text), ""))
    return shown


def _table(kinds: Iterable[Kind]) -> Table:
    """Returns a table of all parts of some kinds, with a line for each."""
    table = Table("key", "name", "what it is", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for kind in kinds:
        for place, part in enumerate(kind.parts):
            shown_key = "" if place else f"[bold]{kind.key}"
            line = escape((inspect.getdoc(part) or "").partition("\n")[0])
            table.add_row(shown_key, ", ".join(names_of(part)), line, end_section=part is kind.parts[-1])
    return table


def _tell(kind: Kind, part: type[Part], name: str, console: Console, *, after: bool = False) -> None:
    """Prints all about a part: what it is, its keys, where it comes from, and an example. after: another one."""
    console.print(*["\n"] * after, f"[bold]{kind.key}: {escape(name)}[/]\n", sep="")
    console.print(_indented(_reflowed(inspect.getdoc(part) or "It has no docstring.")))
    console.print("\n[bold]Keys[/]\n")
    console.print(_indented(_keys(part)))
    if kind.key == "algorithm" and (source := source_of(part)):
        console.print("\n[bold]Source[/]\n")
        console.print(_indented(_reflowed(source)))
    console.print("\n[bold]Example[/]\n")
    console.print(_indented(example(kind, part, name).rstrip()))


def _keys(part: type[Part]) -> RenderableType:
    """Returns a table of a part's keys; or a text if it has none."""
    table = Table(Column(no_wrap=True), Column(), box=None, show_header=False, padding=(0, 2, 0, 0))
    for key in keys_of(part):
        table.add_row(f"[bold]{key.name}", escape(_described(key)))
    return table if table.row_count else "It has no keys."


def _described(key: Key) -> str:
    """Returns a key's type, unit and default, and below them what it means."""
    unit = f" ({key.unit})" if key.unit else ""
    default = key.default if key.default == "required" else f"default {key.default}"
    return f"{key.type}{unit}; {default}\n{' '.join(key.meaning.split()) or 'It has no description.'}"


def _indented(shown: RenderableType) -> RenderableType:
    """Returns a table or a text with a margin. A text is printed as it is, without markup."""
    return Padding(Text(shown) if isinstance(shown, str) else shown, (0, 0, 0, 2))


def _reflowed(text: str) -> str:
    """Returns a text whose paragraphs are one line each, but for those that hold an indented line, such as code."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if re.search(r"^\s", p, re.MULTILINE) else " ".join(p.split()) for p in paragraphs)


def _own(name: str) -> tuple[Kind, type[Part]]:
    """Imports a user's own class. Returns it with its kind; ends the command if it cannot be a part."""
    try:
        return own_part(name)
    except WrongClass as error:
        refuse(error)


def _unknown(word: str) -> str:
    known = [name for kind in kinds() for part in kind.parts for name in names_of(part)]
    known += [name for kind in kinds() for name in (kind.word, kind.key)]
    return f"list: must be a key, a name that `raysim list` shows, or module:Class, got {word!r}{nearest(word, known)}"
