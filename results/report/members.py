"""The section on clients' and peers' own models: the spread of metrics over them, and how far peers are apart."""

from collections.abc import Iterator
from functools import partial

import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes

from results.counted import never_picked
from results.groups import Groups
from results.report.draw import lines, ranks
from results.report.frames import by_group, by_text, gaps, with_nan
from results.report.picture import Picture, picture
from results.report.section import Section

_MEMBERS = {"client": "clients", "unseen": "unseen clients", "peer": "peers"}  # by subject
_CONSENSUS = {
    "consensus": "Root mean square distance of the peers' parameters from their mean.",
    "consensus_outputs": "Root mean square distance of the peers' predicted probabilities from their mean.",
}
_COLUMNS = ["step", "round", "virtual_time", "subject", "split", "metric", "value"]


def members(groups: Groups) -> Section | None:
    """Returns the section; None if neither clients' nor peers' models were evaluated."""
    metric = pc.field("metric").cast("string")
    consensus = pc.starts_with(metric, "consensus")
    own = pc.field("subject").isin([*_MEMBERS]) & ~consensus & pc.is_valid(pc.field("value"))
    if groups.picked:
        own &= (pc.field("subject") != "client") | (pc.field("picked") > 0)
    apart = groups.frame("evaluations", _COLUMNS, consensus)
    each = groups.frame("evaluations", _COLUMNS, own)
    pictures = [*_spreads(groups, each), *_consensus(groups, apart)]
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
    return Section("members", "Clients' and peers' own models", text, pictures)


def _spreads(groups: Groups, own: pd.DataFrame) -> Iterator[Picture]:
    directions = groups.runs.directions
    ends = own.groupby(["run", "subject"], observed=True)["round"].transform("max")
    own = own.assign(last=own["round"] == ends)  # over all metrics, because one may be defined for nobody at the end
    for (metric, split, subject), frame in by_text(own, "metric", "split", "subject"):
        members, label = _MEMBERS[subject], _words(metric)
        name, title = f"{subject}-{metric}-{split}", f"{label.capitalize()} of {members}, {split}"
        if subject == "unseen":  # unseen clients are evaluated once, at the end
            yield _at_the_end(groups, f"{name}-end", title, frame, members, label)
            continue
        figure = partial(lines, groups, over_rounds(frame, groups.evaluated_by), linear=True)
        caption = f"Line: mean over the {members}. Band: from their 10 % to their 90 % quantile."
        yield figure(f"{name}-spread", f"{title}: spread", caption, label, "mean", "low", "high")
        if metric in directions:
            caption = f"The worst {subject} of each run; mean over the runs of a group."
            worst = "min" if directions[metric] else "max"
            yield figure(f"{name}-worst", f"{title}: worst", caption, f"worst {label}", worst)
        caption = f"Largest minus smallest value of a run's {members}; mean over the runs of a group."
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


def _at_the_end(groups: Groups, name: str, title: str, frame: pd.DataFrame, members: str, label: str) -> Picture:
    def draw(axes: Axes) -> None:
        for place, of_group in by_group(frame):
            ranks(axes, groups.groups[place].look, groups.label(place), of_group["value"][of_group["last"]])
        axes.set(xlabel=f"{members} from the lowest to the highest, %", ylabel=label)

    return picture(
        name, title, f"The last evaluation of all {members} of all runs, from the lowest value to the highest.", draw
    )


def _consensus(groups: Groups, apart: pd.DataFrame) -> Iterator[Picture]:
    for (metric,), frame in by_text(apart, "metric"):
        by, label = groups.evaluated_by, _words(metric)
        at = frame.groupby(["group", by])
        values = with_nan(at["value"].agg(["mean", "min", "max"]), at["value"])
        table = values.join(at[["round", "virtual_time"]].mean().drop(columns=by, errors="ignore")).reset_index()
        caption = _CONSENSUS.get(metric, "How far the peers are from their mean.") + groups.band
        yield lines(groups, table, metric, label.capitalize(), caption, label, "mean", "min", "max")


def _words(metric: str) -> str:
    return metric.replace("_", " ")
