"""The base of data sets whose samples have a label each: how many are used, and how clients' samples are spoilt."""

from typing import Annotated, Literal

import numpy as np

from raysim.data.dataset import Split
from raysim.data.federation.noise import LabelNoise, NoisyClients
from raysim.data.federation.pool import PooledData
from raysim.data.federation.skew import FEATURE_SKEWS, FeatureSkew
from raysim.parts.part import Count, Fraction, OneOf


class Labelled(PooledData):
    """A data set of samples with a label each."""

    train_samples: Count | None = None
    """Number of training samples to use: the first ones in stored order, equally many of each label. null: all."""
    test_samples: Count | None = None
    """Number of test samples to use: the first ones in stored order, equally many of each label. null: all."""
    label_noise: Fraction | tuple[Fraction, ...] | NoisyClients = 0.0
    """Share of each client's training samples that get a noisy label: one share for all clients, a list with a share
    for each client, or a block that draws the shares. Labels of test and validation samples stay right. Where a sample
    is held several times, it must be 0."""
    noisy_labels: Literal["wrong", "random"] = "wrong"
    """What a noisy label is. wrong: one of the other labels. random: one of all labels, so it may be the right one. All
    of them are equally likely."""
    skew: Annotated[FeatureSkew, OneOf(FEATURE_SKEWS, "raysim.feature_skews")] | None = None
    """How the inputs of clients differ: each client's training samples and its own test samples are changed in a way of
    its own whenever they are fetched. The global test set and the server's and public samples are not, and neither are
    training and validation samples where a model is evaluated on those of all clients together (`run.evaluate_on`).
    `run.evaluate_clients` evaluates on each client's samples as the client has them. null: not at all."""

    def noise_shares(self, seed: int) -> np.ndarray:
        """Returns the share of wrong labels of each client, float64 (clients,)."""
        noise: LabelNoise = self.label_noise
        if isinstance(noise, NoisyClients):
            return noise.shares(self.clients, seed)
        return np.full(self.clients, noise) if isinstance(noise, float | int) else np.array(noise)

    def problems(self) -> list[str]:
        found = super().problems()
        noise = self.label_noise
        if isinstance(noise, tuple) and len(noise) != self.clients:
            found.append(f"`label_noise` must have a share for each of {self.clients} clients, got {len(noise)}")
        if self.classes is not None:
            for key, samples in (("train_samples", self.train_samples), ("test_samples", self.test_samples)):
                found += uneven(samples, self.classes, key)
        return found


def uneven(samples: int | None, num_classes: int, key: str) -> list[str]:
    """Says what is wrong with this number of samples if it cannot be spread evenly over the labels."""
    if samples is None or samples % num_classes == 0:
        return []
    nearest = max(round(samples / num_classes), 1) * num_classes
    return [f"`{key}` must be a multiple of the number of labels, {num_classes}, got {samples}; take {nearest}"]


def balanced(split: Split, samples: int | None, num_classes: int, key: str) -> Split:
    """Returns the first samples / num_classes samples of each label, in stored order; all if samples is None.

    key: the setting's name, for errors. Raises ValueError if that is no whole number, or if a label has fewer.
    """
    if samples is None:
        return split
    if split.y.dtype != np.int64:
        raise ValueError(f"data: `{key}` must be null, for it counts samples of each label, and y are targets")
    for problem in uneven(samples, num_classes, key):
        raise ValueError(f"data: {problem}")
    each = samples // num_classes
    have = np.bincount(split.y, minlength=num_classes)
    if have.min() < each:
        raise ValueError(
            f"data: `{key}` {samples} takes {each} samples of each label, got {have.min()} of label {have.argmin()}; "
            f"lower it to {have.min() * num_classes} or less"
        )
    return split.take(first_rows(split.y, samples, num_classes))


def first_rows(labels: np.ndarray, samples: int, num_classes: int) -> np.ndarray:
    """Returns the rows of the first samples / num_classes samples of each label, ascending."""
    rows = [np.flatnonzero(labels == label)[: samples // num_classes] for label in range(num_classes)]
    return np.sort(np.concatenate(rows))
