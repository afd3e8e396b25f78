"""The section on who sends to whom among peers, and how much."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from results import style
from results.drawing import ranks, unit_along
from results.groups import Groups, RunGroup
from results.picture import Picture, picture
from results.report.section import of_each_group

_PEERS = 200  # drawn, at most; for more peers, only numbers of neighbours are shown


def _pictures(groups: Groups, group: RunGroup) -> Iterator[Picture]:
    run = group.first
    rounds = run.table("exchanges", ["round"])["round"]
    if not len(rounds):
        return
    first = pc.min(rounds).as_py()
    edges = run.table("exchanges", ["source", "target"], pc.field("round") == first).to_pandas().drop_duplicates()
    graph = nx.DiGraph(sorted(edges.itertuples(index=False, name=None)))
    yield (_drawn if len(graph) <= _PEERS else _degrees)(group, graph, first)
    messages = run.table("exchanges", ["source", "target", "bytes"]).to_pandas()
    sizes = messages.groupby(["source", "target"])["bytes"].sum(min_count=1).dropna()
    if sizes.any():  # null in a dry run
        yield _bytes(group, sizes)


def _drawn(group: RunGroup, graph: nx.DiGraph, first: int) -> Picture:
    pairs = graph.to_undirected()
    ring = max(dict(pairs.degree).values()) <= 2
    at = nx.circular_layout(sorted(graph)) if ring else nx.spring_layout(pairs, seed=0)
    both = [pair for pair in pairs.edges if graph.has_edge(*pair) and graph.has_edge(*pair[::-1])]
    single = [pair for pair in graph.edges if not graph.has_edge(*pair[::-1])]

    def draw(axes: Axes) -> None:
        lines = LineCollection([[at[a], at[b]] for a, b in both], colors=style.MUTED[0], linewidths=0.8, alpha=0.7)
        axes.add_collection(lines)
        for a, b in single:
            arrow = {"arrowstyle": "-|>", "color": style.MUTED[0], "linewidth": 0.8, "shrinkA": 4, "shrinkB": 5}
            axes.annotate("", at[b], at[a], arrowprops=arrow)
        points = np.array([at[peer] for peer in sorted(graph)])
        axes.plot(*points.T, "o", color=style.colour(group.look.hue), markersize=9 if len(graph) <= 50 else 5)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.margins(0.08)

    caption = f"{len(graph)} peers, {graph.number_of_edges()} directed edges in round {first}. "
    caption += "Over a line both peers send, along an arrow only one." if single else "Over each line both peers send."
    return picture(f"topology-{group.place}", "Who sends to whom", caption, draw, 4.2)


def _degrees(group: RunGroup, graph: nx.DiGraph, first: int) -> Picture:
    degrees = np.array([degree for _, degree in graph.out_degree])

    def draw(axes: Axes) -> None:
        values, counts = np.unique(degrees, return_counts=True)
        axes.bar(values, counts, color=style.colour(group.look.hue))
        axes.set(xlabel="peers that a peer sends to", ylabel="peers")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))

    caption = f"{len(graph):,} peers, too many to draw, with {graph.number_of_edges():,} edges in round {first}."
    return picture(f"degrees-{group.place}", "Numbers of neighbours", caption, draw)


def _bytes(group: RunGroup, sizes: pd.Series[float]) -> Picture:
    def draw(axes: Axes) -> None:
        ranks(axes, group.look, None, sizes)
        axes.set(xlabel="directed edges from the least to the most used, %", ylabel="bytes in the whole run")
        axes.set_ylim(0, 1.1 * sizes.max())
        unit_along(axes.yaxis, "B")

    caption = f"{len(sizes):,} edges carried {sizes.sum() / 1e6:,.4g} MB in all rounds."
    return picture(f"edges-{group.place}", "Bytes per edge", caption, draw)


topology = of_each_group("topology", "Topology", "{shown}", _pictures)
