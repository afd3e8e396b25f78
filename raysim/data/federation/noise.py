"""Wrong labels among those that clients train on."""

from typing import Literal, Self

import numpy as np
from pydantic import model_validator

from raysim.data.federation.holdings import Holdings
from raysim.parts.part import Fraction, Part, Share
from raysim.parts.rng import Stream, generator


class NoisyClients(Part):
    """Draws which clients have wrong labels, and for each of them the share of its labels that are wrong.

    Xu, Chen, Quek and Chong, FedCorr: Multi-Stage Federated Learning for Label Noise Correction, CVPR 2022, section 5:
    a client is noisy with probability rho, and its level of noise is drawn from U(tau, 1).
    """

    clients: Share
    """Probability with which a client has wrong labels (rho)."""
    least: Fraction = 0.0
    """Smallest share of wrong labels of such a client (tau)."""
    most: Fraction = 1.0
    """Largest share of wrong labels of such a client; the paper has 1."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"`least` must be at most `most`, got {self.least!r} and {self.most!r}; swap them")
        return self

    def shares(self, clients: int, seed: int) -> np.ndarray:
        """Returns the share of wrong labels of each client, float64 (clients,)."""
        draw = generator(seed, "noisy clients")
        noisy = draw.random(clients) < self.clients
        return np.where(noisy, draw.uniform(self.least, self.most, size=clients), 0.0)


LabelNoise = float | tuple[float, ...] | NoisyClients


def mislabel(
    labels: np.ndarray,
    held: Holdings,
    shares: np.ndarray,
    num_classes: int,
    seed: int,
    kind: Literal["wrong", "random"] = "wrong",
) -> np.ndarray:
    """Returns labels, int64 (n,), in which a share of each client's samples has a new label.

    shares: (clients,). The number of a client's new labels is rounded to the nearest. Which samples get one is random.
    kind: whether the new label is one of the others (wrong) or any (random); all of these are equally likely.
    """
    least = 1 if kind == "wrong" else 0
    wrong, draw = labels.copy(), Stream(seed, "label noise")
    for client, share in enumerate(shares.tolist()):
        drawn, own = draw(client), held[client]
        rows = drawn.permutation(own)[: round(share * len(own))]
        wrong[rows] = (labels[rows] + drawn.integers(least, num_classes, size=len(rows))) % num_classes
    return wrong
