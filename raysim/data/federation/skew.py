"""What is a client's own in its samples: inputs that are changed whenever they are fetched, and wrong labels."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from raysim.data.federation.holdings import Holdings
from raysim.parts.part import Fraction, Part, Positive, Share
from raysim.parts.rng import Stream, generator

Draw = Callable[[int], np.random.Generator]  # from the place of a sample to a generator whose key is that sample


class FeatureSkew(Part):
    """How the inputs of a client are changed. A subclass adds its `name`."""

    moves: ClassVar[bool] = False
    """Whether it moves pixels, so that labels of pixels would no longer be theirs."""

    name: str

    @abstractmethod
    def change(self, x: np.ndarray, client: int, clients: int, draw: Draw) -> np.ndarray:
        """Returns changed inputs, float32, in the shape of x.

        x: inputs (n, ...), float32; images (n, height, width, channels) with pixels from 0 to 1. draw: gives
        generators for the samples of x, each to be used before the next call.
        """

    def problems(self, x: np.ndarray) -> list[str]:
        """Lists why the stored inputs (n, ...) cannot be changed so."""
        return [] if x.dtype in (np.uint8, np.float32) else ["needs images or float features, got tokens of text"]


class NoiseSkew(FeatureSkew):
    """Adds Gaussian noise that grows with the client's number: from none of client 0 to `sigma` of the last one.

    Li, Diao, Chen and He, Federated Learning on Non-IID Data Silos: An Experimental Study, ICDE 2022, section IV
    (noise-based feature imbalance), with the standard deviation sigma · i / (clients - 1) of its code. A sample has the
    same noise whenever it is fetched.
    """

    name: str = "noise"
    sigma: Positive
    """Standard deviation of the last client's noise: of pixels from 0 to 1, or of features as they are stored."""

    def change(self, x: np.ndarray, client: int, clients: int, draw: Draw) -> np.ndarray:
        sigma = np.float32(self.sigma * client / max(clients - 1, 1))
        noise = [draw(place).standard_normal(x.shape[1:], dtype=np.float32) for place in range(len(x))]
        return x + sigma * np.stack(noise) if len(x) else x


class RotationSkew(FeatureSkew):
    """Rotates images by an angle that the client's number fixes: client i is in group i modulo `groups`.

    Ghosh, Chung, Yin and Ramchandran, An Efficient Framework for Clustered Federated Learning, NeurIPS 2020, section
    6.1 (rotated MNIST and CIFAR: angles of 0, 90, 180 and 270 degrees, or of 0 and 180).
    """

    moves: ClassVar[bool] = True

    name: str = "rotation"
    groups: Literal[2, 4] = 4
    """Number of groups of clients. Group k is rotated by k · 360 / groups degrees."""

    def change(self, x: np.ndarray, client: int, clients: int, draw: Draw) -> np.ndarray:
        turns = client % self.groups * (4 // self.groups)
        return np.rot90(x, turns, axes=_sides(x))

    def problems(self, x: np.ndarray) -> list[str]:
        if x.ndim != 4:
            return [f"needs images, got inputs of shape {x.shape[1:]!r}"]
        height, width = (x.shape[axis] for axis in _sides(x))
        if self.groups == 4 and height != width:
            return [f"needs square images for quarter turns, got {height} x {width}; take `groups: 2`"]
        return super().problems(x)


def _sides(x: np.ndarray) -> tuple[int, int]:
    """Returns the axes of height and width: float32 images with channels first have the fewest values on axis 1."""
    return (2, 3) if x.shape[1] < x.shape[3] else (1, 2)


FEATURE_SKEWS: tuple[type[FeatureSkew], ...] = (NoiseSkew, RotationSkew)


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
        drawn, rows = draw(client), held[client]
        rows = drawn.permutation(rows)[: round(share * len(rows))]
        wrong[rows] = (labels[rows] + drawn.integers(least, num_classes, size=len(rows))) % num_classes
    return wrong
