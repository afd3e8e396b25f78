"""Federated averaging with fine-tuning by each client (FedAvg+FT).

Collins, Hassani, Mokhtari, Shakkottai, FedAvg with fine tuning: Local updates lead to representation learning, NeurIPS
2022.

Differences from the paper: none. A client's fine-tuned copy is made anew from the current global model whenever it is
evaluated, so each evaluation shows what fine-tuning would give at that point. With `finetune_after`, clients continue
with their own models instead, as in the code of FeDEQ.
"""

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Arrivals, Direction, Model, Problems, ServerTask, Setting, Task
from raysim.parts.errors import Problem
from raysim.parts.part import Count, Epochs
from raysim.terms import Population, Record, Round


class FedAvgFT(FedAvg):
    """FedAvg, and each client predicts with its own fine-tuned copy of the global model (Collins et al. 2022)."""

    name: str = "fedavg_ft"
    finetune_epochs: Epochs = 5
    """Epochs of fine-tuning on a client's own samples for an evaluation; with `finetune_after`, the epochs for
    clients that are `data.unseen`. All parameters are trained, otherwise as `local` says."""
    finetune_after: Count | None = None
    """Number of rounds after which nothing is averaged any more: a picked client then trains its own model, as
    `local` says, which starts as the last average and is kept from one time to the next. Until a client has one, it
    predicts with the average. The code of FeDEQ does so after 30 % of all rounds (its `finetune_frac`). null: all
    rounds average, and a client's copy is fine-tuned anew for each evaluation."""

    @property
    def trigger(self) -> Round:
        return Round(late="discard", empty=self.finetune_after is not None)  # so that steps count rounds

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        rounds = scenario.run.rounds
        if self.finetune_after is not None and rounds is not None and self.finetune_after >= rounds:
            text = f"must be less than run.rounds, {rounds}, or no client is fine-tuned, got {self.finetune_after}"
            yield Problem("algorithm.finetune_after", f"{text}; take 30 % of them, as the code of FeDEQ does, or null")

    def init(self, model: Model, population: Population) -> Record:
        state = super().init(model, population)
        return state if self.finetune_after is None else {**state, "tuning": model.w.new_zeros(())}

    def message(self, state: Record) -> Record:
        return {key: state[key] for key in ("w", "tuning") if key in state}

    def client(self, model: Model) -> Record:
        if self.finetune_after is None:
            return {}
        return {"w": model.w, "buffers": model.buffers, "tuned": model.w.new_zeros(())}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        if self.finetune_after is None or not message["tuning"]:
            return super().update(task, message, state)
        trained = task.train(self.personal(task, message, state))
        trained.log()
        return {}, {"w": trained.w, "buffers": trained.model.buffers, "tuned": state["tuned"] * 0 + 1}

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        direction, others = super().direction(state, arrivals, updates, task)
        if self.finetune_after is None:
            return direction, others
        return direction, {**others, "tuning": state["tuning"] * 0 + (task.version >= self.finetune_after)}

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        if self.finetune_after is None:
            return task.train(task.received, epochs=self.finetune_epochs).model
        return task.received.replace(w=state["w"], buffers=state["buffers"]) if state["tuned"] else task.received

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        if self.finetune_after is None:
            return state
        tuned = task.train(task.received, epochs=self.finetune_epochs).model
        return {"w": tuned.w, "buffers": tuned.buffers, "tuned": state["tuned"] * 0 + 1}
