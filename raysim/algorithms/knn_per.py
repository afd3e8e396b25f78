"""Federated averaging, with a memory of each client's own samples.

Marfoq, Neglia, Vidal, Kameni, Personalized federated learning through local memorization, ICML 2022. Differences:
neighbours are searched exactly, in memories without limit, and the weight of their votes is given, where the authors
choose the best of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from raysim.algorithms.fedavg import FedAvg
from raysim.errors import Problem
from raysim.part import Count, Fraction, Positive
from raysim.terms import Record

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.task import Task
    from raysim.scenario import Scenario


class KNNPer(FedAvg):
    """FedAvg, with whose predictions the labels of nearby samples of the client's own are mixed (Marfoq et al. 2022).

    Near are samples whose embeddings are: what enters `model.personal`, or else the last linear layer.
    """

    name: str = "knn_per"
    k: Count = 10
    """Neighbours; all, of a client that holds fewer samples."""
    mix: Fraction = 0.5
    """lambda: weight of the neighbours' labels; that of the global model is the rest."""
    distance: Literal["squared", "euclidean"] = "squared"
    """A neighbour counts exp(-d^2 / (dimension * scale)), or exp(-d / scale)."""
    scale: Positive = 1.0

    def problems(self, scenario: Scenario) -> Iterator[Problem]:
        if scenario.data.classes == 0:
            yield Problem("algorithm.name", f"knn_per needs labels, and {scenario.data.name} has none; take other data")
        if scenario.run.save_clients:
            text = "must be false for knn_per, whose clients predict with samples of their own, not with a model alone"
            yield Problem("run.save_clients", text)

    def personal(self, task: Task, message: Record, state: Record) -> Callable[[Tensor], Tensor]:
        import torch
        from sklearn.neighbors import NearestNeighbors

        from raysim.local.net import predicted

        # A sequence has an embedding at each of its places, and a label at each of them or for its last.
        labels = task.y.flatten()
        keys = predicted(task.embed(task.received, task.x), task.y).reshape(len(labels), -1)
        # A tree: the brute-force search takes distances from matrix products, which lose small ones to rounding.
        memory = NearestNeighbors(n_neighbors=min(self.k, len(labels)), algorithm="kd_tree").fit(keys.cpu().numpy())

        def predict(inputs: Tensor) -> Tensor:
            of_model = predicted(task.predict(task.received, inputs), task.y).softmax(-1)
            classes = of_model.shape[-1]
            queries = predicted(task.embed(task.received, inputs), task.y).reshape(of_model.numel() // classes, -1)
            distances, which = (torch.from_numpy(found) for found in memory.kneighbors(queries.cpu().numpy()))
            votes = self._vote(distances.to(queries), labels[which.to(labels.device)], keys.shape[1], classes)
            mixed = self.mix * votes.reshape(of_model.shape) + (1 - self.mix) * of_model
            return mixed.clamp_min(torch.finfo(mixed.dtype).tiny).log()

        return predict

    def _vote(self, distances: Tensor, labels: Tensor, dimension: int, classes: int) -> Tensor:
        """The neighbours' labels as probabilities, (queries, classes). distances, labels: (queries, k)."""
        from torch.nn.functional import one_hot

        exponent = distances.square() / dimension if self.distance == "squared" else distances
        weights = (-exponent / self.scale).softmax(-1)  # their sum would underflow where all are far
        return (one_hot(labels, classes) * weights[..., None]).sum(1)
