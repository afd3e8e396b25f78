"""Learning curves for notebooks and papers: those of the report, on matplotlib's axes."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.counted import counted_runs
from results.disk import replacing
from results.drawing import AXES, RC, band, by_group, evaluated, label_axis, legend_below, points, wide_scale
from results.groups import Groups, grouped
from results.info import range_of
from results.measure import SUBJECTS, NotComparable, require_of
from results.ranking import LEVEL
from results.run_set import RunSet
from results.texts import count, quoted

BANDS = ("minmax", "std", "ci", "none")
FORMATS = ("pdf", "svg", "png")


class Drawn(TypedDict, total=False):
    """What curves show, as `Runs.plot` says."""

    by: Iterable[str] | None
    split: str
    subject: str | None  # None or global: the global model, or all peers together
    band: str
    unfinished: bool


def plot(
    runs: RunSet, metric: str = "accuracy", x: str | None = None, axes: Axes | None = None, **how: Unpack[Drawn]
) -> Axes:
    """Draws a metric of runs as `Runs.plot` says, and returns the axes."""
    groups, table, x, notes = _table(runs, metric, x, how)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    if own := axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(5.0, 3.0), layout="constrained")
    _draw(axes, groups, table, x, metric, how)
    if own:
        legend_below(axes)
    elif axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False)
    return axes


def save(
    runs: RunSet,
    path: Path,
    metric: str = "accuracy",
    x: str | None = None,
    *,
    width: float = 3.3,
    height: float | None = None,
    **how: Unpack[Drawn],
) -> list[str]:
    """Writes a figure for a paper, as PDF, SVG or PNG by the ending of the path. Equal runs give an equal file.

    Returns a line for each run that is left out, and for each unfinished one that counts. width, height: in inches; the
    height is by default 0.7 of the width, and a row for each line of the legend. For the others, and for errors, see
    `plot`. Raises CannotWrite.
    """
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise NotComparable(f"out: must end in .{', .'.join(FORMATS)}, got {quoted(path.name)}; give another name")
    groups, table, x, notes = _table(runs, metric, x, how)
    letters = dict.fromkeys(("font.size", "axes.labelsize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 8)
    settings: Any = RC | letters | {"lines.linewidth": 1.2, "lines.markersize": 3.0}
    with rc_context(settings):
        figure = Figure(figsize=(width, height or 0.7 * width), layout="constrained")
        _draw(axes := figure.subplots(), groups, table, x, metric, how)
        legend_below(axes, grows=height is None)
        dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
        with replacing(path) as hidden, open(hidden, "wb") as stream:
            figure.savefig(stream, format=form, metadata=dates.get(form))
    return notes


def _table(runs: RunSet, metric: str, x: str | None, how: Drawn) -> tuple[Groups, pd.DataFrame, str, list[str]]:
    """Returns the lines and their points, the first axis, and a note on each run that is not drawn."""
    subject, split = how.get("subject"), how.get("split", "test")
    require_of("x", x or "round", AXES)
    require_of("band", how.get("band", "minmax"), BANDS)
    require_of("subject", subject or "global", SUBJECTS)
    unfinished = how.get("unfinished", False) or not any(run.over for run in runs.runs)
    counted, notes = counted_runs(runs, unfinished)
    groups = grouped(counted, how.get("by"))
    notes += [note for group in groups.groups for note in group.notes]
    x = x or groups.axis
    frame = evaluated(groups, None if subject == "global" else subject)
    found = frame[(frame["metric"] == metric) & (frame["split"] == split)]
    if found.empty:
        have = sorted({f"{name} on {of}" for name, of in zip(frame["metric"], frame["split"], strict=True)})
        which = (
            f"one of {', '.join(have)}" if have else "evaluated in a run, and none has an evaluation of these models"
        )
        raise NotComparable(f"metric: must be {which}, got {quoted(metric)} on {split}")
    if lack := [run for run in groups.drawn.runs if run.id not in {*found["run"]}]:
        notes.append(f"left out: {count(len(lack), 'run')} without {metric} on {split}, such as {lack[0].folder}")
        groups = grouped(counted.only(run for run in counted.runs if run not in lack), how.get("by"))
    table = points(groups, groups.placed(found))
    return groups, table[table[x].notna()], x, notes


def _draw(axes: Axes, groups: Groups, table: pd.DataFrame, x: str, metric: str, how: Drawn) -> None:
    edges, subject = how.get("band", "minmax"), how.get("subject")
    for place, rows in by_group(table):
        band(axes, place, groups.label(place), rows[x], rows["mean"], *_edges(rows, edges, range_of(metric)))
    label_axis(axes, groups, x)
    members = f", mean over {'unseen clients' if subject == 'unseen' else f'{subject}s'}"
    axes.set_ylabel(metric + ("" if subject in (None, "global") else members))
    wide_scale(axes, table["mean"])


def _edges(table: pd.DataFrame, band: str, most: tuple[float, float]) -> tuple[Any, ...]:
    """Returns the lower and upper edge of a line's band, cut to the metric's range `most`; none if there is none, or a
    single run."""
    if band == "none" or (table["count"].fillna(2) < 2).all():
        return ()
    if band == "minmax":
        return table["min"], table["max"]
    half = table["std"]
    if band == "ci":
        from scipy import stats

        half = half * stats.t.ppf((1 + LEVEL) / 2, table["count"] - 1) / table["count"] ** 0.5
    return (table["mean"] - half).clip(*most), (table["mean"] + half).clip(*most)
