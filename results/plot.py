"""Learning curves for notebooks and papers: those of the report, on matplotlib's axes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from matplotlib import rc_context
from matplotlib.figure import Figure

from results.disk import replacing
from results.groups import Groups, RunGroup, grouped
from results.measure import NotComparable
from results.report import style
from results.report.curves import AXES, finish, points
from results.report.draw import band as draw_band
from results.texts import quoted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from results.run_set import RunSet

BANDS = ("min-max", "std", "ci", "none")
FORMATS = ("pdf", "svg", "png")
LEVEL = 0.95  # of confidence intervals
_SUBJECTS = ("global", "client", "unseen", "peer")
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
_LENGTH = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_INCHES)})")


class Curves(TypedDict, total=False):
    """How curves are drawn."""

    by: Iterable[str] | None  # keys whose values make the lines; None: all that differ, except the seed
    split: str  # test, train or validation
    subject: str | None  # client, unseen or peer, for the mean over their own models; None or global: the global model,
    # or all peers together
    band: str  # around a line over several seeds: min-max, std, ci (95 %, by the t-distribution) or none
    order: Sequence[str]  # of the lines, by their labels; those that are not named follow
    labels: Mapping[str, str]  # other texts for the legend, by the lines' labels


def plot(
    runs: RunSet, metric: str = "accuracy", x: str = "round", axes: Axes | None = None, **how: Unpack[Curves]
) -> Axes:
    """Draws a metric of runs over rounds, virtual time, bytes or real time, and returns the axes.

    A line is the mean over the runs of a group, which by default differ in their seed alone.

    x: round, virtual_time, bytes or seconds. axes: where to draw; None: in a new figure of pyplot.
    Raises NotComparable (a ValueError) for what cannot be drawn, and UnknownKey for a key that no run has.
    """
    table, groups = _table(runs, metric, x, how)
    if axes is None:
        from matplotlib import pyplot

        # Outside of the context, which would take back what a notebook's backend sets when the first figure loads it.
        figure = pyplot.figure(figsize=(5.0, 3.0), layout="constrained")
        with rc_context(style.RC):
            axes = figure.subplots()
    _draw(axes, groups, table, metric, x, how)
    return axes


def save(
    runs: RunSet,
    path: Path,
    metric: str = "accuracy",
    x: str = "round",
    *,
    width: str = "3.3in",
    height: str | None = None,
    font: str = "DejaVu Sans",
    size: float = 8.0,
    **how: Unpack[Curves],
) -> None:
    """Writes a figure for a paper, as PDF, SVG or PNG by the ending of the path. Equal runs give an equal file.

    width, height: with a unit of in, cm, mm or pt; the height is by default 0.7 of the width. font: a family that
    matplotlib finds, such as serif. size: of all letters, in points. For the others, and for errors, see `plot`.
    Raises CannotWrite.
    """
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise NotComparable(f"out: must end in .{', .'.join(FORMATS)}, got {quoted(path.name)}; give another name")
    wide = inches(width, "width")
    high = 0.7 * wide if height is None else inches(height, "height")
    table, groups = _table(runs, metric, x, how)
    letters = dict.fromkeys(
        ("font.size", "axes.labelsize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize"), size
    )
    files = {"pdf.fonttype": 42, "savefig.transparent": False, "svg.hashsalt": "raysim", "savefig.dpi": 300}
    thin = {"lines.linewidth": 1.2, "lines.markersize": 3.0, "font.family": font}
    with rc_context(style.RC | letters | files | thin):
        figure = Figure(figsize=(wide, high), layout="constrained")
        _draw(figure.subplots(), groups, table, metric, x, how)
        dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
        with replacing(path) as hidden, open(hidden, "wb") as stream:
            figure.savefig(stream, format=form, metadata=dates.get(form))


def inches(text: str, key: str) -> float:
    """Returns a length such as "3.3in" or "84 mm" in inches. Raises NotComparable for any other text."""
    found = _LENGTH.fullmatch(text.strip())
    if not found or not float(found[1]):
        units = ", ".join(_INCHES)
        raise NotComparable(f"{key}: must be a number with a unit of {units}, such as 3.3in, got {quoted(text)}")
    return float(found[1]) * _INCHES[found[2]]


def _table(runs: RunSet, metric: str, x: str, how: Curves) -> tuple[pd.DataFrame, Groups]:
    """Returns the points of the lines, and the groups in the order in which they are drawn."""
    subject, split, band = how.get("subject"), how.get("split", "test"), how.get("band", "min-max")
    allowed = {"x": (x, tuple(AXES)), "band": (band, BANDS), "subject": (subject or "global", _SUBJECTS)}
    for key, (value, values) in allowed.items():
        if value not in values:
            raise NotComparable(f"{key}: must be one of {', '.join(values)}, got {quoted(value)}")
    groups = grouped(runs, how.get("by"))
    table = points(groups, None if subject == "global" else subject)
    found = table[(table["metric"] == metric) & (table["split"] == split)]
    if found.empty:
        have = sorted(
            {f"{of_metric} on {of_split}" for of_metric, of_split in zip(table["metric"], table["split"], strict=True)}
        )
        which = f"one of {', '.join(have)}" if have else "one of these models, of which there is no evaluation"
        raise NotComparable(f"metric: must be {which}, got {quoted(metric)} on {split}")
    return found[found[x].notna()], groups


def _draw(axes: Axes, groups: Groups, table: pd.DataFrame, metric: str, x: str, how: Curves) -> None:
    labels, shown = how.get("labels", {}), _in_order(groups, how.get("order", ()))
    if unknown := [label for label in labels if label not in {group.label for group in shown}]:
        raise _no_line("labels", unknown[0], groups)
    for group in shown:
        of_group = table[table["group"] == group.place]
        label = labels.get(group.label, group.label) if len(groups) > 1 or labels else None
        edges = _edges(of_group, how.get("band", "min-max"))
        strength = min(0.18, 0.6 / len(groups))
        draw_band(axes, group.look, label, of_group[x], of_group["mean"], *edges, strength=strength)
    finish(axes, groups, x, metric, table["mean"])
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False)


def _in_order(groups: Groups, order: Sequence[str]) -> list[RunGroup]:
    by_label = {group.label: group for group in groups.groups}
    for label in order:
        if label not in by_label:
            raise _no_line("order", label, groups)
    first = [by_label[label] for label in order]
    return [*first, *(group for group in groups.groups if group not in first)]


def _no_line(key: str, label: str, groups: Groups) -> NotComparable:
    have = ", ".join(quoted(group.label) for group in groups.groups)
    return NotComparable(f"{key}: must name lines of the figure, which are {have}, got {quoted(label)}")


def _edges(table: pd.DataFrame, band: str) -> tuple[Any, ...]:
    """Returns the lower and upper edge of a line's band; none if there is none, or a single run."""
    if band == "none" or (table["count"].fillna(2) < 2).all():
        return ()
    if band == "min-max":
        return table["min"], table["max"]
    half = table["std"]
    if band == "ci":
        from scipy import stats

        half = half * stats.t.ppf((1 + LEVEL) / 2, table["count"] - 1) / table["count"] ** 0.5
    return table["mean"] - half, table["mean"] + half
