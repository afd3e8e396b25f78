"""Federated averaging with a memory of each client's own samples (kNN-Per).

Marfoq, Neglia, Vidal, Kameni, Personalized federated learning through local memorization, ICML 2022.

Differences from the paper: neighbours are searched exactly, and memories have no limit. The weight of the neighbours'
votes is a setting, where the authors choose the best of a grid. The server can step by a buffer, too, which is new: the
model is then FedBuff's, and each architecture's moves by the updates of the buffer that are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Arrivals, Population, Problem, Problems, Record, Setting, Task, Tensor
from raysim.algorithms.staleness import Buffered
from raysim.local.outputs import predicted
from raysim.parts.lazy import F, torch
from raysim.parts.part import Count, Fraction, Positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class KNNPer(Buffered, FedAvg):
    """FedAvg, and a client mixes the model's prediction with the labels of its nearest samples (Marfoq et al. 2022).

    Samples are near if their embeddings are. Where clients have several architectures, there is a model of each, which
    is averaged over the clients that have it.
    """

    mixes_models: ClassVar[bool] = True
    steps_apart: ClassVar[bool] = True

    name: str = "knn_per"
    k: Count = 10
    """How many nearest samples vote. A client with fewer samples lets all of them vote."""
    mix: Fraction = 0.5
    """Weight lambda of the neighbours' votes. The global model's prediction has the weight 1 - lambda."""
    distance: Literal["squared", "euclidean"] = "squared"
    """How the vote of a neighbour at distance d is weighted. squared: exp(-d^2 / (dimension * scale)), where dimension
    is that of an embedding. euclidean: exp(-d / scale)."""
    scale: Positive = 1.0
    """Scale of the distances in these weights. The larger, the more alike the neighbours count."""

    embedding: str | None = None
    """Name of the sub-module whose input is the embedding of a sample, such as norm2, which is what the code of FeDEQ
    takes for images: before the last normalisation. null: `model.personal` or, if nothing is personal, the last linear
    layer."""

    def embeds(self, scenario: Setting) -> bool | str:
        return self.embedding or True

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        if scenario.data.classes == 0:
            yield Problem("algorithm.name", f"knn_per needs labels, and {scenario.data.name} has none; take other data")
        if scenario.run.save_clients:
            text = "must be false for knn_per, whose clients predict with their own samples, not with a model alone"
            yield Problem("run.save_clients", text)
        if self.buffer is not None and self.weights not in ("samples", "uniform"):
            text = "must be samples or uniform with a buffer, whose updates are not those of a round, got"
            yield Problem("algorithm.weights", f"{text} {self.weights}")

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        if self.buffer is None:
            return super().weigh(arrivals, population)
        return self.discounted(arrivals, "uniform" if self.weights == "uniform" else "samples")

    def personal(self, task: Task, message: Record, state: Record) -> Callable[[Tensor], Tensor]:
        from sklearn.neighbors import NearestNeighbors

        # A sequence has an embedding at each place, and a label at each place or for the last one only.
        labels = task.y.flatten()
        keys = predicted(task.embed(task.received, task.x, self.embedding), task.y).reshape(len(labels), -1)
        # A tree, because the brute-force search computes distances by matrix products, which round small ones away.
        memory = NearestNeighbors(n_neighbors=min(self.k, len(labels)), algorithm="kd_tree").fit(_points(keys))

        def predict(inputs: Tensor) -> Tensor:
            of_model = predicted(task.predict(task.received, inputs), task.y).softmax(-1)
            classes = of_model.shape[-1]
            queries = predicted(task.embed(task.received, inputs, self.embedding), task.y).reshape(
                of_model.numel() // classes, -1
            )
            distances, which = (torch.from_numpy(found) for found in memory.kneighbors(_points(queries)))
            votes = self._vote(distances.to(queries), labels[which.to(labels.device)], keys.shape[1], classes)
            mixed = self.mix * votes.reshape(of_model.shape) + (1 - self.mix) * of_model
            return mixed.clamp_min(torch.finfo(mixed.dtype).tiny).log()

        return predict

    def _vote(self, distances: Tensor, labels: Tensor, dimension: int, classes: int) -> Tensor:
        """Returns the neighbours' votes as probabilities, (queries, classes). distances, labels: (queries, k)."""
        exponent = distances.square() / dimension if self.distance == "squared" else distances
        weights = (-exponent / self.scale).softmax(-1)  # far neighbours' weights would all underflow to 0
        return (F.one_hot(labels, classes) * weights[..., None]).sum(1)


def _points(embeddings: Tensor) -> NDArray[np.float32]:
    """Returns embeddings (n, dimension) for the search, which refuses numbers that are not finite. A model that has
    diverged gives such embeddings; they are moved so far away that they are nobody's neighbours."""
    far = torch.finfo(embeddings.dtype).max
    points: NDArray[np.float32] = embeddings.nan_to_num(far, far, -far).cpu().numpy()
    return points
