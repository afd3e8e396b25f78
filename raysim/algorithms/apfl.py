"""Adaptive personalised federated learning (APFL).

Deng, Kamani, Mahdavi, Adaptive personalized federated learning, arXiv 2003.13461, 2020, Algorithm 1.

Differences from the paper: none. As there, each step draws its mini-batch anew, the same for both models; with a
constant `alpha` of 0, clients train as those of FedAvg do. An adaptive alpha takes one gradient step whenever a client
takes part, before it trains, and is kept within 0 and 1.
"""

from raysim.algorithms.fedavg import FedAvg, Weights
from raysim.algorithms.signatures import Local, Model, Problem, Problems, Record, Setting, Task, Tensor
from raysim.parts.part import Fraction


class APFL(FedAvg):
    """FedAvg, and each client mixes the model with one of its own, trained for the mixture (Deng et al. 2020).

    A client predicts with alpha v + (1 - alpha) w, where v is its own model and w the received one. v starts as the
    initial model; that of a client that is `data.unseen` is the global model.
    """

    name: str = "apfl"
    weights: Weights = "uniform"
    """How updates are weighted; `fedavg` explains the choices."""
    alpha: Fraction = 0.5
    """Share alpha of a client's own model in the mixture. The paper compares 0.25, 0.5 and 0.75. 0: FedAvg."""
    adaptive: bool = False
    """Whether each client's alpha starts there and follows the gradient of its loss."""

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        local = scenario.local
        for key, plain, got in (*local.beyond_sgd(), *local.beyond_one_rate()):
            yield Problem(f"local.{key}", f"must be {plain} for apfl, whose steps are plain, got {got}")

    def samples_seen(self, local: Local, samples: int) -> int:
        if not self._mixes:
            return local.total_samples(samples)
        of_step = local.model_copy(update={"steps": 1}).total_samples(samples)
        return (2 * local.total_steps(samples) + self.adaptive) * of_step

    def client(self, model: Model) -> Record:
        own = {"v": model.w, "buffers": model.buffers}
        return {**own, "alpha": model.w.new_tensor(self.alpha)} if self.adaptive else own

    @property
    def _mixes(self) -> bool:
        return self.adaptive or self.alpha > 0

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        if not self._mixes:
            return super().update(task, message, state)
        mixed, v = self.personal(task, message, state), state["v"]
        moved = {"alpha": self._moved(task, mixed, v - message["w"], state["alpha"])} if self.adaptive else {}
        alpha = moved.get("alpha", self.alpha)
        model = task.received
        for step in range(task.local.total_steps(task.samples)):
            mixed = mixed.replace(w=alpha * v + (1 - alpha) * model.w)
            after = task.train(mixed, steps=1, stream=step).model
            v = v + alpha * (after.w - mixed.w)  # the gradient for v is alpha times that for the mixture
            mixed, model = after, task.train(model, steps=1, stream=step).model
        update = {"delta": model.w - message["w"], "buffers": model.buffers}
        return update, {**state, "v": v, "buffers": mixed.buffers, **moved}

    def _moved(self, task: Task, mixed: Model, apart: Tensor, alpha: Tensor) -> Tensor:
        """Returns alpha - lr <v - w, g>, where g is the gradient at the mixture, and `apart` is v - w."""
        step = task.train(mixed, steps=1).w - mixed.w  # -lr g
        return (alpha + apart @ step).clamp(0, 1)

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        if not self._mixes:
            return task.received
        alpha = state["alpha"] if self.adaptive else self.alpha
        return task.received.replace(w=alpha * state["v"] + (1 - alpha) * message["w"], buffers=state["buffers"])

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return {**state, "v": task.received.w, "buffers": task.received.buffers}
