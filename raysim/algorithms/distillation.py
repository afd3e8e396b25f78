"""What algorithms share whose peers agree on predictions: outputs on public inputs, and training towards a target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from raysim.algorithms.peer import Inbox, Peer
from raysim.errors import Problem
from raysim.local import Local
from raysim.part import Count, Positive
from raysim.terms import Record

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.task import Task
    from raysim.scenario import Scenario


class Distillation(Peer):
    """Local training, then an epoch over the public inputs towards a target made of the neighbours' outputs.

    Outputs are computed in eval mode; the peer that learns from them is in training mode.
    """

    rho: Positive
    """Learning rate of rho / 2 |f(x) - target|^2, summed over outputs and the public inputs of a mini-batch."""
    outputs: Literal["probabilities", "logits"] = "probabilities"
    """What f(x) is."""
    share: Literal["outputs", "parameters"] = "outputs"
    """What travels; of parameters, outputs are computed where they arrive, and the numbers are the same."""
    batch_size: Count | None = None
    """Public inputs in a mini-batch; by default local.batch_size."""

    def problems(self, scenario: Scenario) -> Iterator[Problem]:
        if scenario.public.samples == 0:
            text = f"must be at least 1, for peers of {self.name} compare outputs on public samples, got 0"
            yield Problem("public.samples", text)
        if scenario.data.classes == 0 and self.outputs == "probabilities":
            yield Problem("algorithm.outputs", f"must be logits, for {scenario.data.name} has no labels")

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        draft = {**state, **trained.send(w=trained.w)}
        if self.share == "outputs":
            return draft, self._predict(task, draft)
        return draft, {"w": draft["w"], "buffers": draft["buffers"]}

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        if not inbox.messages:
            return draft
        if self.share == "parameters":
            own, *messages = (self._predict(task, message) for message in (inbox.own, *inbox.messages))
            inbox = inbox._replace(own=own, messages=messages)
        target, rest = self.target(draft, inbox.own["outputs"], inbox.mean("outputs"))
        settings = Local(lr=self.rho, batch_size=self.batch_size or task.local.batch_size)
        trained = task.train(
            self.personal(task, draft),
            data=(task.public, target),
            loss=lambda logits, wanted: (self._f(logits) - wanted).square().sum() / 2,
            stream=1,
            **settings.model_dump(),
        )
        return {"w": trained.w, "buffers": trained.model.buffers, **rest}

    @abstractmethod
    def target(self, draft: Record, own: Tensor, mean: Tensor) -> tuple[Tensor, Record]:
        """What to learn, and the rest of the next state. own: f(x), mean: M[f(x)] of the neighbours; (n, classes)."""

    def _predict(self, task: Task, model: Record) -> Record:
        return {"outputs": self._f(task.predict(self.personal(task, model), task.public))}

    def _f(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1) if self.outputs == "probabilities" else logits
