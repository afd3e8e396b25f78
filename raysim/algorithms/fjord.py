"""Ordered dropout: a client trains widths up to its own, drawn anew for each step (FjORD).

Horvath, Laskaridis, Almeida, Leontiadis, Venieris, Lane, FjORD: Fair and accurate federated learning under
heterogeneous targets with ordered dropout, NeurIPS 2021, Algorithm 1. Each mini-batch step of a client of level p draws
one of the levels up to p, and trains the first units of each hidden layer at that level. Each parameter becomes the
mean over the clients that hold it, by samples. BatchNorm has its own statistics at each level.

Differences from the paper: the server adds means of differences, and so can step by a buffer, too, which is new. With
distillation, a step takes two gradients, as in the baseline of an author's group: the widest network's on labels, and a
narrower one's on the widest's probabilities, where the paper's text mixes labels and probabilities at a temperature.
Statistics of all levels travel at the width of the client. Operations, and with them computed delays, are those of the
mean over the levels that a client draws from, and not of what it draws.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raysim.algorithms.signatures import Arrivals, Direction, Local, Model, Population, Record, ServerTask, Task, Tensor
from raysim.algorithms.sliced import Sliced, levels_within
from raysim.parts.lazy import torch

if TYPE_CHECKING:
    from raysim.local.nested import Nested

STATISTICS = "statistics"  # the entry of BatchNorm's statistics at each level, (levels, b)


class FjORD(Sliced):
    """Each step of a client trains a width drawn up to its own, with knowledge of its widest (Horvath et al. 2021)."""

    name: str = "fjord"
    distil: bool = True
    """Whether a step trains the client's widest network on labels, and a narrower one on what that predicts. false: it
    trains the network of the width that is drawn, on labels."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return local.total_samples(samples) * (2 if self.distil else 1)

    def trains(self, level: float, levels: Sequence[float]) -> list[float]:
        drawn = levels_within(level, levels)
        return [*drawn, *[level] * (len(drawn) if self.distil else 0)]

    def init(self, model: Model, population: Population) -> Record:
        rows = model.buffers.repeat(len(population.levels), 1)
        return {**self.starting(model.w), **({STATISTICS: rows} if rows.numel() else {})}

    def message(self, state: Record) -> Record:
        return {key: state[key] for key in ("w", STATISTICS) if key in state}

    def at_level(self, message: Record, place: int) -> Record:
        return {**message, "buffers": message[STATISTICS][place]} if STATISTICS in message else message

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        levels = levels_within(task.level, task.population.levels)
        first = len(task.population.levels) - len(levels)  # the levels above its own
        rows = message[STATISTICS][first:] if STATISTICS in message else task.received.buffers.expand(len(levels), 0)
        nested, draws = task.nested(levels[1:], rows), task.generator("widths")

        def step(x: Tensor, y: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
            place = int(torch.randint(len(nested), (), generator=draws, device=draws.device))
            return distilled(nested, place, x, y, task) if self.distil else nested.gradients(place, x, y)

        alone = len(levels) == 1 and not self.distil  # which is FedAvg's training, to the bit
        trained = task.train(task.received, gradient=None if alone else step)
        trained.log()
        sent = {"delta": trained.w - message["w"]}
        if STATISTICS in message:
            after = message[STATISTICS].clone().zero_()
            after[first:] = nested.statistics(trained.model)
            sent[STATISTICS] = after
        return sent, state

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        direction, others = super().direction(state, arrivals, updates, task)
        if STATISTICS not in updates or direction is None:
            return direction, others
        weights, statistics = self.discounted(arrivals, self.weights), state[STATISTICS].clone()
        for place, level in enumerate(task.population.levels):
            if held := sum(weight for weight, one in zip(weights, arrivals, strict=True) if one.level >= level):
                statistics[place] = updates[STATISTICS][place] / held
        return direction, {STATISTICS: statistics, "buffers": statistics[0]}


def distilled(nested: "Nested", place: int, x: Tensor, y: Tensor, task: Task) -> tuple[Tensor, Sequence[Tensor]]:
    """Returns the loss of the widest network on labels, and the sum of its gradient and that of the network at a place
    on what the widest predicts."""
    kept: list[Tensor] = []

    def on_labels(outputs: Tensor, targets: Tensor) -> Tensor:
        kept.append(outputs.detach())
        return task.loss(outputs, targets)

    value, wide = nested.gradients(0, x, y, on_labels)
    wide = [one.clone() for one in wide]
    _, narrow = nested.gradients(place, x, y, lambda outputs, _: likeness(outputs, kept[0]))
    return value, [one + other for one, other in zip(wide, narrow, strict=True)]


def likeness(outputs: Tensor, teacher: Tensor) -> Tensor:
    """Returns the cross-entropy of predictions with those of a teacher, both logits (n, ..., classes), 0-d."""
    return -(teacher.softmax(-1) * outputs.log_softmax(-1)).sum(-1).mean()
