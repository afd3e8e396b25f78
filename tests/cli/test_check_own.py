"""`raysim check --data` tells what is wrong with own delays, availability, policies and algorithms before a run."""

from pathlib import Path

import pytest
from command_line import command, write
from conftest import Raw, digits

MODULE = """
import math
import networkx as nx
import numpy as np
from raysim.algorithms import DecFedAvg
from raysim.algorithms import FedAvg
from raysim.metrics import Metric
from raysim.uplink import Decoded, Uplink
from raysim.world import Availability, Delay, EdgeDelay, Topology, Weighting

class Backwards(Delay):
    name: str = "backwards"
    unit: str = "seconds"
    def duration(self, stream, client, number, cost):
        return -1.0

class Words(Backwards):
    def duration(self, stream, client, number, cost):
        return "2"

class Few(Availability):
    name: str = "few"
    def mask(self, seed, clients, time):
        return np.ones(3, dtype=bool)
    def next_change(self, time):
        return time + 1

class Stands(Few):
    def mask(self, seed, clients, time):
        return np.zeros(clients, dtype=bool)
    def next_change(self, time):
        return time

class Graph(Topology):
    name: str = "graph"
    kind: str
    def graph(self, peers, generator):
        if self.kind == "apart":
            return nx.empty_graph(peers)
        if self.kind == "directed":
            return nx.cycle_graph(peers, create_using=nx.DiGraph)
        if self.kind == "loops":
            return nx.Graph([*nx.cycle_graph(peers).edges, (1, 1)])
        return nx.cycle_graph(peers + 2)

class Early(EdgeDelay):
    name: str = "early"
    @property
    def bounds(self):
        return 0, math.inf
    def draw(self, generator):
        return -1.0

class Cut(Uplink):
    name: str = "cut"
    def send(self, vector, kept, at):
        return Decoded(vector[:5])

class Doubled(Uplink):
    name: str = "doubled"
    def send(self, vector, kept, at):
        return Decoded(vector.mul_(2))

class Sized(Cut):
    def size(self, before):
        return 8

class Up(Metric):
    name: str = "up"
    def direction(self):
        return True
    def compute(self, outputs, labels):
        return 1.0

class Forgets(FedAvg):
    name: str = "forgets"
    def step(self, state, arrivals, updates, task):
        return {"w": state["momentum"]}

class LacksAnArgument(DecFedAvg):
    name: str = "lacks_an_argument"
    def mix(self, task, inbox):
        return {}

class Weighs(Weighting):
    name: str = "weighs"
    kind: str
    def weight(self, own, other, largest):
        return {"much": 0.6, "negative": -0.1, "nan": math.nan, "nothing": None}[self.kind]
"""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"world__delay": "own_wrongs:Backwards"}, "world.delay.duration: must return a finite number of seconds, 0"),
        ({"world__delay": "own_wrongs:Words"}, "world.delay.duration: must return a finite number of seconds, 0 or mo"),
        ({"world__availability": "own_wrongs:Few"}, "world.availability.mask: must return an array of bool (6,), got "),
        ({"world__availability": "own_wrongs:Stands"}, "world.availability.next_change: must return a time after 0,"),
        ({"world__dispatch__policy": "toys_parts:Twice"}, "world.dispatch.policy: toys_parts:Twice must pick at most "),
        (
            {"uplink": ["own_wrongs:Cut"]},
            "uplink.0: Cut.send: must return Decoded(vector), with a vector of torch.float",
        ),
        ({"uplink": ["own_wrongs:Doubled"]}, "uplink.0: Doubled.send: must not change the vector in place; copy it"),
        ({"uplink": ["own_wrongs:Sized"]}, "uplink.0: Sized.size: must return a Size of at least 0 bits, as before"),
        ({"run__metrics": ["own_wrongs:Up"]}, "run.metrics.0.name: must name a class whose `direction` is a @property"),
        ({"algorithm": "own_wrongs:Forgets"}, "algorithm: must do a step, got KeyError: 'momentum' - state has 'buff"),
        ({"algorithm": "toys_lawless:OneWeight"}, "algorithm: OneWeight.weigh ("),
        ({"algorithm": "toys_lawless:Misspells"}, "algorithm: must update a client, got TypeError:"),
        ({"algorithm": "toys_lawless:NoModelAtFirst"}, "algorithm: NoModelAtFirst.init: the server's state must hold"),
    ],
)
def test_what_is_wrong_with_own_parts_is_told_before_a_run(
    change: Raw, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_wrongs.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    raw = digits(**change)
    path = write(tmp_path, {**raw, "data": {"name": "digits", "clients": 6, "partition": "iid"}})
    answer = command("check", path, "--data")
    assert answer.exit_code == 2
    (line,) = answer.stderr.splitlines()
    assert line.removeprefix(f"{path}: ").startswith(expected)


PEERS: Raw = {
    "name": "peers",
    "data": {"name": "digits", "clients": 6, "partition": "iid"},
    "model": "linear",
    "algorithm": "decfedavg",
    "topology": "ring",
    "world": {"synchronous": False, "delay": {"name": "constant", "value": 1, "unit": "seconds"}},
    "run": {"rounds": 2},
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"topology": {"kind": "apart"}}, "`graph` must be connected, but no way leads from peer 0 to [1, 2, 3, 4, 5]"),
        ({"topology": {"kind": "directed"}}, "must return an undirected networkx graph, got DiGraph"),
        ({"topology": {"kind": "loops"}}, "`graph` must connect a peer with another, got [1] with themselves"),
        ({"topology": {"kind": "more"}}, "`graph` must have the peers 0 to 5 as nodes, got 8, such as 0, 1, 2, 3, 4"),
        (
            {"algorithm": "toys_lawless:PeerSendsNothing"},
            "algorithm: PeerSendsNothing.local: must return two",
        ),
        ({"algorithm": "toys_lawless:PeerForgets"}, "algorithm: PeerForgets.mix: the state must have the entries"),
        (
            {"algorithm": "own_wrongs:LacksAnArgument"},
            "algorithm.name: must name a class whose `mix` takes (self, task, draft, inbox), got 'own_wrongs:LacksAnAr"
            "gument', where it takes (self, task, inbox) (",
        ),
        *(
            ({"topology": {"name": "ring", "weights": {"name": "own_wrongs:Weighs", "kind": kind}}}, expected)
            for kind, expected in {
                "much": "topology.weights: own_wrongs:Weighs.weight: weights of a peer's neighbours must be at least "
                "0 and sum to at most 1, got 0.6, 0.6 for the 2 neighbours of peer 0",
                "negative": "got -0.1, -0.1 for the 2 neighbours of peer 0",
                "nan": "got nan, nan for the 2 neighbours of peer 0",
                "nothing": "topology.weights: own_wrongs:Weighs.weight: must return numbers, got NoneType for peer 0",
            }.items()
        ),
        ({"world": {**PEERS["world"], "edge_delay": "own_wrongs:Early"}}, "world.edge_delay: a message must take a"),
    ],
)
def test_what_is_wrong_with_parts_of_peers_is_told(
    change: Raw, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_wrongs.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    if "kind" in change.get("topology", {}):
        change = {"topology": {"name": "own_wrongs:Graph", **change["topology"]}}
    answer = command("check", write(tmp_path, {**PEERS, **change}), "--data")
    assert answer.exit_code == 2
    assert expected in answer.stderr
