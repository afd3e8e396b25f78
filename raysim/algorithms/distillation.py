"""The base of algorithms whose peers agree on outputs for public inputs, and not on parameters."""

from abc import abstractmethod
from typing import ClassVar, Literal

from raysim.algorithms.peer import Inbox, Peer
from raysim.algorithms.signatures import Problem, Problems, Record, Setting, Task, Tensor
from raysim.local import Local
from raysim.parts.part import Positive, Samples


class Distillation(Peer):
    """Local training, then an epoch of training on public inputs towards a target made from the neighbours' outputs.

    Outputs are computed in eval mode; the model that learns from them is in training mode.
    """

    mixes: ClassVar = "mean"

    rho: Positive
    """Learning rate of the training on public inputs, which minimises |f(x) - target|^2 / 2, summed over the inputs and
    outputs of a mini-batch (rho)."""
    outputs: Literal["probabilities", "logits"] = "probabilities"
    """What a peer's outputs f(x) are: probabilities, by softmax, or logits."""
    share: Literal["outputs", "parameters"] = "outputs"
    """What travels: outputs, or parameters from which the receiver computes the outputs. The results are the same."""
    batch_size: Samples | None = None
    """Public inputs in a mini-batch. null: as many as `local.batch_size`."""

    def problems(self, scenario: Setting) -> Problems:
        if scenario.public.samples == 0:
            text = f"must be at least 1, because peers of {self.name} compare outputs on public samples, got 0"
            yield Problem("public.samples", text)
        if scenario.data.classes == 0 and self.outputs == "probabilities":
            yield Problem("algorithm.outputs", f"must be logits, because {scenario.data.name} has no labels")

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
            **dict(settings),
        )
        return {"w": trained.w, "buffers": trained.model.buffers, **rest}

    @abstractmethod
    def target(self, draft: Record, own: Tensor, mean: Tensor) -> tuple[Tensor, Record]:
        """Returns the target to learn, (n, classes), and the other entries of the next state.

        own: the peer's outputs f(x), (n, classes). mean: the mean M[f(x)] of the neighbours' outputs, (n, classes).
        """

    def _predict(self, task: Task, model: Record) -> Record:
        return {"outputs": self._f(task.predict(self.personal(task, model), task.public))}

    def _f(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1) if self.outputs == "probabilities" else logits
