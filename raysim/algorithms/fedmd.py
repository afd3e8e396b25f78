"""Federated learning by model distillation (FedMD).

Li, Wang, FedMD: Heterogenous federated learning via model distillation, NeurIPS 2019 workshop on federated learning,
Algorithm 1.

Differences from the paper: clients do not first train on the public samples, which have no labels here; models that
begin with their own weights may stand for that. A client computes its logits at the end of a round, not at the
beginning of the next one. All public samples are compared in every round, and not a part of them. A client that was
not picked for some rounds digests the newest consensus only. Logits are computed in eval mode. The server can step by a
buffer, too, which is new: the consensus is then the mean of the logits by the factors S(s) of their staleness.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from raysim.algorithms.central import needs_labels
from raysim.algorithms.signatures import Arrivals, Model, Problems, ServerTask, Setting, Task, Tensor
from raysim.algorithms.staleness import Buffered
from raysim.local import Local
from raysim.parts.errors import Problem
from raysim.parts.part import Positive, Samples, Unit
from raysim.terms import Population, Record


class FedMD(Buffered):
    """Clients keep their own models, and learn the mean of all clients' logits on public samples (Li, Wang 2019).

    A client first digests the consensus, then trains on its own samples, and sends its logits. The global model stays
    the initial one. A client that is `data.unseen` does so once.
    """

    mixes_models: ClassVar[bool] = True
    own_model: ClassVar[dict[str, str]] = {"w": "w", "buffers": "buffers"}

    name: str = "fedmd"
    digest_epochs: Annotated[int, Field(ge=0), Unit("epochs")] = 1
    """Passes through the public samples, in which the mean absolute difference of logits from the consensus is
    minimised, with the optimiser of `local`. 0: no digestion, so clients learn alone."""
    digest_lr: Positive | None = None
    """Learning rate of the digestion. null: as `local.lr`."""
    digest_batch_size: Samples | None = None
    """Public samples in a mini-batch. null: as many as `local.batch_size`."""

    def problems(self, scenario: Setting) -> Problems:
        yield from needs_labels(scenario)
        if scenario.public.samples == 0:
            text = "must be at least 1, because clients of fedmd compare logits on public samples, got 0"
            yield Problem("public.samples", f"{text}; for example {{samples: 100}}")

    def init(self, model: Model, population: Population) -> Record:
        return {"w": model.w, "consensus": model.w.new_empty(0)}

    def message(self, state: Record) -> Record:
        return {"consensus": state["consensus"]}

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        factors = self.factors(arrivals)
        total = sum(factors) or 1.0
        return [factor / total for factor in factors]

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(self._digested(task, message, self.own(task, state)))
        trained.log()
        logits = task.predict(trained.model, task.public)
        return {"logits": logits}, self.state_of(trained.model)

    def _digested(self, task: Task, message: Record, own: Model) -> Model:
        """Returns a client's model after it has learnt the consensus, if there is one yet."""
        consensus, local = message["consensus"], task.local
        if not len(consensus) or not self.digest_epochs:
            return own
        settings = Local(  # all of them, so that nothing else is taken from `local`
            optimizer=local.optimizer,
            lr=self.digest_lr or local.lr,
            epochs=self.digest_epochs,
            batch_size=self.digest_batch_size or local.batch_size,
        )
        return task.train(own, data=(task.public, consensus), loss=distance, stream=1, **dict(settings)).model

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        if not any(self.factors(arrivals)):  # nobody reported, or all are too stale to count
            return state
        return {**state, "consensus": updates["logits"]}

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return self.update(task, message, state)[1]


def distance(logits: Tensor, consensus: Tensor) -> Tensor:
    """Returns the mean absolute difference, 0-d, of two tensors (n, ..., classes)."""
    return (logits - consensus).abs().mean()
