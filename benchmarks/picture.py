"""Draws README's picture from the runs of a sweep: accuracy at two delays, and the first dispatches.

    raysim sweep scenarios/quickstart.yaml --set algorithm=fedavg,fedbuff,ca2fl \
      --set world.delay.sigma=5,20 --seeds 0,1,2,3,4 --set run.rounds=300 --set name=picture --inline
    python benchmarks/picture.py runs/picture docs/images/quickstart.svg
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import raysim
from results import drawing as style

KEYS = ["algorithm", "world.delay.sigma", "seed"]
COLOURS = {"fedavg": style.colour(0), "fedbuff": style.colour(1), "ca2fl": style.colour(2)}
NAMES = {"fedavg": "FedAvg", "fedbuff": "FedBuff", "ca2fl": "CA2FL"}
LOOK = style.RC | {"svg.fonttype": "path", "svg.hashsalt": "raysim", "axes.titlesize": 10}
START = 12  # rounds at the start whose dispatches are shown
TICKS = {"ymin": -11, "ymax": -4}  # where ticks of server steps are drawn, above the first dispatch


def draw(runs: raysim.Runs) -> Figure:
    """Draws the accuracy of all runs above, and below the start of a run of FedAvg beside one of FedBuff."""
    figure, panels = plt.subplots(2, 2, figsize=(9.2, 5.9), layout="constrained")
    evaluations = runs.pandas("evaluations", keys=KEYS).query("metric == 'accuracy' and subject == 'global'")
    for axes, sigma in zip(panels[0], (5, 20), strict=True):
        accuracies(axes, evaluations[evaluations["world.delay.sigma"] == sigma])
        axes.set_title(f"Test accuracy with delays of |N(0, {sigma}²)| rounds", loc="left")
    panels[0, 1].legend(loc="lower right")
    shown = "seed == 0 and `world.delay.sigma` == 5 and `algorithm.name` == @name"
    updates, steps = runs.pandas("updates", keys=KEYS), runs.pandas("steps", keys=KEYS)
    for axes, name in zip(panels[1], ("fedavg", "fedbuff"), strict=True):
        timeline(axes, name, updates.query(shown), steps.query(shown)["virtual_time"])
    return figure


def accuracies(axes: Axes, evaluations: pd.DataFrame) -> None:
    """Draws a line for each algorithm, the mean over seeds, in a band from their smallest to their largest value."""
    for name, label in NAMES.items():
        values = evaluations[evaluations["algorithm.name"] == name].groupby("virtual_time")["value"]
        axes.plot(values.mean(), color=COLOURS[name], label=label)
        axes.fill_between(values.min().index, values.min(), values.max(), color=COLOURS[name], alpha=0.18, linewidth=0)
    axes.set(xlim=(0, 300), ylim=(0, 1), xlabel="virtual time in rounds")
    axes.yaxis.set_major_formatter(PercentFormatter(1))


def timeline(axes: Axes, name: str, updates: pd.DataFrame, steps: pd.Series) -> None:
    """Draws a line for each dispatch, from its start to the arrival of its update, and a tick for each server step."""
    updates = updates[updates["dispatched_at"] < START].sort_values("dispatch")
    updates = updates.assign(row=range(len(updates)), ends=updates["arrived_at"].fillna(updates["virtual_time"]))
    for status, colour, label in (
        ("used", COLOURS[name], "used"),
        ("discarded", style.SERIES[-1][1], "too late: never trained"),
    ):
        rows = updates[updates["status"] == status]
        x = np.array([rows["dispatched_at"], rows["ends"], np.full(len(rows), np.nan)]).T.ravel()
        ends = {"marker": "o", "markersize": 1.8, "markevery": slice(1, None, 3)}
        axes.plot(x, rows["row"].repeat(3), color=colour, linewidth=1, label=label if len(rows) else None, **ends)
    axes.vlines(steps[steps <= START + 5], **TICKS, color=style.INK[0], linewidth=1, label="server steps")
    axes.set(xlim=(-0.2, START + 5), ylim=(len(updates), -14), xlabel="virtual time in rounds", yticks=[])
    axes.set_title(f"The first {len(updates)} dispatches of {NAMES[name]}", loc="left")
    axes.legend(loc="lower left", handlelength=1)
    axes.grid(False)


if __name__ == "__main__":
    folder, picture = sys.argv[1:]
    with plt.rc_context(LOOK):
        draw(raysim.load(folder)).savefig(picture, metadata={"Date": None})
