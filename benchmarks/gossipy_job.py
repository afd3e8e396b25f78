"""The jobs of `peers.py` in gossipy: a peer sends its model to a random neighbour, which averages both and trains.

Polato, gossipy: Python module for simulating gossip learning and decentralized federated learning, gossipy-dfl 0.0.1.
Prints the seconds per round of each case of `peers.py` as one line of JSON.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from gossipy import set_seed
from gossipy.core import AntiEntropyProtocol, Message, StaticP2PNetwork
from gossipy.data import DataDispatcher
from gossipy.data.handler import ClassificationDataHandler
from gossipy.model import TorchModel
from gossipy.model.handler import TorchModelHandler
from gossipy.node import GossipNode
from gossipy.simul import GossipSimulator, SimulationEventReceiver
from jobs import JOBS, SEED, network
from peers import BATCH, CASES, LR, Case, shares
from torch import Tensor

TICKS = 100  # units of gossipy's virtual time in a round, as in its own examples


class Mlp(TorchModel):
    """The network that all engines train."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = network(JOBS["mlp"])

    def init_weights(self) -> None:
        """Does nothing: `network` has set the weights."""

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


class Laps(SimulationEventReceiver):
    """Records the time at the end of each round."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def update_timestep(self, t: int) -> None:
        if (t + 1) % TICKS == 0:
            self.ends.append(time.perf_counter())

    def update_message(self, failed: bool, msg: Message | None = None) -> None:
        """Does nothing: messages are not counted."""

    def update_end(self) -> None:
        """Does nothing at the end."""


def graph(case: Case) -> nx.Graph:
    """Returns the ring of the case, or a random graph with 512 edges like that of the case."""
    return nx.cycle_graph(case.peers) if case.topology == "ring" else nx.gnm_random_graph(case.peers, 512, seed=SEED)


def simulated(case: Case, root: Path) -> float:
    """Returns seconds per round. A peer holds only what it trains on in one round: gossipy trains on all of it."""
    set_seed(SEED)
    x, y = (torch.from_numpy(np.concatenate([own[: case.steps * BATCH] for own in of])) for of in shares(case, root))
    data = DataDispatcher(ClassificationDataHandler(x, y, test_size=0), case.peers, False, auto_assign=False)
    data.set_assignments(np.split(np.arange(len(y)), case.peers), None)
    handler = TorchModelHandler(Mlp(), torch.optim.SGD, {"lr": LR}, torch.nn.CrossEntropyLoss(), batch_size=BATCH)
    edges = StaticP2PNetwork(case.peers, nx.to_numpy_array(graph(case)))
    nodes = GossipNode.generate(data, edges, handler, TICKS, sync=True)
    simulator = GossipSimulator(nodes, data, TICKS, AntiEntropyProtocol.PUSH)
    laps = Laps()
    simulator.add_receiver(laps)
    simulator.init_nodes(SEED)
    simulator.start(case.rounds)
    simulator.remove_receiver(laps)
    return statistics.mean(np.diff(laps.ends)[case.warm - 1 :])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--root", type=Path, required=True)
    arguments.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    given = arguments.parse_args()
    torch.set_num_threads(1)
    print(json.dumps({name: simulated(CASES[name], given.root) for name in given.cases}))


if __name__ == "__main__":
    main()
