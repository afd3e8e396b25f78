"""Evaluates models on samples, batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysim.data import Federation, Split
from raysim.data.dataset import IGNORED
from raysim.local.net import Net
from raysim.local.outputs import hits
from raysim.local.samples import Loader
from raysim.scenario import Scenario
from raysim.scenario.checks import Has
from raysim.terms import Record
from raysim.workers.replies import Evaluated, MetricSums, Numbers

EVALUATION_BATCH = 250  # samples in a forward pass; fixed, because it decides bits
# What data have to measure by, for the loss that they bring.
HAS: dict[str, Has] = {"cross_entropy": "labels", "binary_cross_entropy": "several labels"}


class Evaluator:
    """Evaluates models of a worker.

    splits: by name of the split, the samples and the rows of them on which models are evaluated.
    """

    def __init__(self, scenario: Scenario, federation: Federation, net: Net, loader: Loader) -> None:
        self._metrics, self._labelled = scenario.run.metrics, federation.loss in HAS
        self._net, self._loader = net, loader
        self.splits: dict[str, tuple[Split, np.ndarray]] = {
            "test": (federation.test, federation.evaluation_rows),
            "train": (federation.train, federation.training_rows),
            "validation": (federation.validation, np.arange(len(federation.validation))),
        }

    def measure(self, predict: Any, split: Split, rows: np.ndarray, client: int | None = None) -> Evaluated:
        """Evaluates predictions for rows of a split. A row may have one label, or several.

        predict: a function from inputs to logits. client: whose samples they are, if they are some client's own. If the
        model has deep equilibrium layers, metrics of their solves are added, for all solves since `take_solves` was
        last called, such as those of adapting the model.
        """
        kept: list[Record] | None = [] if self._metrics else None
        return Evaluated(self.sums(predict, split, rows, kept, client), self.own_metrics(kept))

    def own_metrics(self, kept: list[Record] | None) -> Numbers:
        """Computes the metrics of `run.metrics`. kept: what they keep of batches, as `sums` adds it; None: none."""
        if not kept:
            return {}
        whole = joined(kept)
        pairs = ((one, (whole[f"outputs, {one.keeps}"], whole[f"labels, {one.keeps}"])) for one in self._metrics)
        return {one.title: one.value(*kept_of) for one, kept_of in pairs}

    def sums(
        self, predict: Any, split: Split, rows: np.ndarray, kept: list[Record] | None, client: int | None = None
    ) -> MetricSums:
        """Returns the sums of metrics over predictions, as `measure` says.

        kept: a list to which is added what metrics need of each batch, on the CPU; None: that is not kept.
        """
        loss, correct = 0.0, 0
        for start in range(0, len(rows), EVALUATION_BATCH):
            x, y = self._loader(split, rows[start : start + EVALUATION_BATCH], client)
            output: Tensor = predict(x)
            if kept is not None:
                kept.append(self._kept_of(output, y))
            loss += float(self._net.loss(output, y, reduction="sum"))
            if self._labelled:
                correct += hits(output, y)
        samples, solves = float(_labels(split.y[rows])), self._net.take_solves()
        sums = {"samples": samples, "loss": loss}
        if self._labelled:
            sums["accuracy"] = float(correct)
        if solves.solves:  # like all metrics, as sums over samples
            sums["iterations"] = samples * solves.iterations / solves.solves
            sums["unconverged"] = samples * solves.unconverged / solves.solves
        return sums

    def _kept_of(self, output: Tensor, y: Tensor) -> Record:
        """Returns what metrics need of a batch: outputs and labels, or what some make of them."""
        record: Record = {}
        for metric in self._metrics:
            if f"labels, {metric.keeps}" not in record:
                outputs, labels = metric.reduced(output, y)
                record[f"outputs, {metric.keeps}"], record[f"labels, {metric.keeps}"] = outputs.cpu(), labels.cpu()
        return record


def joined(kept: list[Record]) -> Record:
    """Joins the records that were kept of several batches into one."""
    return {key: torch.cat([record[key] for record in kept]) for key in kept[0]}


def _labels(y: np.ndarray) -> int:
    """Returns how many labels or targets there are, without those that are ignored."""
    return y.size if y.ndim == 1 or y.dtype == np.float32 else int(np.count_nonzero(y != IGNORED))
