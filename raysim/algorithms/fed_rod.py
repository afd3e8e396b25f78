"""Federated robust decoupling (Fed-RoD): a generic head that is balanced, and a personal one beside it.

Chen, Chao, On bridging generic and personalized federated learning for image classification, ICLR 2022, Algorithm 1,
with linear personal heads and the balanced softmax loss.

Differences from the paper: a client trains its personal head after the rest, and not in turns with it; weight decay
then acts on the sum of both heads. There are no hypernetworks: a client that is `data.unseen` trains its head alone.
"""

from collections.abc import Callable

from raysim.algorithms.central import needs_labels, needs_personal
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.fedper import HEAD
from raysim.algorithms.signatures import Local, Model, Problems, Record, Setting, Task, Tensor
from raysim.local.outputs import cross_entropy
from raysim.parts.part import NonNegative


class FedRoD(FedAvg):
    """FedAvg of a balanced model, to which each client adds its own head (Chen and Chao 2022).

    The shared model is trained as if all labels were as frequent. The head is `model.personal`, which should be one
    linear layer, for a client's own head is added to its parameters: the logits of both are then added. It starts at 0.
    """

    name: str = "fed_rod"
    gamma: NonNegative = 1.0
    """Exponent gamma of a label's number of samples in the balanced softmax, which replaces the loss of the shared
    training. 0: the loss of the data, so that the global model is that of FedAvg."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return 2 * local.total_samples(samples)

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        yield from needs_personal(scenario)
        yield from needs_labels(scenario)

    def client(self, model: Model) -> Record:
        return {"head": model.personal * 0}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received, loss=self._balanced(task) if self.gamma else None)
        return trained.send(delta=trained.w - message["w"]), self._fitted(task, trained.model, state)

    def _balanced(self, task: Task) -> Callable[[Tensor, Tensor], Tensor]:
        """Returns the cross-entropy of logits that are raised by gamma log n_c, where n_c samples have the label c."""
        y = task.y.flatten()

        def loss(output: Tensor, target: Tensor) -> Tensor:
            raised = self.gamma * y.bincount(minlength=output.shape[-1]).log()
            return cross_entropy(output + raised, target)

        return loss

    def _fitted(self, task: Task, model: Model, state: Record) -> Record:
        """Returns the client's head after training it on the loss of the data, beside a model that stays."""
        both = task.train(self._with_head(model, state), part="personal", stream=HEAD).model
        return {"head": both.personal - model.personal}

    def _with_head(self, model: Model, state: Record) -> Model:
        return model.replace(personal=model.personal + state["head"])

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        return self._with_head(task.received, state)

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return self._fitted(task, task.received, state)
