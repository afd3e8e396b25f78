"""Asynchronous tiers (FedAT).

Chai, Chen, Anwar, Zhao, Cheng, Rangwala, FedAT: A high-performance and communication-efficient federated learning
system with asynchronous tiers, SC 2021, Algorithms 1 and 2.

Differences from the paper: messages are not compressed by polylines. Tiers are those of `world.dispatch`: clients are
sorted once, by the delay of their first update, where the paper profiles them. The model of a tier that has not
stepped yet is the initial one.
"""

from typing import ClassVar, Literal

from raysim.algorithms.central import Central
from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.signatures import Arrivals, Model, Population, Problems, Record, Round, ServerTask, Setting, Task
from raysim.parts.errors import Problem
from raysim.parts.part import NonNegative


class FedAT(Central):
    """Synchronous rounds within tiers of equally fast clients, which do not wait for each other (Chai et al. 2021).

    The global model is the mean of the tiers' models. Of M tiers, tier m has the weight T_(M + 1 - m) / T, where T_m is
    how often tier m has stepped, and T the sum: slow tiers, which step seldom, have the weights of fast ones. It needs
    `world.dispatch.per_tier`. The paper has five tiers.
    """

    trigger: ClassVar[Round] = Round(late="keep")
    sends: ClassVar[Literal["difference", "model"]] = "model"

    name: str = "fedat"
    lam: NonNegative = 0.4
    """Weight lambda of the proximal term lambda / 2 |w - w_t|^2 in a client's objective, where w_t is the received
    model. 0: none."""

    def problems(self, scenario: Setting) -> Problems:
        if scenario.world.dispatch.per_tier is None:
            text = "must have per_tier and tiers, because fedat has rounds in each tier, got none; for example"
            yield Problem("world.dispatch", f"{text} `{{per_tier: 2, tiers: 5}}`")

    def init(self, model: Model, population: Population) -> Record:
        # models: (tiers, d). statistics: BatchNorm's, (tiers, b). steps: how often each tier has stepped, (tiers,).
        models, statistics = (vector.repeat(population.tiers, 1) for vector in (model.w, model.buffers))
        return {"w": model.w, "models": models, "statistics": statistics, "steps": model.w.new_zeros(population.tiers)}

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return by_samples(arrivals)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received = message["w"]
        pull = (lambda w: self.lam * (w - received)) if self.lam else None
        trained = task.train(task.received, correction=pull)
        return trained.send(w=trained.w), state

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        tier = arrivals[0].tier
        task.log(tier=tier)
        models, statistics, steps = (state[key].clone() for key in ("models", "statistics", "steps"))
        models[tier], statistics[tier] = updates["w"], updates["buffers"]
        steps[tier] += 1
        weights = steps.flip(0) / steps.sum()
        task.vector_flops += 2.0 * models.numel()
        mixed = {"w": weights @ models, "buffers": weights @ statistics}
        return {**mixed, "models": models, "statistics": statistics, "steps": steps}
