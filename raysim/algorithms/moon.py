"""Model-contrastive federated learning (MOON).

Li, He, Song, Model-contrastive federated learning, CVPR 2021, Algorithm 1.

Differences from the paper: its projection head is part of the model, if it is to have one: the representation of a
sample is what enters the last layer. Those of the received and of the previous model are computed once for each
training, in eval mode, and of samples without augmentation.
"""

from raysim.algorithms.central import needs_labels
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Model, Problems, Record, Setting, Task, Tensor, Trained
from raysim.local.outputs import predicted
from raysim.parts.lazy import F, torch
from raysim.parts.part import NonNegative, Positive


class MOON(FedAvg):
    """FedAvg whose clients contrast representations with those of other models (Li et al. 2021).

    They draw them towards those of the received model, and away from those of their own last one. Where a client has
    not taken part before, its last model is the initial one. A representation is what enters `model.personal` or, if
    nothing is personal, the last linear layer.
    """

    name: str = "moon"
    mu: NonNegative = 1.0
    """Weight mu of the contrastive loss in a client's objective. The paper tunes it over 0.1, 1, 5 and 10; its best are
    5 for CIFAR-10, and 1 for CIFAR-100 and Tiny-ImageNet. 0: FedAvg."""
    temperature: Positive = 0.5
    """Temperature tau, by which cosine similarities are divided."""

    def embeds(self, scenario: Setting) -> bool:
        return True

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        yield from needs_labels(scenario)

    def client(self, model: Model) -> Record:
        return {"w": model.w, "buffers": model.buffers}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        last = task.received.replace(w=state["w"], buffers=state["buffers"])
        trained = self._contrasted(task, last) if self.mu else task.train(task.received)
        return trained.send(delta=trained.w - message["w"]), {"w": trained.w, "buffers": trained.model.buffers}

    def _contrasted(self, task: Task, last: Model) -> Trained:
        """Trains on l_sup + mu l_con, where l_con = -log(e^(near / tau) / (e^(near / tau) + e^(far / tau)))."""
        y = task.y
        # A sequence has a representation at each place, and one label or a label at each place.
        received, before = (predicted(task.embed(model, task.x), y).flatten(1) for model in (task.received, last))

        def loss(output: Tensor, places: Tensor, embedding: Tensor) -> Tensor:
            z = predicted(embedding, y[places]).flatten(1)
            near, far = (F.cosine_similarity(z, other[places]) for other in (received, before))
            return task.loss(output, y[places]) + self.mu * F.softplus((far - near) / self.temperature).mean()

        places = torch.arange(task.samples, device=y.device)
        return task.train(task.received, data=(task.x, places), loss=loss, embedded=True)
