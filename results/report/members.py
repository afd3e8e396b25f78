"""The section on clients' and peers' own models: how even they fare, whether who takes part more has a better one, and
how far peers are apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes

from results.counted import never_picked
from results.drawing import by_group, by_text, dots, ranks
from results.groups import Groups, RunGroup
from results.picture import Picture, picture
from results.readings import readings, values, with_nan
from results.report.section import PageRow, PageTable, Panel, Section, gaps, lines

_MEMBERS = {"client": "clients", "unseen": "unseen clients", "peer": "peers"}  # by subject
_CONSENSUS = {
    "consensus": "Root mean square distance of the peers' parameters from their mean.",
    "consensus_outputs": "Root mean square distance of the peers' predicted probabilities from their mean.",
}
_WORST = 0.05  # share of clients that are called the worst
_LISTED = 8  # worst clients of a run
_LABELS = 6  # of a client in a table
_HEADS = ("worst 5 %", "best 5 %", "standard deviation", "models")
_FEW = 6  # groups whose correlations a caption tells


def members(groups: Groups) -> Section | None:
    """Returns the section; None if neither clients' nor peers' models were evaluated."""
    rows = values(groups.drawn, subjects=_MEMBERS, picked=groups.picked)
    each = groups.placed(rows.filter(pc.is_valid(rows["value"])).to_pandas())
    ends = each.groupby(["run", "subject"], observed=True)["round"].transform("max")
    each["last"] = each["round"] == ends  # over all metrics, because one may be defined for nobody at the end
    pictures = [*_spreads(groups, each), *_consensus(groups)]
    if not pictures:
        return None
    text = (
        "What each client or peer predicts with was evaluated by itself. Means give every client or peer the same "
        "weight, however many samples it has."
    )
    text += gaps(each["value"])
    if groups.picked:
        text += " Clients are left out until they have taken part."
    elif note := never_picked(groups.drawn):
        text += f" {note}; with --picked, they are left out."
    even, tables, worst = _fairness(groups, each)
    return Section("members", "Clients' and peers' own models", text, [*even, *pictures], details=worst, tables=tables)


def _spreads(groups: Groups, each: pd.DataFrame) -> Iterator[Picture]:
    """Yields the figures of each metric over the rounds; of unseen clients, who are evaluated once, at the end."""
    directions = groups.runs.directions
    for (metric, split, subject), frame in by_text(each, "metric", "split", "subject"):
        whose, label = _MEMBERS[subject], metric.replace("_", " ")
        name, title = f"{subject}-{metric}-{split}", f"{label.capitalize()} of {whose}, {split}"
        if subject == "unseen":
            yield _at_the_end(groups, f"{name}-end", title, frame[frame["last"]], whose, label)
            continue
        figure = partial(lines, groups, over_rounds(frame, groups.evaluated_by), linear=True)
        caption = f"Line: mean over the {whose}. Band: from their 10 % to their 90 % quantile."
        yield figure(f"{name}-spread", f"{title}: spread", caption, label, "mean", "low", "high")
        if metric in directions:
            caption = f"The worst {subject} of each run; mean over the runs of a group."
            worst = "min" if directions[metric] else "max"
            yield figure(f"{name}-worst", f"{title}: worst", caption, f"worst {label}", worst)
        caption = f"Largest minus smallest value of a run's {whose}; mean over the runs of a group."
        yield figure(f"{name}-gap", f"{title}: gap", caption, f"gap in {label}", "gap")


def over_rounds(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Returns one row for each group and round, or virtual time, as `by` says.

    Mean and quantiles are taken over the members of all runs; min, max and gap are taken in each run and then averaged.
    All are NaN if a member has NaN.
    """
    key, other = ["group", by], {"round": "virtual_time", "virtual_time": "round"}[by]
    of_round = frame.groupby(key)["value"]
    table = of_round.mean().rename("mean").to_frame()
    table["low"], table["high"] = of_round.quantile(0.1), of_round.quantile(0.9)
    extremes = frame.groupby([*key, "run"], observed=True)["value"].agg(["min", "max"])
    extremes["gap"] = extremes["max"] - extremes["min"]
    whole = with_nan(table.join(extremes.groupby(key).mean()), of_round)
    return whole.join(frame.groupby(key)[other].mean()).reset_index()


def _at_the_end(groups: Groups, name: str, title: str, frame: pd.DataFrame, whose: str, label: str) -> Picture:
    def draw(axes: Axes) -> None:
        for place, of_group in by_group(frame):
            ranks(axes, groups.groups[place].look, groups.label(place), of_group["value"])
        axes.set(xlabel=f"{whose} from the lowest to the highest, %", ylabel=label)

    caption = f"The last evaluation of all {whose} of all runs, from the lowest value to the highest."
    return picture(name, title, caption, draw)


