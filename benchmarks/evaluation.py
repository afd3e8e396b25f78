"""Measures what evaluating clients' own models costs in a worker, beside a plain loop, in turns.

    python benchmarks/evaluation.py --root ROOT

ROOT holds FashionMNIST/raw/*.gz. Each of 300 clients has an MLP of 784, 200 and 10 units, with a head of its own or all
of it, and evaluates it on its own samples. Printed are medians of CPU milliseconds a client, and of the pairs' ratios.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from actors import Value
from raysim.data import federate
from raysim.engine.families import family_of
from raysim.scenario.load import scenario_of
from raysim.terms import ClientState, Moment
from raysim.workers import records
from raysim.workers.requests import EvaluateClientsRequest, OwnModels, Served

CLIENTS = 300
ALGORITHMS = {"fedper": "own heads", "local_only": "own models"}


def worker_job(root: str, algorithm: str) -> tuple[Callable[[], object], int]:
    """Returns what evaluates all clients in a worker, and how many samples the first one has."""
    scenario = scenario_of(
        {
            "name": "evaluation",
            "data": {"name": "fashion_mnist", "root": root, "clients": 1000, "partition": "iid", "local_test": 0.2},
            "model": {"name": "mlp", "hidden": [200], "personal": ["head"]},
            "algorithm": algorithm,
            "local": {"lr": 0.1, "batch_size": 20},
            "world": {"dispatch": {"per_round": 50}},
            "run": {"rounds": 1},
        }
    )
    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    worker = family_of(scenario).worker(federation)
    message = Value(records.send(worker.models.message(worker.models.first_state())))
    first = worker.models.first_client()
    copies = ({name: vector.clone() for name, vector in first.algorithm.items()} for _ in range(CLIENTS))
    states = tuple(Value(ClientState(records.send(copy), {})) for copy in copies)
    own = OwnModels(tuple(range(CLIENTS)), (1.0,) * CLIENTS, 1, Moment(), False, (Served(message, 1),), states)
    samples = sum(len(rows) for _, rows in federation.evaluates_on(0).values())
    return lambda: worker.evaluate_clients(EvaluateClientsRequest(own)), samples


def plain_loop(samples: int) -> Callable[[], object]:
    """Returns a loop over as many models with as many samples, as one writes it without a simulator."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10))
    states = [{name: value.clone() for name, value in network.state_dict().items()} for _ in range(CLIENTS)]
    x, y = torch.rand(CLIENTS, samples, 784), torch.randint(0, 10, (CLIENTS, samples))

    @torch.no_grad()
    def evaluate() -> None:
        for place, state in enumerate(states):
            network.load_state_dict(state)
            outputs = network(x[place])
            nn.functional.cross_entropy(outputs, y[place], reduction="sum").item()
            (outputs.argmax(1) == y[place]).sum().item()

    return evaluate


def milliseconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return (time.process_time() - began) / CLIENTS * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for algorithm, own in ALGORITHMS.items():
        ours, samples = worker_job(given.root, algorithm)
        plain = plain_loop(samples)
        for _ in range(3):
            ours(), plain()  # what is done once
        pairs = [(milliseconds(ours), milliseconds(plain)) for _ in range(given.repeat)]
        ratios = sorted(one / other for one, other in pairs)
        one, other = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{own}: raysim {one:.3f} ms a client, plain loop {other:.3f}, ", end="")
        print(f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


main()
