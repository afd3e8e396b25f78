"""Runs of peers, small enough to be followed."""

from typing import Any

import numpy as np
import pandas as pd
from conftest import Raw, Simulate, digits, override

import raysim

SECONDS = {"name": "log_normal", "median": 1.0, "sigma": 0.5, "unit": "seconds"}
GOSSIP = {"synchronous": False, "delay": SECONDS, "edge_delay": {"name": "exponential", "mean": 0.3}, "loss": 0.2}

COMING = {"availability": {"name": "random", "probability": 0.6, "slot": 2.0}, "leave": "hand_over", "join": "copy"}


def peers(**more: Any) -> Raw:
    """A small scenario on real data."""
    raw = digits(algorithm="toys_peers:Averaging", topology="ring", world={}, data__clients=10, run__rounds=6)
    return override(raw, **more)


def centers(vectors: Any, rounds: int, **more: Any) -> Raw:
    """Peers that start from vectors of their own, and only mix them."""
    return {
        "name": "gossip",
        "data": {"name": "quadratic", "centers": vectors},
        "model": "vector",
        "algorithm": "toys_peers:Gossip",
        "topology": "ring",
        "run": {"rounds": rounds, "evaluate_every": 1},
        **more,
    }


def last(simulate: Simulate, raw: Raw) -> list[float]:
    """The first number of each peer's last vector."""
    found: list[float] = simulate(raw).vectors()["w"][:, 0].tolist()
    return found


def of_all(result: raysim.Result, metric: str) -> list[float]:
    """A metric of all peers, by round."""
    rows = result.pandas("evaluations").query("subject == 'peers' and metric == @metric")
    return rows.value.tolist()


def tables(result: raysim.Result) -> dict[str, pd.DataFrame]:
    """All that does not depend on how the work was cut into tasks, and not on the stopwatch."""
    wall = ["run", "seconds", "worker", "elapsed_s"]
    names = ("steps", "updates", "evaluations", "exchanges")
    return {name: result.pandas(name).drop(columns=wall, errors="ignore") for name in names}


def pulled(topology: Any, peers: int, seed: int = 0, epoch: int = 0) -> np.ndarray:
    """W: the weights of what each peer hears."""
    found = np.zeros((peers, peers))
    for peer, near in enumerate(topology.neighbours(peers, seed, epoch)):
        found[peer, list(near.senders)] = near.weights
        found[peer, peer] = 1 - sum(near.weights)
    return found
