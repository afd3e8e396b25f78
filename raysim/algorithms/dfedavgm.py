"""Decentralised federated averaging with momentum (DFedAvgM).

Sun, Li, Wang, Decentralized federated averaging, IEEE TPAMI 45, 2023, Algorithm 1.

Differences from the paper: messages are not quantised, and any mixing weights are allowed, where the paper's are
symmetric.
"""

from raysim.algorithms.decfedavg import DecFedAvg
from raysim.algorithms.signatures import Problem, Problems, Record, Setting, Task
from raysim.local.optimizers import SGD
from raysim.parts.part import Fraction


class DFedAvgM(DecFedAvg):
    """DecFedAvg whose local training has heavy-ball momentum, restarted in every round (Sun et al. 2023)."""

    name: str = "dfedavgm"
    momentum: Fraction = 0.9
    """Momentum of local training (theta)."""

    def problems(self, scenario: Setting) -> Problems:
        for key, plain, got in scenario.local.beyond_sgd():
            text = f"must be {plain} for dfedavgm, whose momentum is algorithm.momentum, got {got}"
            yield Problem(f"local.{key}", text)

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state), optimizer=SGD(momentum=self.momentum))
        return {}, trained.send(w=trained.w)
