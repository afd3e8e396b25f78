"""The section on who holds which data."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator

from results import style
from results.drawing import ranks, whole_numbers
from results.groups import Groups, RunGroup
from results.picture import Picture, grid, picture
from results.report.section import Panel, Section

_ROWS = 100  # clients in a heat map, at most
_BINS = 30


def partition(groups: Groups) -> Section | None:
    """Returns the section; None if no run says who holds what, or all clients hold the same."""
    tables: list[tuple[list[RunGroup], pd.DataFrame]] = []
    for group in groups.shown:
        cells = group.first.table("partition", ["client", "label", "samples"], pc.field("split") == "train").to_pandas()
        same = next((of_same for of_same, others in tables if others.equals(cells)), None)
        if same is not None:
            same.append(group)
        elif not cells.empty:
            tables.append(([group], cells))
    text = f"Training samples of the clients. {groups.representatives}Groups with the same data are shown once."
    panels = [
        Panel("; ".join(group.label for group in same), pictures)
        for same, cells in tables
        if (pictures := list(_pictures(same[0], cells)))
    ]
    together = list(_divergences(groups, [(same[0], cells) for same, cells in tables]))
    return Section("partition", "Who holds which data", text, together, details=panels) if panels else None


def _divergences(groups: Groups, tables: list[tuple[RunGroup, pd.DataFrame]]) -> Iterator[Picture]:
    """Yields the figure of how far clients' mixes of labels are from an even one, if there is more than one label."""
    found = [(group, divergences(cells)) for group, cells in tables if cells["label"].nunique() > 1]
    if not found:
        return

    def draw(axes: Axes) -> None:
        for group, of_clients in found:
            ranks(axes, group.look, group.label if len(found) > 1 else None, of_clients)
        axes.set(xlabel="clients from the lowest to the highest, %", ylabel="KL divergence")

    caption = (
        "Kullback-Leibler divergence of each client's mix of labels from an even mix of all labels: 0 for an even mix, "
        "and the logarithm of the number of labels where a client has one label only."
    )
    yield picture("partition-divergence", "Distance from an even mix of labels", caption, draw)


def divergences(cells: pd.DataFrame) -> np.ndarray:
    """Returns sum_k p_k ln(p_k K) of each client's shares p of the K labels that clients have, (clients,).

    cells: a row for each label that a client has, with the columns client, label and samples.
    """
    shares = cells["samples"] / cells.groupby("client")["samples"].transform("sum")
    terms = shares * np.log(shares * cells["label"].nunique())
    of_clients: np.ndarray = terms.groupby(cells["client"]).sum().to_numpy()
    return of_clients


def _pictures(group: RunGroup, cells: pd.DataFrame) -> Iterator[Picture]:
    table = cells.pivot_table(index="client", columns="label", values="samples", fill_value=0)
    if table.shape[1] > 1:
        yield _heat_map(group.place, table)
    sizes = cells.groupby("client")["samples"].sum().to_numpy()
    if sizes.min() < sizes.max():
        yield _sizes(group, sizes)


def _heat_map(place: int, table: pd.DataFrame) -> Picture:
    every = -(-len(table) // _ROWS)
    shown = table.iloc[::every]
    shares = shown.div(shown.sum(axis="columns"), axis="index").to_numpy()
    image = np.empty((*shares.shape, 4))
    image[..., :3] = to_rgb(style.INK[0])  # colours stand for methods; the style sheet turns images on black around
    image[..., 3] = np.where(shares > 0, 0.12 + 0.88 * np.sqrt(shares), 0)  # so that small shares are seen

    def draw(axes: Axes) -> None:
        axes.imshow(image, aspect="auto", interpolation="none")
        axes.grid(False)
        labels, clients = table.columns.to_numpy(), shown.index.to_numpy()
        axes.set(xlabel="label", ylabel="client")
        for axis, names in ((axes.xaxis, labels), (axes.yaxis, clients)):
            ticks = np.asarray(MaxNLocator(10, integer=True).tick_values(0, len(names) - 1))
            ticks = ticks[(ticks >= 0) & (ticks < len(names))].astype(int)
            axis.set_ticks(ticks, [str(name) for name in names[ticks]])
        grid(axes, [f"label {label}" for label in labels], [f"client {name}" for name in clients], shown, "samples")

    which = f"All {len(table)} clients" if every == 1 else f"{len(shown)} of {len(table)} clients, one in {every}"
    caption = f"{which}. The stronger the colour, the larger the label's share of the client's samples."
    height = 0.7 + min(0.2, 4.2 / len(shown)) * len(shown)
    return picture(f"partition-{place}", "Clients by labels", caption, draw, height)


def _sizes(group: RunGroup, sizes: np.ndarray) -> Picture:
    def draw(axes: Axes) -> None:
        width = -(-(sizes.max() - sizes.min() + 1) // _BINS)
        edges = np.arange(sizes.min(), sizes.max() + width + 1, width) - 0.5
        axes.hist(sizes, edges.tolist(), rwidth=0.9, color=style.colour(group.look.hue))
        axes.set(xlabel="samples", ylabel="clients")
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        whole_numbers(axes)

    caption = f"{len(sizes)} clients with {sizes.min()} to {sizes.max()} samples, {sizes.mean():.4g} on average."
    return picture(f"samples-{group.place}", "Samples per client", caption, draw)
