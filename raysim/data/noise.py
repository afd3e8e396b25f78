"""Wrong labels among those that clients train on."""

import numpy as np

from raysim.data.holdings import Holdings
from raysim.rng import Stream


def mislabel(labels: np.ndarray, held: Holdings, share: float, num_classes: int, seed: int) -> np.ndarray:
    """Returns labels, int64 (n,), in which a share of each client's samples has a wrong label.

    The number of a client's wrong labels is rounded to the nearest. Which samples get one is random, and all wrong
    labels are equally likely.
    """
    wrong, draw = labels.copy(), Stream(seed, "label noise")
    for client in range(held.clients):
        drawn, own = draw(client), held[client]
        rows = drawn.permutation(own)[: round(share * len(own))]
        wrong[rows] = (labels[rows] + drawn.integers(1, num_classes, size=len(rows))) % num_classes
    return wrong
