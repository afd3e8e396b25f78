"""Federated averaging of normalised updates (FedNova).

Wang, Liu, Liang, Joshi, Poor, Tackling the objective inconsistency problem in heterogeneous federated optimization,
NeurIPS 2020, equations (6) and (7), for local SGD with or without momentum, where the normaliser |a_i|_1 of client i is
tau_i without momentum, and (tau_i - rho (1 - rho^tau_i) / (1 - rho)) / (1 - rho) with momentum rho.

Differences from the paper: none in what is computed. tau_eff is the weighted mean of the normalisers, as in the paper's
experiments, and p_i are weights by the samples of the clients that reported.
"""

from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Arrivals, Direction, Problems, Record, ServerTask, Setting, Task, Tensor
from raysim.local.optimizers import SGD
from raysim.parts.errors import Problem


class FedNova(FedAvg):
    """FedAvg of directions: each update is divided by what the client's number of steps amounts to (Wang et al. 2020).

    With equal numbers of steps it is FedAvg.
    """

    name: str = "fednova"

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        optimizer = scenario.local.optimizer
        if not isinstance(optimizer, SGD) or optimizer.nesterov or optimizer.dampening or optimizer.keep:
            text = "must be sgd with no more than momentum for fednova, which divides by its steps, got"
            yield Problem("local.optimizer", f"{text} {optimizer!r}")

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        assert isinstance(task.local.optimizer, SGD)  # see `problems`
        taken = self.normaliser(trained.steps.to(trained.w.dtype), task.local.optimizer.momentum)
        return trained.send(delta=(trained.w - message["w"]) / taken, taken=taken), state

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        direction, others = super().direction(state, arrivals, updates, task)
        return (None if direction is None else updates["taken"] * direction), others

    def normaliser(self, steps: Tensor, momentum: float) -> Tensor:
        """Returns |a_i|_1, 0-d: how many steps without momentum a client's steps amount to."""
        if not momentum:
            return steps
        return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
