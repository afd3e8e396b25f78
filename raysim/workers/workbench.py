"""What every worker has: the data, shared with the other workers of its node, and a model that fits them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysim.data import Federation, Split
from raysim.local.model import Model
from raysim.local.net import Net, predicted
from raysim.local.samples import Loader, Samples
from raysim.local.task import Task
from raysim.models.build import initialise
from raysim.scenario import Scenario
from raysim.workers.replies import Described, MetricSums, TrainingColumns

EVALUATION_BATCH = 250  # fixed, for bits depend on it
EVALUATING = 2**32  # above any number of dispatches: what a personal model draws is keyed by this plus the version
# What an update carries for columns of the tables only.
LOGGED = ("loss_before", "loss_after", "residual", "tolerance", "penalty")


class Workbench:
    """Made once in each actor. Methods change nothing that a later call could see."""

    def __init__(self, scenario: Scenario, federation: Federation, device: torch.device) -> None:
        """Raises ValueError where the model does not fit the data, or has nothing to share."""
        self.scenario, self.federation, self.device = scenario, federation, device
        self.shape = _input_shape(federation)
        module = initialise(scenario.model, self.shape, federation.num_classes, scenario.seed)
        self.net = Net(module, scenario.model.personal, federation.loss, device)
        if self.net.layout.cut == 0:
            named = ", ".join(scenario.model.personal)
            raise ValueError(f"model.personal: must leave parameters to share, got all, by [{named}]; leave some out")
        self.start = self.net.model()
        self.loader = Loader(federation.mean, federation.std, device)
        self.population = scenario.population(federation.samples)

    def describe(self) -> Described:
        """What the scheduler must know of data and model."""
        federation, layout = self.federation, self.net.layout
        return Described(
            samples=federation.samples,
            held_out=federation.held_out.sizes,
            evaluation_rows={split: len(rows) for split, (_, rows) in self.evaluated.items()},
            partition=federation.partition_table(),
            parameters=layout.parameters,
            entries=tuple((entry.name, entry.shape, entry.offset) for entry in layout.entries),
            shape=self.shape,
            classes=federation.num_classes,
            unseen=federation.unseen[federation.held.sizes[federation.unseen] > 0],
        )

    def task(self, client: int, number: int, received: Model) -> Task:
        """What a client has to work with. number: how often it was dispatched before."""
        samples = self._samples(self.federation.train, self.federation.train_rows(client))
        key = (self.scenario.seed, client, number)
        return Task(self.net, received, samples, self.scenario.local, self.population, key, lambda: self.public)

    def _samples(self, split: Split, rows: np.ndarray) -> Samples:
        return Samples(len(rows), lambda places: self.loader(split, rows[places]))

    @cached_property
    def public(self) -> Tensor:
        """Inputs of the samples that everybody has, (n, ...); kept, for everybody works with them."""
        public = self.federation.public
        return self.loader(public, np.arange(len(public)))[0]

    @cached_property
    def forward_flops(self) -> float:
        """Of a sample's forward pass. A backward pass takes twice the work: by inputs and by parameters."""
        from torch.utils.flop_counter import FlopCounterMode

        x, _ = self.loader(self.federation.train, np.zeros(1, dtype=np.int64))
        with FlopCounterMode(display=False) as counter, self.net.evaluating(self.start) as module:
            module(x)
        return float(counter.get_total_flops())

    @property
    def evaluated(self) -> dict[str, tuple[Split, np.ndarray]]:
        """What models are evaluated on, and which rows of it, by name."""
        federation = self.federation
        return {
            "test": (federation.test, federation.evaluation_rows),
            "train": (federation.train, federation.training_rows),
        }

    def measure(self, predict: Any, split: Split, rows: np.ndarray) -> MetricSums:
        """Sums of metrics over what is predicted of the rows of a split: a label of each, or several.

        predict: from inputs to logits. Deep equilibrium layers add how their solves fared, also those since somebody
        last took note, such as in adapting the model.
        """
        loss, correct, labelled = 0.0, 0, self.federation.loss == "cross_entropy"
        for start in range(0, len(rows), EVALUATION_BATCH):
            x, y = self.loader(split, rows[start : start + EVALUATION_BATCH])
            output: Tensor = predict(x)
            loss += float(self.net.loss(output, y, reduction="sum"))
            if labelled:
                correct += int((predicted(output, y).argmax(-1) == y).sum())
        samples, solves = float(split.y[rows].size), self.net.take_solves()
        sums = {"samples": samples, "loss": loss}
        if labelled:
            sums["accuracy"] = float(correct)
        if solves.solves:  # as sums over samples, of which there may be several a solve
            sums["iterations"] = samples * solves.iterations / solves.solves
            sums["unconverged"] = samples * solves.unconverged / solves.solves
        return sums

    def training_columns(self, logged: Mapping[str, Tensor], steps: int, seconds: float) -> TrainingColumns:
        """What the tables say of a training. logged: those of LOGGED that it gave. Takes note of the solves."""
        solves = self.net.take_solves()
        numbers = {key: logged[key].item() if key in logged else None for key in LOGGED}
        return TrainingColumns(
            local_steps=steps,
            seconds=seconds,
            **numbers,
            solver_iterations=solves.iterations / solves.solves if solves.solves else None,
            solver_residual=solves.residual if solves.solves else None,
            unconverged=solves.unconverged if solves.solves else None,
        )


def _input_shape(federation: Federation) -> tuple[int, ...]:
    """The shape of one input, as a module gets it: (C, H, W) of an image."""
    x = federation.train.x
    return (x.shape[3], *x.shape[1:3]) if x.dtype == np.uint8 else x.shape[1:]
