"""Learning curves for notebooks and papers: those of the report, on matplotlib's axes."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from results.counted import counted_runs, counting, key_axes, members, rising
from results.disk import replacing
from results.drawing import band as draw_band
from results.groups import Groups, Look, RunGroup, grouped, telling
from results.keys import spell_out
from results.measure import NotComparable
from results.ranking import LEVEL
from results.report.curves import AXES, finish, points
from results.run_set import RunSet
from results.style import Styled, inches
from results.texts import quoted, short_names, written

BANDS = ("minmax", "std", "ci", "none")
FORMATS = ("pdf", "svg", "png")
_SUBJECTS = ("global", "client", "unseen", "peer")
_NARROWEST = 1.6  # inches of a panel
_SHAPE = 0.7  # height of a panel, as a share of its width
_ROW = 0.17  # inches of a legend's row below panels


class Drawn(TypedDict, total=False):
    """How curves are drawn and look, as `Runs.plot` says."""

    by: Iterable[str] | None
    facet: str | None
    split: str
    subject: str | None  # None or global: the global model, or all peers together
    band: str
    order: Sequence[str]
    labels: Mapping[str, str]
    unfinished: bool
    style: str


class Plotted(NamedTuple):
    """What a panel of a figure shows."""

    title: str
    metric: str
    groups: Groups
    table: pd.DataFrame


def plot(
    runs: RunSet,
    metric: str | Sequence[str] = "accuracy",
    x: str | None = None,
    axes: Axes | None = None,
    **how: Unpack[Drawn],
) -> Axes | NDArray[Any]:
    """Draws metrics of runs as `Runs.plot` says, and returns the axes; of several panels, an array of them."""
    panels, x, notes = _panels(runs, metric, x, how)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    styled = Styled(how.get("style", "page"))
    if axes is not None:
        if len(panels) > 1:
            raise NotComparable(f"axes: must be for one panel, got {len(panels)}; leave it out for a figure of them")
        _draw(axes, panels[0], x, how, styled, _looks(panels))
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False)
        return axes
    from matplotlib import pyplot

    # Outside of the context, which would take back what a notebook's backend sets when the first figure loads it.
    figure = pyplot.figure(figsize=(5.0, 3.0) if len(panels) == 1 else (9.0, 3.0), layout="constrained")
    with styled.context():
        figure.set_facecolor(styled.background)
        drawn = _fill(figure, panels, x, how, styled, None)
    return drawn.flat[0] if len(panels) == 1 else drawn


def save(
    runs: RunSet,
    path: Path,
    metric: str | Sequence[str] = "accuracy",
    x: str | None = None,
    *,
    width: str = "3.3in",
    height: str | None = None,
    font: str = "DejaVu Sans",
    size: float = 8.0,
    **how: Unpack[Drawn],
) -> list[str]:
    """Writes a figure for a paper, as PDF, SVG or PNG by the ending of the path. Equal runs give an equal file.

    Returns a line for each run that is left out, and for each unfinished one that counts.

    style: paper, page (as in reports), dark (for slides), or a style of matplotlib's. width, height: of the figure,
    with a unit of in, cm, mm or pt; the height is by default 0.7 of the width of each row of panels. font: a family
    that matplotlib finds, such as serif. size: of all letters, in points. For the others, and for errors, see `plot`.
    Raises CannotWrite.
    """
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise NotComparable(f"out: must end in .{', .'.join(FORMATS)}, got {quoted(path.name)}; give another name")
    wide = inches(width, "width")
    high = None if height is None else inches(height, "height")
    panels, x, notes = _panels(runs, metric, x, how)
    styled = Styled(how.get("style", "paper"))
    with styled.context(font, size):
        figure = Figure(figsize=(wide, high or _SHAPE * wide), layout="constrained", facecolor=styled.background)
        _fill(figure, panels, x, how, styled, high)
        dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
        with replacing(path) as hidden, open(hidden, "wb") as stream:
            figure.savefig(stream, format=form, metadata=dates.get(form))
    return notes


# --- what is drawn ----------------------------------------------------------------------------------------------------


def _counted(runs: RunSet, how: Drawn) -> tuple[RunSet, list[str]]:
    """Returns the runs to draw, one for each line, panel and seed, and a note on each other one, as comparisons do."""
    unfinished = how.get("unfinished", False) or not any(run.over for run in runs.runs)
    counted, notes = counted_runs(runs, unfinished)
    rows, _ = key_axes(counted, how.get("by"), ())
    facet = how.get("facet")
    heads = [] if facet is None else key_axes(counted, [facet], ())[0]
    kept = {run for group in counting(counted, [*dict.fromkeys([*rows, *heads])], notes).values() for run in group}
    return counted.only(run for run in counted.runs if run in kept), notes


def _panels(
    runs: RunSet, metric: str | Sequence[str], x: str | None, how: Drawn
) -> tuple[list[Plotted], str, list[str]]:
    """Returns what each panel shows, the first axis, and a note on each run that is not drawn."""
    counted, notes = _counted(runs, how)
    subject, band = how.get("subject"), how.get("band", "minmax")
    allowed = {"x": (x or "round", tuple(AXES)), "band": (band, BANDS), "subject": (subject or "global", _SUBJECTS)}
    for key, (value, values) in allowed.items():
        if value not in values:
            raise NotComparable(f"{key}: must be one of {', '.join(values)}, got {quoted(value)}")
    metrics = (metric,) if isinstance(metric, str) else tuple(metric)
    sets = list(_facets(counted, how))
    x = x or sets[0][1].axis
    panels = []
    for title, groups in sets:
        table = points(groups, None if subject == "global" else subject)
        for name in metrics:
            found = _of_metric(table, name, how.get("split", "test"))
            both = ", ".join(filter(None, (name if len(metrics) > 1 and title else "", title)))
            panels.append(Plotted(both, name, groups, found[found[x].notna()]))
    return panels, x, notes


def _facets(runs: RunSet, how: Drawn) -> Iterator[tuple[str, Groups]]:
    """Yields a title and groups for each value of the key that makes panels; without one, all runs."""
    by = how.get("by")
    if (facet := how.get("facet")) is None:
        yield "", grouped(runs, by)
        return
    key = spell_out(facet, runs.known)
    keys, _ = key_axes(runs, by, ())
    others = [of for of in (keys if by else telling(keys, list(members(runs, keys)))) if of != key]
    panels = members(runs, [key])
    for values in sorted(panels, key=rising):
        yield f"{short_names([key])[key]}={written(values[0])}", grouped(panels[values], others or None)


def _of_metric(table: pd.DataFrame, metric: str, split: str) -> pd.DataFrame:
    found = table[(table["metric"] == metric) & (table["split"] == split)]
    if found.empty:
        have = sorted({f"{name} on {of}" for name, of in zip(table["metric"], table["split"], strict=True)})
        none = "evaluated in a run, and none has an evaluation of these models"
        which = f"one of {', '.join(have)}" if have else none
        raise NotComparable(f"metric: must be {which}, got {quoted(metric)} on {split}")
    return found


def _looks(panels: Sequence[Plotted]) -> dict[str, Look]:
    """Returns the look of each line by its label: that of reports or, in panels by a key, one for each label."""
    sets = {id(panel.groups): panel.groups for panel in panels}
    found = {group.label: group.look for groups in sets.values() for group in groups.groups}
    return found if len(sets) == 1 else {label: Look(place, place) for place, label in enumerate(found)}


# --- how it is drawn --------------------------------------------------------------------------------------------------


def _fill(
    figure: Figure, panels: Sequence[Plotted], x: str, how: Drawn, styled: Styled, height: float | None
) -> NDArray[Any]:
    """Draws the panels in rows, with one legend, and returns their axes. height: in inches; None: by their width."""
    wide = float(figure.get_figwidth())
    columns = max(1, min(len(panels), int(wide // _NARROWEST), 4))
    rows = -(-len(panels) // columns)
    drawn = figure.subplots(rows, columns, squeeze=False, sharey=len({panel.metric for panel in panels}) == 1)
    looks, handles = _looks(panels), {}
    for axes, panel in zip(drawn.flat, panels, strict=False):
        _draw(axes, panel, x, how, styled, looks)
        handles.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
    for axes in list(drawn.flat)[len(panels) :]:
        axes.set_axis_off()
    high = height or _SHAPE * wide / columns * rows
    if len(panels) == 1 and handles:
        drawn.flat[0].legend(frameon=False)
    elif handles:
        across = max(1, min(len(handles), int(wide // (0.45 + 0.075 * max(map(len, handles))))))
        figure.legend([*handles.values()], [*handles], loc="outside lower center", ncols=across, frameon=False)
        high = height or high + _ROW * -(-len(handles) // across)
    figure.set_figheight(high if height or len(panels) > 1 else figure.get_figheight())
    return drawn


def _draw(axes: Axes, panel: Plotted, x: str, how: Drawn, styled: Styled, looks: Mapping[str, Look]) -> None:
    groups, labels = panel.groups, how.get("labels", {})
    for key, given in (("labels", labels), ("order", how.get("order", ()))):
        if unknown := [label for label in given if label not in looks]:
            have = ", ".join(map(quoted, looks))
            raise NotComparable(f"{key}: must name lines of the figure, which are {have}, got {quoted(unknown[0])}")
    for group in _in_order(groups, how.get("order", ())):
        table = panel.table[panel.table["group"] == group.place]
        label = labels.get(group.label, group.label) if len(looks) > 1 or labels else None
        edges, strength = _edges(table, how.get("band", "minmax")), min(0.18, 0.6 / len(groups))
        draw_band(axes, looks[group.label], label, table[x], table["mean"], *edges, strength=strength)
        styled.recolour(axes, looks[group.label].hue, bool(edges))
    finish(axes, groups, x, panel.metric, panel.table["mean"])
    if panel.title:
        axes.set_title(panel.title)


def _in_order(groups: Groups, order: Sequence[str]) -> list[RunGroup]:
    by_label = {group.label: group for group in groups.groups}
    first = [by_label[label] for label in order if label in by_label]
    return [*first, *(group for group in groups.groups if group not in first)]


def _edges(table: pd.DataFrame, band: str) -> tuple[Any, ...]:
    """Returns the lower and upper edge of a line's band; none if there is none, or a single run."""
    if band == "none" or (table["count"].fillna(2) < 2).all():
        return ()
    if band == "minmax":
        return table["min"], table["max"]
    half = table["std"]
    if band == "ci":
        from scipy import stats

        half = half * stats.t.ppf((1 + LEVEL) / 2, table["count"] - 1) / table["count"] ** 0.5
    return table["mean"] - half, table["mean"] + half
