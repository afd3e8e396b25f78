"""Evaluates models on samples, batch by batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysim.data import Federation, Split
from raysim.local.many import ManyModels
from raysim.local.net import Net
from raysim.local.outputs import counted, hits
from raysim.local.samples import Loader
from raysim.scenario import Scenario
from raysim.scenario.checks import Has
from raysim.terms import Record
from raysim.workers.replies import Evaluated, MetricSums, Numbers

On = dict[str, tuple[Split, np.ndarray]]  # on what a client's own model is evaluated, by name of the split

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
        totals: MetricSums = defaultdict(float)
        for start in range(0, len(rows), EVALUATION_BATCH):
            x, y = self._loader(split, rows[start : start + EVALUATION_BATCH], client)
            output: Tensor = predict(x)
            if kept is not None:
                kept.append(self._kept_of(output, y))
            for metric, (value,) in self._measured([output], y, (len(y),)):
                totals[metric] += value
        if (solves := self._net.take_solves()).solves:  # like all metrics, as sums over samples
            totals["iterations"] = totals["samples"] * solves.iterations / solves.solves
            totals["unconverged"] = totals["samples"] * solves.unconverged / solves.solves
        return {**totals}

    def of_many(self, models: ManyModels, vectors: Sequence[Tensor], on: Sequence[On]) -> list[dict[str, Evaluated]]:
        """Evaluates a model of each client on its own samples, with the bits of `measure`, without `run.metrics`.

        vectors: what of its model is each client's own. The network must hold the rest.
        """
        found: list[dict[str, Evaluated]] = [{} for _ in on]
        for name in dict.fromkeys(chain.from_iterable(on)):
            rows_of = {place: splits[name][1] for place, splits in enumerate(on) if name in splits}
            totals: dict[int, MetricSums] = {place: defaultdict(float) for place in rows_of}
            split = next(splits[name][0] for splits in on if name in splits)
            for block in _blocks(rows_of):
                places, pieces = zip(*block, strict=True)
                x, y = self._loader(split, np.concatenate(pieces))
                sizes = tuple(map(len, pieces))
                outputs = models(x, sizes, [vectors[place] for place in places])
                for metric, sums in self._measured(outputs, y, sizes):
                    for place, value in zip(places, sums, strict=True):
                        totals[place][metric] += value
            for place, total in totals.items():
                found[place][name] = Evaluated({**total}, {})
        return found

    def _measured(
        self, outputs: list[Tensor], y: Tensor, sizes: tuple[int, ...]
    ) -> Iterator[tuple[str, Iterable[float]]]:
        """Yields each metric with its sum over the samples of each batch. y: the targets of all of them."""
        targets = y.split_with_sizes(sizes)
        losses = [self._net.loss(*pair, reduction="sum") for pair in zip(outputs, targets, strict=True)]
        yield "samples", map(counted, targets)
        yield "loss", torch.stack(losses).tolist()
        if self._labelled:
            right = hits(torch.cat(outputs), y).reshape(len(y), -1).sum(1)
            yield "accuracy", np.add.reduceat(right.cpu().numpy(), np.cumsum((0, *sizes[:-1]))).tolist()

    def _kept_of(self, output: Tensor, y: Tensor) -> Record:
        """Returns what metrics need of a batch: outputs and labels, or what some make of them."""
        record: Record = {}
        for metric in self._metrics:
            if f"labels, {metric.keeps}" not in record:
                outputs, labels = metric.reduced(output, y)
                record[f"outputs, {metric.keeps}"], record[f"labels, {metric.keeps}"] = outputs.cpu(), labels.cpu()
        return record


def _blocks(rows_of: Mapping[int, np.ndarray]) -> Iterator[list[tuple[int, np.ndarray]]]:
    """Yields as many batches of clients as one pass takes, each with the client's place."""
    block: list[tuple[int, np.ndarray]] = []
    held = 0
    for place, rows in rows_of.items():
        for start in range(0, len(rows), EVALUATION_BATCH):
            piece = rows[start : start + EVALUATION_BATCH]
            if block and held + len(piece) > EVALUATION_BATCH:
                yield block
                block, held = [], 0
            block.append((place, piece))
            held += len(piece)
    if block:
        yield block


def joined(kept: list[Record]) -> Record:
    """Joins the records that were kept of several batches into one."""
    return {key: torch.cat([record[key] for record in kept]) for key in kept[0]}
