"""The section on how even clients, or peers, fare: who has the worst model, and whether who takes part more has a
better one."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes

from results.groups import Groups, RunGroup
from results.report import style
from results.report.draw import band
from results.report.picture import Picture, picture
from results.report.section import PageRow, PageTable, Panel, Section

_WORST = 0.05  # share of clients that are called the worst
_LISTED = 8  # worst clients of a run
_DOTS = 250  # of a group in a figure, at most
_LABELS = 6  # of a client in a table
_HEADS = ("", "mean", "worst 5 %", "best 5 %", "standard deviation", "models")


def fairness(groups: Groups) -> Section | None:
    """Returns the section; None if no client's or peer's own model was evaluated on test samples."""
    frame = _last(groups)
    if frame.empty:
        return None
    metric = str(frame["metric"].iloc[0])
    whose = "peers" if (frame["subject"] == "peer").any() else "clients"
    taken = _participation(groups, frame)
    pictures = [_distribution(groups, frame, metric, whose), *_against(groups, taken, metric, whose)]
    text = (
        f"The last evaluation of each of the {whose} by itself on test samples of its own, over all runs of a group. "
        f"Worst and best are means over so many of a run's {whose}."
    )
    lists = [panel for group in groups.shown if (panel := _worst(group, taken, metric, whose))]
    return Section("fairness", "Fairness", text, pictures, details=lists, tables=[_summary(groups, frame, metric)])


def _last(groups: Groups) -> pd.DataFrame:
    """Returns a row for each member of each run: its last value of accuracy or, if nobody has it, of loss."""
    own = pc.field("subject").isin(["client", "peer"]) & (pc.field("split") == "test") & pc.is_valid(pc.field("value"))
    own &= pc.field("metric").isin(["accuracy", "loss"])
    if groups.picked:
        own &= (pc.field("subject") != "client") | (pc.field("picked") > 0)
    frame = groups.frame("evaluations", ["round", "step", "subject", "member", "metric", "value"], own)
    frame = frame.astype({"run": str, "metric": str, "subject": str})
    frame = frame[frame["metric"] == ("accuracy" if (frame["metric"] == "accuracy").any() else "loss")]
    ends = frame.groupby("run")["step"].transform("max")
    return frame[frame["step"] == ends]


def _participation(groups: Groups, frame: pd.DataFrame) -> pd.DataFrame:
    """Adds how often each member's updates were used."""
    updates = groups.frame("updates", ["client"], pc.field("status") == "used").astype({"run": str})
    used = updates.groupby(["run", "client"]).size().rename("used")
    found = frame.join(used, on=["run", "member"])
    return found.assign(used=found["used"].fillna(0).astype(int))


def _distribution(groups: Groups, frame: pd.DataFrame, metric: str, whose: str) -> Picture:
    def draw(axes: Axes) -> None:
        for group in groups.groups:
            rising = np.sort(frame["value"][frame["group"] == group.place].to_numpy(float))
            if len(rising):
                share = 100 * np.arange(1, len(rising) + 1) / len(rising)
                band(axes, group.look, groups.label(group.place), rising, share)
        axes.set(xlabel=metric, ylabel=f"% of {whose} at most so", ylim=(-2, 102))

    caption = f"Share of {whose} whose {metric} is at most so. The steeper the line, the more even they fare."
    return picture("fairness-distribution", f"{metric.capitalize()} over {whose}", caption, draw)


def _against(groups: Groups, taken: pd.DataFrame, metric: str, whose: str) -> Iterator[Picture]:
    """Yields the figure of participation against the metric, if it differs."""
    if taken["used"].nunique() < 2:
        return

    def draw(axes: Axes) -> None:
        for group in groups.groups:
            of = taken[taken["group"] == group.place]
            of = of.iloc[np.unique(np.linspace(0, len(of) - 1, min(len(of), _DOTS)).astype(int))] if len(of) else of
            shape = style.line(group.look, 1) | {"linestyle": "None", "alpha": 0.55, "markersize": 3.5}
            if len(of):
                axes.plot(of["used"], of["value"], label=groups.label(group.place), **shape)
        axes.set(xlabel="updates of it that were used", ylabel=metric)

    told = []
    for group in groups.groups:
        of = taken[taken["group"] == group.place]
        if of["used"].nunique() > 1 and of["value"].nunique() > 1:
            told.append(f"{group.label} {of['used'].corr(of['value'], method='spearman'):+.2f}")
    caption = f"A dot is one of the {whose} in a run. Rank correlation: {', '.join(told[:6])}." if told else ""
    yield picture("fairness-participation", f"Participation and {metric}", caption, draw)


def _summary(groups: Groups, frame: pd.DataFrame, metric: str) -> PageTable:
    rows = []
    for group in groups.groups:
        of_runs = [
            np.sort(of["value"].to_numpy(float)) for _, of in frame[frame["group"] == group.place].groupby("run")
        ]
        if not of_runs:
            continue
        ends = [(of[: _share(of)].mean(), of[-_share(of) :].mean()) for of in of_runs]
        worst, best = np.mean(ends, axis=0)[:: 1 if metric == "accuracy" else -1]
        numbers = (np.mean([of.mean() for of in of_runs]), worst, best, np.mean([of.std() for of in of_runs]))
        cells = (*(f"{number:.4f}" for number in numbers), f"{sum(map(len, of_runs)):,}")
        rows.append(PageRow((group.label, *cells), group.look.hue))
    return PageTable("", (_HEADS[0], f"{metric}, mean", *_HEADS[2:]), tuple(rows))


def _share(values: np.ndarray) -> int:
    return max(1, round(_WORST * len(values)))


def _worst(group: RunGroup, taken: pd.DataFrame, metric: str, whose: str) -> Panel | None:
    """Returns the worst members of a group's first run that has any, with what they hold."""
    of = taken[taken["group"] == group.place]
    if of.empty:
        return None
    run = next(run for run in group.drawn if run.id in set(of["run"]))
    of = of[of["run"] == run.id].sort_values("value", ascending=metric == "accuracy")[:_LISTED]
    wanted = (pc.field("split") == "train") & pc.field("client").isin(of["member"].astype(int).tolist())
    held = run.table("partition", ["client", "label", "samples"], wanted).to_pandas()
    rows = []
    for member, value, used in zip(of["member"].astype(int), of["value"], of["used"], strict=True):
        mine = held[held["client"] == member].sort_values("samples", ascending=False)
        labels = [f"{label} ({samples})" for label, samples in zip(mine["label"], mine["samples"], strict=True)]
        more = f" and {len(labels) - _LABELS} more" if len(labels) > _LABELS else ""
        total = f"{mine['samples'].sum():,}" if len(mine) else "-"
        rows.append(PageRow((str(member), f"{value:.4f}", str(used), total, ", ".join(labels[:_LABELS]) + more)))
    heads = (whose.removesuffix("s"), metric, "updates used", "training samples", "labels (samples)")
    label = f"The worst {whose} of {group.label}"
    return Panel(label, tables=[PageTable(f"In {run.id}", heads, tuple(rows))])
