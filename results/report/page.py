"""Makes the page, with every section for which the runs' tables hold something."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from results.compare import compare
from results.counted import key_axes
from results.disk import replacing
from results.drawing import SERIES
from results.groups import Groups, grouped, text, with_names_of_parts
from results.keys import UnknownKey, as_yaml
from results.measure import Measure, NotComparable
from results.reader import open_run
from results.readings import readings
from results.render import as_html, text_table
from results.report.section import Picture, Section, pictures
from results.report.sections import SECTIONS
from results.run_set import RunSet
from results.score import common_budget
from results.texts import count
from results.views import lines, view


@dataclass(frozen=True)
class Report:
    """A page, and its figures, each of which can be written as its own file."""

    html: str
    pictures: tuple[Picture, ...]

    def write(self, page: Path, figures: Path | None = None) -> None:
        """Writes the page and, where a folder is given, each figure as an SVG file in it. A missing folder is made.

        Raises CannotWrite.
        """
        files = {page: self.html}
        if figures is not None:
            files |= {figures / f"{picture.name}.svg": picture.svg for picture in self.pictures}
        for file, content in files.items():
            with replacing(file.resolve()) as hidden:  # a link stays a link
                hidden.write_text(content, encoding="utf-8")


def report(
    runs: RunSet, by: Iterable[str] | None = None, sections: Sequence[Section] = SECTIONS, **more: Any
) -> Report:
    """Makes a report on runs, whether they are over, under way or were killed; see `Runs.report` for the arguments.

    more: values for the template, if it is another one than `report/page.html.j2`, whose name is `template`. Raises
    NotARun where the columns of a table are not this version's, and what `grouped` raises.
    """
    for run in runs.runs:
        open_run(run.folder)  # raises NotARun where its tables cannot be read
    groups = grouped(runs, by)
    drawn = [(section, list(pictures(section, groups))) for section in sections]
    names = list(dict.fromkeys(_name(run.info) or run.id for run in runs.runs))
    shown = "Shown is the first run of each group." if len(runs) > len(groups.shown) else ""
    heads, rows, reasons = lines([view(run, run.id) for run in runs.runs])
    values: dict[str, Any] = {
        "title": f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}: {count(len(runs), 'run')}",
        "groups": groups,
        "best": headline(groups, by),
        "runs": _html(pd.DataFrame(rows, columns=list(heads))[[heads[0], heads[-1], *heads[2:-1], heads[1]]]),
        "reasons": reasons,
        "differ": _html(_differing(groups)) if len(groups) > 1 else "",
        "common": as_yaml(_common(runs[0].info.get("scenario") or {}, {*runs.varying})),
        "sections": [(section, section.text.format(shown=shown), found) for section, found in drawn if found],
    }
    template = more.pop("template", "report/page.html.j2")
    return Report(filled(template, **values, **more), tuple(picture for _, found in drawn for picture in found))


def _name(info: Mapping[str, Any]) -> str:
    """Returns the name of the sweep that a run is of, or of its scenario."""
    return str((info.get("sweep") or {}).get("name") or info.get("name") or "")


def filled(template: str, **values: Any) -> str:
    """Returns the page of a template in this package that extends `report/base.html.j2`."""
    return _environment().get_template(template).render(series=[light for light, _ in SERIES], **values)


def _html(frame: pd.DataFrame) -> str:
    return frame.to_html(index=False, border=0, na_rep="")


def headline(groups: Groups, by: Iterable[str] | None = None) -> str:
    """Returns what `raysim compare` says of the groups at equal virtual time or, where that is not in seconds, after
    equal rounds; empty if no run is over, or nothing was evaluated."""
    runs = groups.runs
    cost = "virtual_time" if groups.timed else "rounds"
    found = readings(runs, subjects=[runs.subject], splits=["test"])
    metrics = sorted(found["metric"].unique().tolist(), key=lambda metric: metric != "accuracy")
    if not metrics:
        return ""
    comparable = {*found[found["metric"] == metrics[0]]["run"]}
    runs = runs.only(run for run in runs.runs if run.id in comparable)
    try:
        totals = ("virtual_time", "up_bytes", "down_bytes")
        at = cost, common_budget(runs, cost)
        measure = Measure((*metrics, *totals), subject=runs.subject, at=at, larger=runs.directions)
        compared = compare(runs, by, (), measure, False)
    except (NotComparable, UnknownKey):  # such as a key of runs that do not count
        return ""
    if lacking := len(groups) - len(compared.frame) // len(measure.metrics):
        text = f"left out: {count(lacking, 'group')} of runs, none of which is finished and was evaluated by then"
        compared = replace(compared, context=(*compared.context, text))
    return as_html(text_table(compared))


def _differing(groups: Groups) -> pd.DataFrame:
    """Returns the values of the keys in which groups differ, a row for each key and a column for each group."""
    keys = [*dict.fromkeys([*groups.keys, *key_axes(groups.runs, None, ())[0]])]
    firsts = with_names_of_parts(keys, [group.first.keys for group in groups.groups])
    labels = [group.label for group in groups.groups]
    cells = {at: [text(of[key]) if key in of else "" for key in keys] for at, of in zip(labels, firsts, strict=True)}
    return pd.DataFrame({"key": keys, **cells})


def _common(block: Mapping[str, Any], left_out: set[str], above: str = "") -> dict[str, Any]:
    """Returns a scenario without some keys, given by their dotted paths."""
    nested = {
        name: _common(value, left_out, f"{above}{name}.") if isinstance(value, Mapping) else value
        for name, value in block.items()
        if above + name not in left_out
    }
    return {name: value for name, value in nested.items() if value != {}}


@cache
def _environment() -> Environment:
    """Returns what compiles templates, each of them once."""
    how: Any = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=PackageLoader("results", ""), **how)
