"""Federated learning with adaptive local aggregation (FedALA).

Zhang, Hua, Wang, Song, Xue, Ma, Guan, FedALA: Adaptive local aggregation for personalized federated learning, AAAI
2023, Algorithm 1.

Differences from the paper: weights are learned for `weight_epochs` whenever a client takes part. In the paper, the
first time lasts until they converge.
"""

import math
from typing import ClassVar

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Model, Record, Task, Tensor
from raysim.local import Local
from raysim.parts.lazy import torch
from raysim.parts.part import Epochs, NonNegative, Share


class FedALA(FedAvg):
    """FedAvg whose clients start between their own last model and the received one (Zhang et al. 2023).

    The weights of the received model are learned, one for each parameter, for the higher layers, which `model.personal`
    names; or for all layers, if it names none. Lower layers start as they are received. A client predicts with its own
    last model; before it is first picked, with the initial one; one that is `data.unseen`, with the global one.
    """

    own_model: ClassVar[dict[str, str]] = {"w": "w", "buffers": "buffers"}

    name: str = "fedala"
    weight_lr: NonNegative = 1.0
    """Rate eta with which the weights are learned. 0: they stay 1, and clients start as those of FedAvg do."""
    weight_epochs: Epochs = 1
    """Passes through the chosen samples in which the weights are learned."""
    share: Share = 0.8
    """Share s of a client's samples, drawn anew each time, on which the weights are learned; at least one sample."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return self.weight_epochs * self._chosen(samples) + local.total_samples(samples)

    def _chosen(self, samples: int) -> int:
        return max(1, math.floor(self.share * samples))

    def client(self, model: Model) -> Record:
        return {"w": model.w, "buffers": model.buffers, "weights": self._higher(model) * 0 + 1}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        weights = self._weights(task, state)
        trained = task.train(self._between(task.received, state["w"], weights))
        own = {"w": trained.w, "buffers": trained.model.buffers, "weights": weights}
        return trained.send(delta=trained.w - message["w"]), own

    def _weights(self, task: Task, state: Record) -> Tensor:
        """Returns the weights after steps W - eta g (received - own), each kept within 0 and 1."""
        settings = Local(lr=1.0, steps=1, batch_size=None).model_dump()  # so that a step is the gradient
        received, weights, own = task.received, state["weights"], state["w"]
        apart = self._higher(received) - self._higher(received.replace(w=own))
        draws = task.generator("weights")
        chosen = torch.randperm(task.samples, generator=draws, device=draws.device)[: self._chosen(task.samples)]
        part = "personal" if len(received.personal) else None
        for step in range(self.weight_epochs):
            shuffled = chosen[torch.randperm(len(chosen), generator=draws, device=draws.device)]
            for rows in torch.split(shuffled, task.local.batch_size or len(chosen)):
                start, data = self._between(received, own, weights), (task.x[rows], task.y[rows])
                after = task.train(start, part=part, data=data, stream=step + 1, **settings).model
                gradient = self._higher(start) - self._higher(after)
                weights = (weights - self.weight_lr * gradient * apart).clamp(0, 1)
        return weights

    def _between(self, received: Model, own: Tensor, weights: Tensor) -> Model:
        """Returns own + (received - own) * weights, and the received model's lower layers."""
        between = self._higher(received.replace(w=own)).lerp(self._higher(received), weights)
        return received.replace(personal=between) if len(received.personal) else received.replace(w=between)

    def _higher(self, model: Model) -> Tensor:
        return model.personal if len(model.personal) else model.w

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return {**state, "w": task.received.w, "buffers": task.received.buffers}
