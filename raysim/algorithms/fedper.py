"""Federated averaging with personalisation layers (FedPer): a shared body, and a head that each client keeps.

Arivazhagan, Aggarwal, Singh, Choudhary, Federated learning with personalization layers, arXiv 1912.00818, Algorithms 1
and 2.

Differences from the paper: none. Training the head alone before both parts is an option.
"""

from typing import Annotated, ClassVar

from pydantic import NonNegativeInt

from raysim.algorithms.central import needs_personal
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Local, Model, Population, Problems, Record, Setting, Task
from raysim.parts.part import Epochs, Unit

HEAD = 1  # the stream of the head's batches, so that the body sees the same batches whether heads are trained or not


class FedPer(FedAvg):
    """FedAvg of the shared part, which each client trains along with its own head (Arivazhagan et al. 2019).

    The head is `model.personal`. The global model is the shared part with the initial head. Where nothing but norms
    stays with clients (`model.norm: local`), this is FedBN (Li, Jiang, Zhang, Kamp, Dou, FedBN: Federated learning on
    non-IID features via local batch normalization, ICLR 2021).
    """

    keeps_personal: ClassVar[bool] = True
    own_model: ClassVar[dict[str, str]] = {"personal": "head"}

    name: str = "fedper"
    head_epochs: Annotated[NonNegativeInt, Unit("epochs")] = 0
    """Epochs of training the head alone, before `local.epochs` of training both parts. The code of FeDEQ takes 3."""
    adapt_epochs: Epochs = 3
    """Epochs in which a client that is `data.unseen` trains its head alone, after the last round."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return local.for_epochs(self.head_epochs).total_samples(samples) + local.total_samples(samples)

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        yield from needs_personal(scenario)

    def init(self, model: Model, population: Population) -> Record:
        return self.starting(model.shared)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        return self._train(task, message, state, part=None)

    def _train(self, task: Task, message: Record, state: Record, part: str | None) -> tuple[Record, Record]:
        """Trains the head alone, then a part of the model. part: None stands for both parts."""
        start = self.own(task, state)
        if self.head_epochs:
            start = task.train(start, part="personal", epochs=self.head_epochs, stream=HEAD).model
        trained = task.train(start, part=part)
        return trained.send(delta=trained.model.shared - message["w"]), self.state_of(trained.model)

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        start = self.own(task, state)
        return {"head": task.train(start, part="personal", epochs=self.adapt_epochs, stream=HEAD).model.personal}