def _consensus(groups: Groups) -> Iterator[Picture]:
    apart = groups.placed(readings(groups.drawn, subjects=["peers"]))
    for (metric,), frame in by_text(apart[apart["metric"].str.startswith("consensus")], "metric"):
        by, label = groups.evaluated_by, metric.replace("_", " ")
        at = frame.groupby(["group", by])
        over_runs = with_nan(at["value"].agg(["mean", "min", "max"]), at["value"])
        table = over_runs.join(at[["round", "virtual_time"]].mean().drop(columns=by, errors="ignore")).reset_index()
        caption = _CONSENSUS.get(metric, "How far the peers are from their mean.") + groups.band
        yield lines(groups, table, metric, label.capitalize(), caption, label, "mean", "min", "max")


# --- how even they fare at the end ------------------------------------------------------------------------------------


def _fairness(groups: Groups, each: pd.DataFrame) -> tuple[list[Picture], list[PageTable], list[Panel]]:
    """Returns figures, a table by group, and a table of each group's worst members, of the last test accuracy or, if
    nobody has it, loss."""
    own = each[each["subject"].isin(["client", "peer"]) & (each["split"] == "test")].astype({"run": str, "metric": str})
    metric = next((name for name in ("accuracy", "loss") if name in set(own["metric"])), None)
    if metric is None:
        return [], [], []
    whose = "peers" if (own["subject"] == "peer").any() else "clients"
    frame = own[own["metric"] == metric]
    frame = frame[frame["step"] == frame.groupby("run")["step"].transform("max")]
    updates = groups.frame("updates", ["client"], pc.field("status") == "used").astype({"run": str})
    used = updates.groupby(["run", "client"]).size().rename("used")
    frame = frame.join(used, on=["run", "member"]).fillna({"used": 0}).astype({"used": int})
    pictures = [_at_the_end(groups, "fairness", f"{metric.capitalize()} over {whose}", frame, whose, metric)]
    if frame["used"].nunique() > 1:
        pictures.append(_participation(groups, frame, metric, whose))
    worst = [panel for group in groups.shown if (panel := _worst(group, frame, metric, whose))]
    return pictures, [_summary(groups, frame, metric)], worst


def _participation(groups: Groups, frame: pd.DataFrame, metric: str, whose: str) -> Picture:
    def draw(axes: Axes) -> None:
        dots(axes, groups, frame, "used", "value")
        axes.set(xlabel="updates of it that were used", ylabel=metric)

    varied = [(place, of) for place, of in by_group(frame) if of["used"].nunique() > 1 and of["value"].nunique() > 1]
    ranked = [
        f"{groups.groups[place].label} {of['used'].corr(of['value'], method='spearman'):+.2f}"
        for place, of in varied[:_FEW]
    ]
    caption = f"A dot is one of the {whose} in a run. Rank correlation: {', '.join(ranked)}." if ranked else ""
    return picture("fairness-participation", f"Participation and {metric}", caption, draw)


def _summary(groups: Groups, frame: pd.DataFrame, metric: str) -> PageTable:
    rows = []
    for place, of_group in by_group(frame):
        runs = [np.sort(of_run["value"].to_numpy(float)) for _, of_run in of_group.groupby("run")]
        numbers = np.mean([_ends(rising, metric == "accuracy") for rising in runs], axis=0)
        cells = (groups.groups[place].label, *(f"{number:.4f}" for number in numbers), f"{len(of_group):,}")
        rows.append(PageRow(cells, groups.groups[place].look.hue))
    return PageTable("", ("", f"{metric}, mean", *_HEADS), tuple(rows))


def _ends(rising: Any, larger: bool) -> tuple[float, float, float, float]:
    """Returns the mean of values in rising order, those of the worst and of the best, and their standard deviation."""
    few = max(1, round(_WORST * len(rising)))
    ends = (rising[:few].mean(), rising[-few:].mean())
    return rising.mean(), *ends[:: 1 if larger else -1], rising.std()


def _worst(group: RunGroup, frame: pd.DataFrame, metric: str, whose: str) -> Panel | None:
    """Returns the worst members of a group's first run that has any, with what they hold."""
    run = next((run for run in group.drawn if run.id in set(frame["run"])), None)
    if run is None:
        return None
    of = frame[frame["run"] == run.id].sort_values("value", ascending=metric == "accuracy")[:_LISTED]
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
    return Panel(f"The worst {whose} of {group.label}", tables=[PageTable(f"In {run.id}", heads, tuple(rows))])
