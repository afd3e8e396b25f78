"""Federated dual learning (Feddle): the server searches for coefficients to merge client updates, on its own data.

Zhu, Yao, Ceritli, Ozkan, Blaschko, Noh, Min, Min, Ozay, Guided model merging for hybrid data learning: leveraging
centralized data to refine decentralized models, 2025; section 4, Algorithm 1, equations 4 to 10, 15 and 16.

Differences from the paper: another rule for replacing anchors, see `atlas`. The paper leaves the following open. By
default there is a search at the end of each round with an arrival, and its optimiser is Adam. Each search starts with a
fresh optimiser, and the model is in eval mode. The surrogate head starts at zero, is kept from search to search, and is
fitted to the body's features at the fallback. Coefficients of the fallback are in units of normalised anchors, and 0
for anchors of earlier rounds. So they make the step of FedBuff, over the arrivals that have a place in the atlas. If a
search waits for as many updates as FedBuff's buffer holds, and takes no step, the model has the same bits as FedBuff's.
BatchNorm's statistics are not part of an anchor; they are averaged over the round's arrivals.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Literal

from raysim.algorithms import atlas
from raysim.algorithms.atlas import Anchors
from raysim.algorithms.hybrid import Hybrid
from raysim.algorithms.signatures import Arrivals, Model, Problems, ServerTask, Setting, Tensor
from raysim.algorithms.staleness import Polynomial, Staleness
from raysim.parts.errors import Problem
from raysim.parts.lazy import F, torch
from raysim.parts.part import Count, Epochs, NonNegative, Positive
from raysim.terms import Buffer, Population, Record, Round, SearchResult, ServerStep

Batches = Iterable[tuple[Tensor, Tensor]]
Slope = Callable[[Tensor, Tensor, Tensor], Tensor]  # from coefficients and a batch to the gradient by coefficients


class Feddle(Hybrid):
    """Updates are kept as anchors, and merged with coefficients searched on the server's data (Zhu et al. 2025)."""

    name: str = "feddle"
    atlas: Count | None = None
    """How many anchors, which are client updates, the server keeps (M). null: twice the clients picked in a round."""
    normalize: bool = True
    """Whether the search scales each anchor to the median of the anchors' norms (4)."""
    score: Literal["coefficient", "age"] = "coefficient"
    """Which anchor is replaced when the atlas is full. coefficient: the one with the smallest coefficient, in absolute
    value. age: the oldest."""
    fallback: Literal["fedbuff", "spread", "uniform", "none"] = "fedbuff"
    """The coefficients that a search starts from and is pulled back to (c'). fedbuff: those of FedBuff's step over the
    arrivals. spread: those of FedBuff's step over all anchors. uniform: like fedbuff, but as if all arrivals had the
    same norm. none: 0, which leaves the model as it is."""
    fallback_lr: Positive = 1.0
    """Factor of FedBuff's step in the fallback (eta_g)."""
    fallback_buffer: Count | Literal["arrivals"] | None = None
    """What the sum of updates in the fallback is divided by: FedBuff's K, or `arrivals` for the number of updates that
    a search adds to the atlas, so that even a single one counts in full. null: `search_after` or, without it, the
    number of clients picked in a round; `arrivals` if that number varies. `fallback: spread` always divides by the
    number of anchors."""
    staleness: Staleness = Polynomial()
    """The factor S(s) of an update's weight in the fallback, for its staleness s."""
    regularization: NonNegative | None = None
    """Strength lambda of the pull towards the fallback. null: 0 on in-domain data, 0.01 on out-of-domain data."""
    search_after: Count | None = None
    """Search whenever so many updates have arrived. null: at the end of each round in which one arrived."""
    head_lr: Positive = 0.03
    """Learning rate at which the surrogate head is fitted to out-of-domain labels (8), by `server_optimizer`."""
    head_epochs: Epochs = 10
    """Passes through the server's samples to fit the surrogate head, before each search."""

    @property
    def trigger(self) -> Round | Buffer:
        return Buffer(self.search_after) if self.search_after else Round(late="keep")

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        if self.atlas is None and scenario.world.dispatch.size is None:
            text = "must be given if no fixed number of clients is picked in a round (null is twice that number)"
            yield Problem("algorithm.atlas", f"{text}, got null; for example 20")
        if self.search_after and self._size(scenario.world.dispatch.size) < self.search_after:
            text = f"must be at least search_after, {self.search_after}, or some updates never become anchors"
            yield Problem("algorithm.atlas", f"{text}, got {self.atlas}; raise it")

    def init(self, model: Model, population: Population) -> Record:
        return {"w": model.w, "head": model.w.new_empty(0), **atlas.empty(self._size(population.per_round), model.w)}

    def _size(self, per_round: int | None) -> int:
        """Returns the number of places in the atlas. per_round: clients picked in a round; None if that varies."""
        return self.atlas or 2 * (per_round or 1)

    def weigh(self, arrivals: Arrivals, population: Population) -> None:
        return None

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> ServerStep:
        discounts = [self.staleness.of(arrival.staleness) for arrival in arrivals]
        entries, taken = atlas.admit(state, updates["delta"], arrivals, discounts, task.version)
        anchors = Anchors.of(entries, normalize=self.normalize)
        size = self._buffer(task.population, len(set(taken)))
        aims = self._aims(anchors, entries["discount"], set(taken), size)
        weights = [0.0 if taken[i] in taken[i + 1 :] else factor / size for i, factor in enumerate(discounts)]
        start = self._start(state, updates, anchors, aims, weights, task)
        head = state["head"] if task.in_domain else self._fit_head(start, state["head"], task)
        slope = _slope(start, anchors, aims, task, head)
        found = self._search(aims, slope, task)
        here, score = anchors.places, entries["score"].clone()
        if self.score == "coefficient":
            score[here] = found.abs()
        if task.reference is not None:
            task.log(similarity=self._similarity(start, anchors, aims, slope, task))
        task.vector_flops += self._flops(anchors, task)
        return ServerStep(
            state={
                **entries,
                "w": anchors.move(start.w, found - aims) if self.server_epochs else start.w,
                "buffers": start.buffers,
                "head": head,
                "score": score,
            },
            search=SearchResult(
                anchor=torch.tensor(here),
                client=entries["client"][here],
                arrived=entries["arrived"][here],
                coefficient=found,
                fallback=aims,
                norm=anchors.norms,
            ),
        )

    def _buffer(self, population: Population, fresh: int) -> int:
        """Returns what the sum of updates in the fallback is divided by. fresh: the number of new anchors."""
        if self.fallback_buffer == "arrivals":
            return fresh
        return self.fallback_buffer or self.search_after or population.per_round or fresh

    def _aims(self, anchors: Anchors, discounts: Tensor, fresh: set[int], size: int) -> Tensor:
        """Returns c', the coefficients of the fallback, (m,); section 4.1.3.

        fresh: the places of new anchors. size: what `_buffer` returned.
        """
        if self.fallback == "none":
            return torch.zeros_like(anchors.norms)
        used = anchors.places if self.fallback == "spread" else fresh
        shares = anchors.norms.new_tensor([float(place in used) for place in anchors.places])
        shares *= self.fallback_lr * discounts[anchors.places] / (len(used) if self.fallback == "spread" else size)
        units = 1.0 if self.fallback == "uniform" else anchors.scale
        return torch.where(anchors.scale > 0, shares / units, 0.0)

    def _start(
        self, state: Record, updates: Record, anchors: Anchors, aims: Tensor, weights: list[float], task: ServerTask
    ) -> Model:
        """Returns the model at the fallback, with the same bits as after FedBuff's step. weights: those of the
        updates in that step."""
        w = anchors.move(state["w"], aims)
        if self.fallback == "fedbuff":
            w = state["w"] + self.fallback_lr * task.weighted_sum(updates["delta"], weights)
        return task.received.replace(w=w, buffers=updates["buffers"])

    def _search(self, aims: Tensor, slope: Slope, task: ServerTask) -> Tensor:
        """Searches for coefficients (m,) that lower the loss on the server's data; equations 5, 9 and 10."""
        pull = self.regularization
        if pull is None:
            pull = 0.0 if task.in_domain else 0.01
        found = aims.clone()
        move = self._descent(found, self.server_lr)
        for x, y in task.batches(self.server_epochs, self.server_batch_size):
            move(slope(found, x, y) + pull * (found - aims))
        return found

    def _fit_head(self, start: Model, head: Tensor, task: ServerTask) -> Tensor:
        """Fits the surrogate head, a linear layer (labels, features + 1), to the server's labels; equation 8.

        start: the model at the fallback.
        """
        features = task.features(start).flatten(1)
        shape = (task.classes, features.shape[1] + 1)
        fitted = head.clone() if head.shape == shape else features.new_zeros(shape)
        move = self._descent(fitted, self.head_lr)
        for x, y in task.batches(self.head_epochs, self.server_batch_size, (features, task.labels), stream=1):
            with torch.enable_grad():
                asked = fitted.detach().requires_grad_()
                (gradient,) = torch.autograd.grad(_surrogate(asked)(x, y), asked)
            move(gradient)
        return fitted

    def _descent(self, x: Tensor, lr: float) -> Callable[[Tensor], None]:
        """Returns a function that changes x in place by one step of a fresh optimiser, given the gradient."""
        state, taken = self.server_optimizer.init(x), count()
        return lambda gradient: self.server_optimizer.move(x, gradient.clone(), state, lr, next(taken))

    def _flops(self, anchors: Anchors, task: ServerTask) -> float:
        """Returns a search's FLOPs on vectors: each batch sums up all anchors, and each shard projects its gradient
        on all anchors."""
        batches = self.server_epochs * -(-task.samples // (self.server_batch_size or task.samples))
        elements = len(anchors.vectors) * len(anchors.vectors[0])
        return 2.0 * batches * (1 + task.company.shards) * elements

    def _similarity(self, start: Model, anchors: Anchors, aims: Tensor, slope: Slope, task: ServerTask) -> Tensor:
        """Returns the cosine, 0-d, between two gradients with respect to the coefficients, at the fallback; figures 7
        and 9.

        One is the gradient on the server's data, the other that on the reference samples.
        """
        assert task.reference is not None
        own = _whole(aims, slope, task.batches(1, self.server_batch_size))
        reference = task.batches(1, self.server_batch_size, task.reference.all)
        return F.cosine_similarity(own, _whole(aims, _slope(start, anchors, aims, task, None), reference), dim=0)


def _slope(start: Model, anchors: Anchors, aims: Tensor, task: ServerTask, head: Tensor | None) -> Slope:
    """Returns a function that gives the gradient of a batch's mean loss with respect to the coefficients, (m,);
    equations 15 and 16.

    The aggregators share the batch, and exchange m numbers each. start: the model at the fallback, whose coefficients
    are `aims`. head: the head of the surrogate loss; if it is None or empty, the loss is that of the clients.
    """
    loss = None if head is None or not head.numel() else _surrogate(head)

    def slope(coefficients: Tensor, x: Tensor, y: Tensor) -> Tensor:
        model = start.replace(w=anchors.move(start.w, coefficients - aims))

        def of_shard(inputs: Tensor, labels: Tensor) -> Tensor:
            gradient = task.batch_gradient(model, inputs, labels, loss, embedded=loss is not None)
            return anchors.project(gradient) * (len(labels) / len(y))

        return task.reduce(of_shard, x, y)

    return slope


def _surrogate(head: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns the loss of a linear layer (labels, features + 1) that predicts labels from features (n, ...)."""

    def loss(features: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(F.linear(features.flatten(1), head[:, :-1], head[:, -1]), labels)

    return loss


def _whole(coefficients: Tensor, slope: Slope, batches: Batches) -> Tensor:
    """Returns the gradient of the mean loss over all batches with respect to the coefficients, (m,)."""
    total, samples = coefficients.new_zeros(len(coefficients)), 0
    for x, y in batches:
        total += len(y) * slope(coefficients, x, y)
        samples += len(y)
    return total / samples
