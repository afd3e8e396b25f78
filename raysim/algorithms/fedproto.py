"""Federated prototype learning (FedProto).

Tan, Long, Liu, Zhou, Lu, Jiang, Zhang, FedProto: Federated prototype learning across heterogeneous clients, AAAI 2022,
Algorithm 1 with equations (3), (6) and (7).

Differences from the paper: clients of one architecture have the same initial values. As in the authors' code, the
distance to a prototype is the mean squared difference, taken for each sample and not for the mean of a label. A global
prototype is the mean over the samples of those who reported, without the second factor 1 / |N_j| of (6), and that of a
label that nobody reported stays. Prototypes are computed in eval mode, after training. The server can step by a buffer,
too, which is new: a stale client's samples then count S(s) times each.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

from raysim.algorithms.central import needs_labels
from raysim.algorithms.signatures import Arrivals, Model, Problems, ServerTask, Setting, Task, Tensor, Trained
from raysim.algorithms.staleness import Buffered
from raysim.local.outputs import predicted
from raysim.parts.errors import Problem
from raysim.parts.lazy import F, torch
from raysim.parts.part import NonNegative
from raysim.terms import Population, Record


class FedProto(Buffered):
    """Clients keep their own models, and share the mean embeddings of their labels (Tan et al. 2022).

    The global model stays the initial one. A client predicts the label of the nearest prototype or, before there are
    any, with its own model. An embedding is what enters `model.personal` or, if nothing is personal, the last linear
    layer; it has the same size in all architectures. One that is `data.unseen` trains once.
    """

    mixes_models: ClassVar[bool] = True
    own_model: ClassVar[dict[str, str]] = {"w": "w", "buffers": "buffers"}

    name: str = "fedproto"
    lam: NonNegative = 1.0
    """Weight lambda of the distance of an embedding to the global prototype of its label. 0: training alone."""
    predict: Literal["prototypes", "model"] = "prototypes"
    """What a client predicts with. prototypes: the labels' prototypes; one that is missing counts as twice as far away
    as the farthest. model: its own model, as if there were none."""

    def embeds(self, scenario: Setting) -> bool:
        return True

    def problems(self, scenario: Setting) -> Problems:
        yield from needs_labels(scenario)
        if scenario.run.save_clients and self.predict == "prototypes":
            text = "must be false for fedproto, whose clients predict with prototypes; or take algorithm.predict: model"
            yield Problem("run.save_clients", text)

    def init(self, model: Model, population: Population) -> Record:
        return {"w": model.w, "prototypes": model.w.new_empty(0), "known": model.w.new_empty(0)}

    def message(self, state: Record) -> Record:
        return {"prototypes": state["prototypes"], "known": state["known"]}

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return self.factors(arrivals)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = self._train(task, message, state)
        trained.log()
        classes = task.predict(trained.model, task.x[:1]).shape[-1]
        labels = F.one_hot(task.y.flatten(), classes).to(trained.w.dtype)
        sums = labels.T @ _embedded(task.embed(trained.model, task.x), task.y)
        return {"sums": sums, "counts": labels.sum(0)}, self.state_of(trained.model)

    def _train(self, task: Task, message: Record, state: Record) -> Trained:
        """Trains the client's own model on its loss and lambda times the distances to prototypes that are known."""
        start, prototypes, known = self.own(task, state), message["prototypes"], message["known"]
        if not self.lam or not len(known):
            return task.train(start)

        def loss(output: Tensor, target: Tensor, embedding: Tensor) -> Tensor:
            labels = target.flatten()
            distances = (_embedded(embedding, target) - prototypes[labels]).square().mean(1)
            return task.loss(output, target) + self.lam * (known[labels] * distances).mean()

        return task.train(start, loss=loss, embedded=True)

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        if "sums" not in updates:
            return state
        sums, counts = updates["sums"], updates["counts"][:, None]
        prototypes, known = sums / counts.where(counts > 0, 1.0), counts[:, 0].sign()
        if len(state["known"]):
            prototypes, known = prototypes.where(counts > 0, state["prototypes"]), known.maximum(state["known"])
        return {**state, "prototypes": prototypes, "known": known}

    def personal(self, task: Task, message: Record, state: Record) -> Model | Callable[[Tensor], Tensor]:
        own, prototypes, known = self.own(task, state), message["prototypes"], message["known"]
        if self.predict == "model" or not len(known):
            return own

        def predict(inputs: Tensor) -> Tensor:
            """Returns the negative squared distances to prototypes, whose softmax is a probability."""
            places = task.predict(own, inputs[:1]).shape[1:-1]  # of a sequence whose every place has a label
            points = _embedded(task.embed(own, inputs), prototypes.new_empty(len(inputs), *places))
            distances = torch.cdist(points, prototypes, compute_mode="donot_use_mm_for_euclid_dist").square()
            farthest = distances.masked_fill(known == 0, 0).amax(1, keepdim=True)
            return -distances.where(known > 0, 2 * farthest).reshape(len(inputs), *places, len(known))

        return predict

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return self.state_of(self._train(task, message, state).model)


def _embedded(embedding: Tensor, y: Tensor) -> Tensor:
    """Returns an embedding for each label, (labels, dimension)."""
    return predicted(embedding, y).reshape(y.numel(), -1)
