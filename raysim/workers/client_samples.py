"""The samples and labels of each client, as its group has them, and the public samples."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from raysim.data import Federation, Split
from raysim.data.dataset import IGNORED
from raysim.local.samples import Loader, Samples
from raysim.parts.rng import generator, torch_seed
from raysim.scenario import Scenario
from raysim.terms import Record


class ClientSamples:
    """What a worker has of the data, for clients and peers. No call of a method has an effect on later calls."""

    def __init__(self, scenario: Scenario, federation: Federation, device: torch.device) -> None:
        self._seed, self._federation, self._device = scenario.seed, federation, device
        self.groups = scenario.groups
        self.loader = Loader(federation.mean, federation.std, device, federation.skewed if federation.skew else None)

    def samples_of(self, split: Split, rows: np.ndarray, client: int | None = None) -> Samples:
        return Samples(len(rows), lambda places: self.loader(split, rows[places], client))

    def training_samples(self, client: int) -> Samples:
        """Returns the samples that a client trains on, with the labels that its group has in their place."""
        rows = self._federation.train_rows(client)
        samples, group = self.samples_of(self._federation.train, rows, client), self.groups.of(client)
        if group is None or not group.behaviour.needs:
            return samples
        return samples.relabelled(torch.as_tensor(self._labels(client), device=self._device))

    def labels_of(self, client: int) -> NDArray[np.int64]:
        """Returns the different labels that a client trains on, ascending."""
        found = np.unique(self._labels(client))
        return np.asarray(found[found != IGNORED])

    def _labels(self, client: int) -> NDArray[np.int64]:
        """Returns the labels that a client trains on, (n, ...), with those that its group has in their place."""
        right = self._federation.train.y[self._federation.train_rows(client)]
        group = self.groups.of(client)
        if group is None or not group.behaviour.needs:
            return np.asarray(right)
        draw = generator(self._seed, "labels of a group", client)
        wrong = group.behaviour.labels(right, self._federation.num_classes, draw)
        return np.where(right == IGNORED, right, wrong)

    def distorted(self, client: int, number: int, sent: Record, given: Record) -> Record:
        """Returns what a client sends in place of its update or message, as its group does.

        number: how often it was dispatched, or has mixed, before. given: what the entries are relative to.
        """
        if (group := self.groups.of(client)) is None:
            return sent
        draw = torch.Generator().manual_seed(torch_seed(self._seed, "behaviour", client, number))
        return group.behaviour.distort(sent, given, draw)

    def some(self, samples: int) -> Any:
        """Returns as many inputs, all the same."""
        return self.loader(self._federation.train, np.zeros(samples, dtype=np.int64))[0]

    @cached_property
    def public(self) -> Tensor:
        """The inputs of the public samples, (n, ...). They stay in memory, because all clients use them."""
        public = self._federation.public
        return self.loader(public, np.arange(len(public)))[0]
