"""A custom algorithm with a server: FedVARP, compared with FedAvg.

Jhunjhunwala, Sharma, Nagarkatti, Joshi, FedVARP: Tackling the variance due to partial client participation in federated
learning, UAI 2022, Algorithm 1. Run it with `python examples/own_algorithm.py`; it takes a few seconds.
"""

import tempfile
from collections.abc import Sequence
from typing import Any

import raysim
from raysim.algorithms import Arrival, Central, Population, Record, Round
from raysim.parts.part import Positive


class FedVARP(Central):
    """Clients that are not picked count with their last updates, so that it matters less who is picked.

    The server keeps the mean of all clients' last updates, and each client its own last one.
    """

    name: str = "own_algorithm:FedVARP"
    server_lr: Positive = 1.0
    """Factor of the server's step."""

    @property
    def trigger(self) -> Round:
        return Round(late="discard")  # one server step at the end of each round, with the updates that came in time

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "mean": model.w * 0}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1 / len(arrivals)] * len(arrivals)

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        share = len(arrivals) / task.population.clients
        moved = state["mean"] + updates["change"]
        return {"w": state["w"] + self.server_lr * moved, "mean": state["mean"] + share * updates["change"]}

    def client(self, model: Any) -> Record:
        return {"last": model.w * 0}

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        delta = trained.w - message["w"]
        return trained.send(change=delta - state["last"]), {"last": delta}


SCENARIO = {
    "name": "fedvarp",
    "data": {"name": "digits", "clients": 50, "partition": {"name": "dirichlet_clients", "alpha": 0.3}},
    "model": {"name": "mlp", "hidden": [64]},
    "local": {"lr": 0.1, "epochs": 5, "batch_size": 32},
    "world": {"dispatch": {"per_round": 5}},
    "run": {"rounds": 60, "evaluate_every": 10},
}


def main() -> None:
    with tempfile.TemporaryDirectory() as out:
        for algorithm in ("fedavg", "own_algorithm:FedVARP"):
            scenario = raysim.parse_scenario({**SCENARIO, "algorithm": algorithm})
            result = raysim.run(scenario, out=out, inline=True)
            accuracy = result.pandas("evaluations").query("metric == 'accuracy'").value
            print(f"{algorithm:22} accuracy {accuracy.iloc[-1]:.4f}")


if __name__ == "__main__":
    main()
