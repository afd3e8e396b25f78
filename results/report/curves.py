"""The section on learning curves: metrics against rounds, virtual time, bytes and real time."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes

from results.drawing import by_text, series, unit_along, whole_numbers, wide_scale
from results.groups import Groups
from results.picture import Picture, picture
from results.readings import REAL_TIME, of_models, readings, with_nan
from results.report.section import Panel, Section, gaps

AXES = {
    "round": "round",
    "virtual_time": "virtual time",
    "bytes": "bytes, up and down",
    "seconds": "real time in seconds",
}
_KEY = ["group", "metric", "split"]


def curves(groups: Groups) -> Section | None:
    """Returns the section; None if neither a global model nor all peers together were evaluated."""
    table = points(groups)
    if table.empty:
        return None
    text = (
        "Metrics of the global model or, without a server, their mean over peers. Bytes count the updates that were "
        "used and the messages that their clients had received; between peers, each message counts where it is sent "
        "and where it arrives. The runs of a group are averaged round by round, on both axes."
    )
    order = sorted(AXES, key=lambda name: name != groups.axis)
    panels = (Panel(AXES[name].split(",")[0], list(_pictures(groups, table, name))) for name in order)
    text += groups.band + gaps(table["mean"])
    return Section("curves", "Learning curves", text, tabs=[panel for panel in panels if panel.pictures])


def points(groups: Groups, subject: str | None = None) -> pd.DataFrame:
    """Returns one row for each group, metric, split and round; or virtual time, where all runs were evaluated by it.

    mean, min, max, std and count are those of the metric over runs, NaN if one of them has none; round, virtual_time,
    bytes and seconds are means over runs. std is the sample standard deviation, NaN for a single run.

    subject: client, unseen or peer, whose mean in each run is taken; None: the global model or, in runs without one,
    the mean over all peers.
    """
    which, spent = [subject] if subject else ["global", "peers"], ("bytes", REAL_TIME)
    frame = groups.placed(readings(groups.drawn, subjects=which, costs=spent))
    frame = frame if subject else of_models(frame)
    at = groups.evaluated_by
    means = {name: (name, "mean") for name in AXES if name != at}
    by = frame.groupby([*_KEY, at])
    values = with_nan(by["value"].agg(["mean", "min", "max", "std", "count"]), by["value"])
    return values.join(by.agg(**means)).reset_index()


def _pictures(groups: Groups, table: pd.DataFrame, name: str) -> Iterator[Picture]:
    for place, ((metric, split), of_metric) in enumerate(by_text(table, "metric", "split")):
        known = of_metric[of_metric[name].notna()]
        if known.empty or (name != "round" and not known[name].any()):  # the first round is 0
            continue

        def draw(axes: Axes, known: pd.DataFrame = known, metric: str = metric) -> None:
            series(axes, groups, known, name, "mean", "min", "max")
            finish(axes, groups, name, metric, known["mean"])

        title = f"{metric.capitalize()}, {split}"
        yield picture(f"{metric}-{split}-by-{name.replace('_', '-')}", title, "", draw, wide=not place)


def finish(axes: Axes, groups: Groups, x: str, metric: str, values: pd.Series[float]) -> None:
    """Labels the axes of a learning curve, and chooses their scales. x: a key of AXES."""
    axes.set(xlabel=AXES[x] + (groups.unit if x == "virtual_time" else ""), ylabel=metric)
    wide_scale(axes, values)
    if x == "bytes":
        unit_along(axes.xaxis, "B")
    elif x == "round":
        whole_numbers(axes)
