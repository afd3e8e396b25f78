"""An algorithm of one's own, with a server: FedDyn, compared with FedAvg.

Acar, Zhao, Matas Navarro, Mattina, Whatmough, Saligrama, Federated learning based on dynamic regularization, ICLR 2021,
Algorithm 1. Run it with `python examples/own_algorithm.py`; it takes a few seconds.
"""

import tempfile
from collections.abc import Sequence
from typing import Any

import raysim
from raysim.algorithms import Arrival, Central, Population, Record, Round
from raysim.parts.part import NonNegative


class FedDyn(Central):
    """Clients follow a gradient that is corrected by what they did before; the server keeps the sum of corrections."""

    name: str = "own_algorithm:FedDyn"
    alpha: NonNegative = 0.1
    """Weight of the regularisation. 0: none, which is FedAvg with uniform weights."""

    @property
    def trigger(self) -> Round:
        return Round(late="discard")  # one server step at the end of each round, with the updates that came in time

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "h": model.w * 0}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1 / len(arrivals)] * len(arrivals)

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        if not self.alpha:
            return {"w": state["w"] + updates["delta"]}
        share = len(arrivals) / task.population.clients
        h = state["h"] - self.alpha * share * updates["delta"]
        return {"w": state["w"] + updates["delta"] - h / self.alpha, "h": h}

    def client(self, model: Any) -> Record:
        return {"gradient": model.w * 0}

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        received, gradient = message["w"], state["gradient"]
        trained = task.train(task.received, correction=lambda w: self.alpha * (w - received) - gradient)
        delta = trained.w - received
        return trained.send(delta=delta), {"gradient": gradient - self.alpha * delta}


SCENARIO = {
    "name": "feddyn",
    "data": {"name": "digits", "clients": 50, "partition": {"name": "dirichlet_clients", "alpha": 0.3}},
    "model": {"name": "mlp", "hidden": [64]},
    "local": {"lr": 0.1, "epochs": 5, "batch_size": 32},
    "world": {"dispatch": {"per_round": 10}},
    "run": {"rounds": 60, "evaluate_every": 10},
}


def main() -> None:
    with tempfile.TemporaryDirectory() as out:
        for algorithm in ("fedavg", "own_algorithm:FedDyn"):
            scenario = raysim.parse_scenario({**SCENARIO, "algorithm": algorithm})
            result = raysim.run(scenario, out=out, inline=True)
            accuracy = result.pandas("evaluations").query("metric == 'accuracy'").value
            print(f"{algorithm:22} accuracy {accuracy.iloc[-1]:.4f}")


if __name__ == "__main__":
    main()
