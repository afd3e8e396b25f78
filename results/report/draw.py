"""How the figures of a report are drawn: each function draws a column of rows, see `results.report.section.Draw`."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from results.drawing import AXES, INK, MUTED, band, by_group, colour, line_style, lines, points
from results.groups import Groups

_STRETCHES = 40  # stretches of rounds, or of virtual time, in a figure, at most
_CLIENTS = 40  # in the figure of a timeline, and twice as many in a map, at most
_PEERS = 200  # drawn, at most
_PATTERNS = {"used": (0.95, ""), "discarded": (0.5, "//"), "dropped": (0.3, "xx"), "unfinished": (0.12, "--")}


def curve(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws a metric over a column of AXES: the mean over the runs of a group, and a band of all of them."""
    table = points(groups, rows)
    lines(axes, groups, table, column, ["mean", "min", "max"])
    axes.set_ylabel(str(rows["metric"].iloc[0]).replace("_", " "))
    broken = "" if np.isfinite(table["mean"]).all() else "Lines have gaps where a value is NaN or infinite. "
    return broken + f"Over {AXES[column]}.{groups.band}"


def against_epsilon(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws a metric at the end of runs over their epsilon, a line for each method, and a dashed one without noise."""
    last = rows[rows["round"] == rows.groupby("run", observed=True)["round"].transform("max")].groupby("group")
    table = last["value"].agg(["mean", "min", "max"]).join(last[column].mean()).sort_values(column)
    methods, private = table.index.map(groups.methods.__getitem__), np.isfinite(table[column])
    for place, method in enumerate(dict.fromkeys(groups.methods)):
        noisy = table[private & (methods == method)]
        look: Any = {"color": colour(place)}
        reach = [noisy["mean"] - noisy["min"], noisy["max"] - noisy["mean"]]
        label = method if len({*groups.methods}) > 1 else None
        axes.errorbar(noisy[column], noisy["mean"], reach, label=label, marker="o", capsize=3, **look)
        for value in table["mean"][~private & (methods == method)]:
            axes.axhline(value, linestyle="--", linewidth=1.0, **look)
    axes.set(xlabel="epsilon of the most exposed client", ylabel=str(rows["metric"].iloc[0]).replace("_", " "))
    spread = "The last evaluation: mean over the runs of a group, and from their smallest to their largest value."
    return spread + ("" if private.all() else " Dashed: without noise.")


def spread(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws the median of the rows in each stretch of the first axis, and a band from their 10 % to their 90 %
    quantile."""
    finite = rows[np.isfinite(rows[column])]
    x = groups.axis
    width = (finite[x].max() + (x == "round")) / _STRETCHES or 1.0
    width = max(1, np.ceil(width)) if x == "round" else width
    stretch = (finite[x] // width).clip(upper=_STRETCHES - 1 if x != "round" else None)
    middle = stretch * width + ((width - 1) / 2 if x == "round" else width / 2)
    quantiles = finite[column].groupby([finite["group"], middle.rename(x)]).quantile([0.5, 0.1, 0.9])
    lines(axes, groups, quantiles.unstack().reset_index(), x, [0.5, 0.1, 0.9])
    axes.set_ylabel(column.replace("_", " "))
    lost = len(rows) - len(finite)
    return f"{lost:,} values that are NaN or infinite are left out." if lost else ""


def ranks(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws the values of members in rising order, the smallest at 0 % and the largest at 100 %, at the end of runs."""
    last = rows
    if "round" in rows:  # evaluations
        last = rows[rows["round"] == rows.groupby("run", observed=True)["round"].transform("max")]
    for place, of_group in by_group(last):
        rising = np.sort(of_group[column].to_numpy(float))
        band(axes, place, groups.label(place), np.linspace(0, 100, len(rising)), rising)
    name = str(rows["metric"].iloc[0]) if "metric" in rows else column
    axes.set(xlabel="from the lowest to the highest, %", ylabel=name.replace("_", " "))
    return f"{len(last):,} values, mean {last[column].mean():.4g}, largest {last[column].max():.4g}."


def by_model(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws a metric of the models of a run over virtual time, with a line for each level or group of clients: the mean
    of its models; and beside those of the server, one for its whole or own model."""
    run = groups.groups[rows["group"].iloc[0]].first
    subject, metric, split = (str(rows[key].iloc[0]) for key in ("subject", "metric", "split"))
    every = run.pandas("evaluations")
    every = every[(every.metric == metric) & (every.split == split) & every.value.notna()]
    found = every[every.subject == subject]
    names, level = list(run.info.get("groups") or ()), found["level"]
    key = -level if level.notna().any() else found["member" if subject == "group" else "group"].fillna(len(names))
    whole = every[every.subject == "global"]
    if subject in ("slice", "group"):
        label = "whole model" if subject == "slice" else "the server's own"
        band(axes, key.nunique(), label, whole.virtual_time, whole.value)
    for place, (of, some) in enumerate(found.groupby(key)):
        mean = some.groupby("virtual_time")[column].mean()
        label = f"level {-of:g}" if level.notna().any() else [*names, "in no group"][int(of)]
        band(axes, place, label, mean.index, mean)
    axes.set(xlabel=f"virtual time{groups.unit}", ylabel=metric.replace("_", " "))
    return f"{run.id}: models of {key.nunique()} {'levels' if level.notna().any() else 'groups'}."


def histogram(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws which share of a group's rows has which value."""
    top = float(rows[column].max())
    edges = np.linspace(-0.5, top + 0.5, int(min(top + 2, _STRETCHES)))
    for place, of_group in by_group(rows):
        look: Any = {key: line_style(place, 1)[key] for key in ("color", "linestyle")}
        look["histtype"] = "stepfilled" if len(groups) == 1 else "step"
        share = np.full(len(of_group), 100 / len(of_group))
        axes.hist(of_group[column], edges.tolist(), weights=share, label=groups.label(place), linewidth=1.7, **look)
    axes.set(xlabel=column.replace("_", " "), ylabel="% of the rows")
    return f"Mean {rows[column].mean():.3g}, largest {top:g}."


def shares(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws what the rows of each group are, as a bar with a part for each text of the column."""
    counted = pd.crosstab(rows["group"], rows[column].astype(str))
    parts = 100 * counted.div(counted.sum(axis="columns"), axis="index")
    left = np.zeros(len(parts))
    for text in [*filter(parts.columns.__contains__, _PATTERNS), *(t for t in parts if t not in _PATTERNS)]:
        strength, hatch = _PATTERNS.get(str(text), (0.65, "||"))
        colours: Any = {"color": [colour(place) for place in parts.index], "edgecolor": INK[0]}
        axes.barh(range(len(parts)), parts[text], 0.6, left, label=str(text), alpha=strength, hatch=hatch, **colours)
        left += parts[text].to_numpy()
    axes.set_yticks(
        range(len(parts)), [shorten(groups.label(place) or "", 28, placeholder=" ...") for place in parts.index]
    )
    axes.set(xlabel="%", ylim=(len(parts) - 0.5, -0.5))
    return ", ".join(f"{number:,} {text}" for text, number in counted.sum().items())


def matrix(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws a client as a line, darker where a label has a larger share of its samples."""
    table = rows.pivot_table(index="client", columns="label", values=column, fill_value=0)
    every = -(-len(table) // (2 * _CLIENTS))
    part = table.iloc[::every].div(table.iloc[::every].sum(axis="columns"), axis="index").to_numpy()
    axes.imshow(np.sqrt(part), aspect="auto", interpolation="none", cmap="Greys", vmin=0, vmax=1)
    axes.grid(False)
    for axis, names in ((axes.xaxis, table.columns), (axes.yaxis, table.index[::every])):
        ticks = [int(tick) for tick in MaxNLocator(10, integer=True).tick_values(0, len(names) - 1) if tick >= 0]
        ticks = [tick for tick in ticks if tick < len(names)]
        axis.set_ticks(ticks, [str(names[tick]) for tick in ticks])
    axes.set(xlabel="label", ylabel="client")
    sizes = table.sum(axis="columns")
    return f"{len(table)} clients with {sizes.min():g} to {sizes.max():g} samples, {sizes.mean():.4g} on average."


def links(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws bytes by link, a sender as a line and a receiver as a column."""
    peers = int(max(rows["source"].max(), rows["target"].max())) + 1
    _blocks(axes, rows, rows[column], peers)
    of_each = rows.groupby(["source", "target"])[column].sum()
    most: Any = of_each.idxmax()
    found = f"{len(of_each):,} links, over which {of_each.mean():,.4g} bytes were sent on average"
    return f"{found}, and {of_each.max():,.4g} from peer {most[0]} to peer {most[1]}, the most."


def _blocks(axes: Axes, rows: pd.DataFrame, weights: Any, peers: int) -> None:
    """Draws a matrix of senders and receivers, many peers in blocks."""
    bins = np.linspace(0, peers, min(peers, 2 * _CLIENTS) + 1)
    sums, *_ = np.histogram2d(rows["source"], rows["target"], [bins, bins], weights=weights)
    axes.imshow(
        np.sqrt(sums), interpolation="none", cmap="Greys", vmin=0, extent=(-0.5, peers - 0.5, peers - 0.5, -0.5)
    )
    axes.grid(False)
    axes.set(xlabel="receiver", ylabel="sender")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))


def network(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws who sends to whom in the first round, and says by how many links if that changes."""
    first, every = rows["round"].min(), rows.drop_duplicates(["source", column])
    edges = rows.loc[rows["round"] == first, ["source", column]].drop_duplicates()
    graph = nx.DiGraph(sorted(edges.itertuples(index=False, name=None)))
    both = all(graph.has_edge(b, a) for a, b in graph.edges)
    shown = graph.to_undirected() if both else graph
    pairs = graph.to_undirected()
    ring = max(dict(pairs.degree).values()) <= 2
    if len(graph) > _PEERS:
        _blocks(axes, edges.rename(columns={column: "target"}), None, max(graph) + 1)
    else:
        axes.set_axis_off()
        at = nx.circular_layout(sorted(graph)) if ring else nx.spring_layout(pairs, seed=0)
        colours = {"node_color": colour(rows["group"].iloc[0]), "edge_color": MUTED[0]}
        nx.draw_networkx(shown, at, ax=axes, with_labels=False, node_size=60, width=0.8, **colours)
        axes.set_aspect("equal")
    way = "Over each line both peers send." if both else "An arrow leads to the peer that is sent to."
    later = f" Later rounds have others: {len(every)} in all." if len(every) > len(edges) else ""
    return f"{len(graph)} peers, {len(edges)} directed edges in round {first}. {way}{later}"


def timeline(axes: Axes, groups: Groups, rows: pd.DataFrame, column: str) -> str:
    """Draws a bar for each dispatch at the start, a line for each client."""
    group = groups.groups[rows["group"].iloc[0]]
    rows = rows.sort_values("dispatch")
    clients = {client: row for row, client in enumerate(rows["client"].drop_duplicates()[:_CLIENTS])}
    some = rows[rows["client"].isin([*clients])]
    ends = some["arrived_at"].fillna(some["virtual_time"])
    end = ends[~some["client"].duplicated()].quantile(0.75) or 1.0
    steps = group.first.table("steps", ["virtual_time"])["virtual_time"].to_numpy()
    end = max([end, *steps[9:10]])
    for status, (strength, _) in _PATTERNS.items():
        mine = (some[column] == status) & (some["dispatched_at"] <= end)
        if mine.any():
            at = some.loc[mine, "client"].map(clients)
            look: Any = {"color": colour(group.place), "alpha": strength, "linewidth": 3, "label": status}
            axes.hlines(at, some.loc[mine, "dispatched_at"], ends[mine], **look)
            axes.plot(ends[mine], at, "x" if status == "discarded" else "|", color=colour(group.place), alpha=strength)
    axes.vlines(steps[steps <= end], -1.6, -0.8, color=INK[0], linewidth=0.8)
    axes.set(xlabel=f"virtual time{groups.unit}", ylabel="client", xlim=(-0.015 * end, 1.015 * end))
    axes.set_ylim(len(clients) - 0.4, -1.8)
    axes.set_yticks(list(clients.values()), [str(client) for client in clients], fontsize=6)
    return f"{group.first.id}: the first {len(clients)} clients, in order of their first dispatch."
