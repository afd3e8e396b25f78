"""Makes the page, with every section for which the runs' tables hold something."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from results import style
from results.disk import replacing, writing
from results.groups import Groups, grouped
from results.location import is_local
from results.picture import Picture
from results.reader import open_run
from results.report.budgets import budgets
from results.report.columns import coefficients, own_columns, updates
from results.report.curves import curves
from results.report.dispatches import staleness, timeline
from results.report.members import members
from results.report.overview import overview
from results.report.partition import partition
from results.report.real_time import real_time
from results.report.section import Maker, Section
from results.report.settings import settings
from results.report.standings import standings
from results.report.topology import topology
from results.report.verdict import verdict
from results.run_set import RunSet
from results.texts import count

SCRIPT = files("results.report").joinpath("page.js").read_text(encoding="utf-8")
"""The page's only script, which shows values under the pointer."""

SECTIONS: tuple[Maker, ...] = (
    *(curves, budgets, settings, members, partition, topology, staleness, timeline),
    *(updates, own_columns, coefficients, real_time),
)


@dataclass(frozen=True)
class Report:
    """A page, and its figures, each of which can be written as a file of its own."""

    html: str
    pictures: tuple[Picture, ...]

    def write(self, page: Path, figures: Path | None = None) -> None:
        """Writes the page and, where a folder is given, each figure as an SVG file in it. A missing folder is made.

        Raises CannotWrite.
        """
        _write(page, self.html)
        if figures is not None:
            for picture in self.pictures:
                _write(figures / f"{picture.name}.svg", picture.svg)


def _write(path: Path, text: str) -> None:
    """Writes a whole file; on a full disk, the old one stays. What is no file, such as /dev/stdout, is not replaced."""
    if is_local(path):
        path = path.resolve()  # a link stays a link
        if path.exists() and not path.is_file():
            with writing(path):
                path.write_text(text, encoding="utf-8")
            return
    with replacing(path) as hidden:
        hidden.write_text(text, encoding="utf-8")


def report(runs: RunSet, by: Iterable[str] | None = None, picked: bool = False) -> Report:
    """Makes a report on runs, whether they are over, under way or were killed; see `Runs.report` for the arguments.

    Raises NotARun where the columns of a table are not this version's, and what `grouped` raises.
    """
    for run in runs.runs:
        open_run(run.folder)  # raises NotARun where its tables cannot be read
    groups = grouped(runs, by, picked)
    sections = [section for make in SECTIONS if (section := make(groups))]
    pictures = [picture for section in sections for panel in section.panels for picture in panel.pictures]
    return Report(page(groups, sections), tuple(pictures))


def page(groups: Groups, sections: Sequence[Section], template: str = "report/page.html.j2", **more: Any) -> str:
    """Returns the page of some sections. template: that one, or one that extends it and needs more values."""
    found = standings(groups)
    values = {
        "groups": groups,
        "verdict": verdict(found) if found else None,
        "overview": overview(groups),
        "sections": sections,
        **more,
    }
    return filled(template, title=_title(groups.runs), **values)


def filled(template: str, **values: Any) -> str:
    """Returns the page of a template in this package that extends `report/base.html.j2`."""
    looks = {"colours": style.variables(), "series": len(style.SERIES), "font": style.FONT, "script": SCRIPT}
    return _environment().get_template(template).render(**looks, **values)


def _title(runs: RunSet) -> str:
    names = list(dict.fromkeys(str(run.info.get("name") or run.id) for run in runs.runs))
    return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}: {count(len(runs), 'run')}"


@cache
def _environment() -> Environment:
    """Returns what compiles templates, each of them once."""
    return Environment(
        loader=PackageLoader("results", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
