"""Personalised federated learning by meta-learning (Per-FedAvg).

Fallah, Mokhtari, Ozdaglar, Personalized federated learning with theoretical guarantees: a model-agnostic meta-learning
approach, NeurIPS 2020, Algorithm 1, with the approximations of its section 4: FO leaves the Hessian out, HF takes the
product of the Hessian and a vector by differences of gradients.

Differences from the paper: HF takes the two gradients at w +- radius v / |v|, and the paper at w +- delta v. They are
the same for delta = radius / |v|; a fixed distance keeps differences of float32 gradients accurate where v is short.
Each step draws separate mini-batches for the inner step, for the gradient, and for the Hessian.
"""

from typing import Literal

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Local, Model, Problem, Problems, Record, Setting, Task, Tensor
from raysim.parts.part import Count, Positive


class PerFedAvg(FedAvg):
    """FedAvg of a model that is good after one step of each client on its own samples (Fallah et al. 2020).

    A client predicts with the global model after `finetune_steps` steps with the rate `alpha`.
    """

    name: str = "per_fedavg"
    alpha: Positive = 0.01
    """Rate of the inner step. `local.lr` is that of the outer one (beta)."""
    approximation: Literal["FO", "HF"] = "FO"
    """How the Hessian is computed. FO: it is left out. HF: a product with it is a difference of two gradients."""
    radius: Positive = 1e-3
    """Distance from w at which HF takes the two gradients: delta |v| of the paper, whatever the length of v."""
    finetune_steps: Count = 1
    """Mini-batches with which a client adapts the global model to predict."""

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        local = scenario.local
        for key, plain, got in (*local.beyond_sgd(), *local.beyond_one_rate()):
            yield Problem(f"local.{key}", f"must be {plain} for per_fedavg, whose steps are plain, got {got}")

    def samples_seen(self, local: Local, samples: int) -> int:
        gradients = 2 if self.approximation == "FO" else 4
        return gradients * local.total_steps(samples) * min(local.batch_size or samples, samples)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        model = task.received
        for step in range(task.local.total_steps(task.samples)):
            model = self._outer_step(task, model, 4 * step)
        return {"delta": model.w - message["w"], "buffers": model.buffers}, state

    def _outer_step(self, task: Task, model: Model, stream: int) -> Model:
        """Returns w - beta (I - alpha H(w)) g, where g is the gradient at w - alpha g(w)."""
        inner = task.train(model, steps=1, lr=self.alpha, stream=stream).model
        outer = task.train(inner, steps=1, stream=stream + 1).model
        move = outer.w - inner.w  # -beta g
        if self.approximation == "HF":
            move = move - self.alpha * self._hessian(task, model, move, stream + 2)
        return outer.replace(w=model.w + move)

    def _hessian(self, task: Task, model: Model, vector: Tensor, stream: int) -> Tensor:
        """Returns the product of the Hessian of a mini-batch and a vector."""
        unit = vector.norm().clamp(min=1e-12)
        shift = self.radius * vector / unit
        lr = task.local.lr
        above, below = (
            (at - task.train(model.replace(w=at), steps=1, stream=stream).w) / lr
            for at in (model.w + shift, model.w - shift)
        )
        product: Tensor = (above - below) * unit / (2 * self.radius)
        return product

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        return task.train(task.received, steps=self.finetune_steps, lr=self.alpha).model
