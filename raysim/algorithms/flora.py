"""Federated fine-tuning with stacked adapters of any ranks (FLoRA).

Wang, Shen, He, Sun, Wang, Lyu, Li, FLoRA: Federated fine-tuning large language models with heterogeneous low-rank
adaptations, NeurIPS 2024, arXiv 2409.05976. The server stacks what clients send, [B_1 ... B_n] and [p_1 A_1; ...; p_n
A_n], and the product of the stacks, sum_i p_i B_i A_i, is added to the base. Each training begins with new adapters.

Differences from the paper: none in the sum. As in the authors' code, alpha / r is the same for all ranks; there, each
client of rank r_k has alpha = 2 r_k. The base is a part of the model's buffers (`lora.merge`), which a simulation holds
once more for each version that is in use. In bytes, a client receives the stacks of all steps since it last took part,
or the weights themselves where they are smaller; where all take part in each round, these are the paper's.
"""

import math
from typing import ClassVar

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.low_rank import LowRank, outside, stacked, within
from raysim.algorithms.signatures import Arrivals, Model, Problems, ServerTask, Setting, Task
from raysim.parts.errors import BadInput, Problem
from raysim.parts.lazy import torch
from raysim.terms import Population, Record, Traffic, Trip


class FLoRA(LowRank):
    """Products of clients' adapters are merged into the base, and new adapters are trained (Wang et al. 2024)."""

    merges_adapters: ClassVar[bool] = True

    name: str = "flora"

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        if scenario.model.lora is not None and not scenario.model.lora.merge:
            yield Problem("model.lora.merge", "must be true for flora, which merges adapters into the base; set it")

    def init(self, model: Model, population: Population) -> Record:
        bases = sum(pair.base.size for pair in model.pairs if pair.base is not None)
        if len(model.buffers) > bases:
            text = "must be frozen for flora, which averages no statistics of normalisation layers, got some"
            raise BadInput("model.norm", f"{text}; set it")
        return super().init(model, population)

    def traffic(self, trip: Trip) -> Traffic:
        missed = sum(self.rank_in(group, trip) * number for group, number in trip.missed.uses.items())
        down = sum(min(missed * one.numbers, one.base) for one in trip.sizes.adapters if one.base is not None)
        up = self.rank_in(trip.group, trip) * sum(one.numbers for one in trip.sizes.adapters)
        return Traffic(up=4 * (up + outside(trip.sizes)), down=4 * (down + outside(trip.sizes)))

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        rank, model = self.rank(task), self._renewed(task)
        trained = task.train(model.replace(within(model, rank)))
        trained.log()
        return {"w": within(trained.model, rank)}, state

    def _renewed(self, task: Task) -> Model:
        """Returns the model that was received, with new adapters, as peft starts them."""
        model, draws = task.received, task.generator("flora")
        w = model.w.clone()
        for pair in model.pairs:
            a, b = pair.factors(model.w)
            if b.any():  # of an embedding: there, A starts at zero
                b = torch.randn(b.shape, generator=draws, device=b.device)
            else:
                bound = 1 / math.sqrt(a.shape[1])
                a = torch.rand(a.shape, generator=draws, device=a.device).mul_(2 * bound).sub_(bound)
            pair.put(w, a, b)
        return model.replace(w)

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        w = updates["w"].new_tensor(by_samples(arrivals)) @ updates["w"]
        buffers = state["buffers"].clone()
        for pair in task.received.pairs:
            left, right = stacked(pair, updates["w"], arrivals)
            pair.merge(buffers, left @ right)
            pair.put(w, *pair.factors(state["w"]))  # whose product is zero
            task.vector_flops += 2.0 * left.shape[0] * right.numel()
        return {"w": w, "buffers": buffers}
