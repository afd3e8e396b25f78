"""A page for each algorithm: its equations, source, how it differs from the paper, a command, a curve, keys and code.

Equations and groups are in `equations/`, a file for each group; a command and a curve come from the case with the
algorithm's name in the scenario file of the group, `scenarios/algorithms/GROUP.yaml`; all else comes from the class.
"""

from __future__ import annotations

import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from generate.blocks import table, written
from generate.curve import Line, curve
from generate.schema import Missing, Option, find, options
from generate.words import anchor, code, plain

import raysim.algorithms
from raysim.parts.part import Part

HERE = Path(__file__).parent
SCENARIOS = HERE.parents[1] / "scenarios"
CURVES = HERE / "curves.json"  # written by docs/curves.py
# The groups in the order of the site, each with the algorithm whose curve is drawn beside those of the others.
BESIDE = {
    "synchronous": "fedavg",
    "asynchronous": "fedavg",
    "capacity": "fedavg",
    "personalised": "fedavg",
    "low_rank": "fedavg",
    "server_data": "fedavg",
    "peers": "decfedavg",
}
DIFFERENCES = re.compile(r"Differences\s+from\s+the\s+papers?:\s+")


class Group(NamedTuple):
    """Algorithms that are compared with each other."""

    name: str
    title: str
    about: str  # Markdown
    equations: dict[str, str]  # Markdown by the algorithm's name, in the order of pages


class Algorithm(NamedTuple):
    """What the code says of an algorithm."""

    name: str  # in scenario files
    option: Option
    part: type[Part]

    @property
    def title(self) -> str:
        """The paper's name: what stands in brackets in the first line of the module's docstring, or the class's."""
        first = (inspect.getdoc(inspect.getmodule(self.part)) or "").partition("\n\n")[0]
        found = re.findall(r"\(([\w+-]+)[,)]", first)
        return found[0] if found else self.part.__name__

    @property
    def line(self) -> str:
        return (inspect.getdoc(self.part) or "").partition("\n\n")[0].replace("\n", " ")


@cache
def groups() -> list[Group]:
    found = []
    for name in BESIDE:
        head, *sections = re.split(r"^## ", (HERE / "equations" / f"{name}.md").read_text(), flags=re.MULTILINE)
        title, _, about = head.removeprefix("# ").partition("\n")
        pairs = (section.partition("\n")[::2] for section in sections)
        found.append(Group(name, title, about.strip(), {key: text.strip() for key, text in pairs}))
    return found


@cache
def algorithms() -> dict[str, Algorithm]:
    """All algorithms by name. Raises Missing where one has no equations, or is in no group."""
    grouped = [name for group in groups() for name in group.equations]
    named = {next((n for n in o.names if n in grouped), o.names[0]): o for o in options(find("algorithm"))}
    found = {name: Algorithm(name, o, getattr(raysim.algorithms, o.definition)) for name, o in named.items()}
    if unlike := set(found) ^ set(grouped):
        raise Missing(
            f"{', '.join(sorted(unlike))}: must be an algorithm and have a section in docs/generate/equations"
        )
    return found


def navigation() -> list[dict[str, Any]]:
    """What the site's navigation shows below Algorithms, besides the pages that are written by hand."""
    return [
        {group.title: [{algorithms()[name].title: f"algorithms/{name}.md"} for name in group.equations]}
        for group in groups()
    ]


def pages() -> dict[str, str]:
    """The page of each algorithm, in Markdown, by the place of its file."""
    return {f"algorithms/{name}.md": page(group, name) for group in groups() for name in group.equations}


def index() -> str:
    """A section for each group, with a line for each of its algorithms."""
    return "\n\n".join(
        f"## {group.title} {{ #{group.name.replace('_', '-')} }}\n\n{group.about}\n\n"
        f"Compare them: `raysim sweep scenarios/algorithms/{group.name}.yaml`\n\n"
        + "\n".join(
            f"- [**{algorithms()[name].title}**]({name}.md): {plain(algorithms()[name].line)}"
            for name in group.equations
        )
        for group in groups()
    )


def page(group: Group, name: str) -> str:
    algorithm = algorithms()[name]
    written.add(algorithm.option.definition)
    source, differences = citation(algorithm.part)
    text = [f"# {algorithm.title} {{ #{anchor(algorithm.option.definition)} }}"]
    text.append(plain(inspect.getdoc(algorithm.part) or ""))
    names = " or ".join(map(code, algorithm.option.names))
    text.append(f"Name in scenario files: {names}. Group: [{group.title.lower()}](index.md).")
    text += ["## Equations", group.equations[name], "[What the letters mean](index.md#letters)"]
    text += ["## Source", plain(source)]
    if differences:
        text += ["## Differences from the source", plain(differences)]
    if folders := in_papers(name):
        text.append(f"It is run in {folders}; see [what came of it](../reproductions/index.md).")
    text += ["## Try it", f"```sh\nraysim run scenarios/algorithms/{group.name}.yaml --case {name} --inline\n```"]
    text += [f'<figure markdown="0">{drawing(group, name)}</figure>', note(group, name)]
    text += ["## Keys", table(algorithm.option.schema, "algorithm")]
    body = inspect.getsource(inspect.getmodule(algorithm.part)).split('"""', 2)[2].strip()  # type: ignore[arg-type]
    listing = "\n".join(f"    {line}".rstrip() for line in f"```python\n{body}\n```".splitlines())
    text += ["## Code", f'??? quote "The whole of it, {len(body.splitlines())} lines"\n\n{listing}']
    return "\n\n".join(text)


def drawing(group: Group, name: str) -> str:
    x, label = ("steps", "server steps") if name == "fedat" else ("rounds", "rounds")
    of_all = json.loads(CURVES.read_text())[group.name]
    beside = BESIDE[group.name]
    other = None if name in (beside, "fedat") else Line(_title(beside), of_all[beside][x], of_all[beside]["accuracy"])
    return curve(Line(_title(name), of_all[name][x], of_all[name]["accuracy"]), other, label, "test accuracy")


def note(group: Group, name: str) -> str:
    beside = BESIDE[group.name]
    against = f", and {_title(beside)} there in grey" if name not in (beside, "fedat") else ""
    return (
        f"One seed on [handwritten digits](../reference/data.md#part-Digits){against}: it shows that it works, and "
        "ranks nothing, for settings are not tuned."
    )


def _title(name: str) -> str:
    return algorithms()[name].title


def in_papers(name: str) -> str:
    """The folders of papers' scenarios that run an algorithm, as Markdown."""
    files = [path for path in SCENARIOS.glob("*/*.yaml") if path.parent.name != "algorithms"]
    runs = re.compile(rf"\b(algorithm|name): {name}\b")
    folders = sorted({path.parent.name for path in files if runs.search(path.read_text())})
    return " and ".join(f"`scenarios/{folder}/`" for folder in folders)


def citation(part: type[Part]) -> tuple[str, str]:
    """Where an algorithm comes from, and how it differs from there: what follows the first line of its module's
    docstring. Raises Missing where nothing follows."""
    text = inspect.getdoc(inspect.getmodule(part)) or ""
    _, _, rest = text.partition("\n\n")
    if not rest.strip():
        raise Missing(f"{part.__module__}: must say in its docstring where the algorithm comes from")
    source, *found = DIFFERENCES.split(rest.strip(), maxsplit=1)
    differences = "".join(found)
    return source.strip(), differences[:1].upper() + differences[1:]
