"""What peers cannot do is said before anything runs."""

import pytest
from conftest import Raw
from peers_runs import GOSSIP, peers

import raysim
from raysim.parts.errors import ScenarioError


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            {"topology": None},
            "topology: must be given, because decfedavg has no server; say which peers are neighbours",
        ),
        ({"topology": "rings"}, "topology.name: must be one of 'ring', "),
        ({"data__clients": 1}, "topology: must have at least two peers, got 1"),
        (
            {"world": {"dispatch": {"per_round": 3}}},
            "world.dispatch: must not be given, because decfedavg has no server",
        ),
        (
            {"world": {"dropout": {"probability": 0.1}}},
            "world.dropout: must not be given, because decfedavg has no server",
        ),
        (
            {"server_data": {"name": "in_domain", "samples": 9}},
            "server_data: must not be given, because decfedavg has no",
        ),
        ({"world": {"delay": {"name": "constant", "value": 1}}}, "world.delay: must be in seconds for peers, got"),
        ({"world": {"synchronous": False}}, "world.delay: must be in seconds, and not zero, for peers that do not"),
        (
            {"world": {"synchronous": False, "delay": {"name": "constant", "value": 0, "unit": "seconds"}}},
            "world.delay: must be in seconds, and not zero, for peers that do not wait, got `constant` of zero seconds",
        ),
        ({"world": {"edge_delay": {"name": "constant", "value": 1}}}, "world.edge_delay: needs a delay in seconds"),
        ({"topology": {"name": "edges", "edges": [[0, 1], [1, 2, 3]]}}, "topology.edges.1: must be two peers, got [1,"),
        (
            {"topology": {"name": "erdos_renyi", "probability": 0.12, "redraw_every": 3}, "run__rounds": 99},
            "topology: erdos_renyi: from round 36 on, a graph of 10 peers must be connected, but none of 100 drawn was",
        ),
        ({"run__evaluate_clients": 11}, "run.evaluate_clients: must be at most the number of peers, 10, got 11; lower"),
        ({"resources__shards": 2}, "resources.shards: is for servers only, and decfedavg has none, got 2; leave it"),
        ({"algorithm": "d_psgd"}, "local.steps: must be 1 for d_psgd, which takes one plain step a round, got epochs;"),
        (
            {"algorithm": "d_psgd", "local": {"steps": 1, "optimizer": {"name": "sgd", "momentum": 0.9}}},
            "local.optimizer.momentum: must be 0 for d_psgd, which takes one plain step a round, got 0.9; leave it out",
        ),
        ({"algorithm": "cdsgd", "local": {"steps": 1, "optimizer": "adam"}}, "local.optimizer: must be sgd for cdsgd,"),
        ({"topology": {"name": "random", "redraw_every": 2}, "world": GOSSIP}, "topology: must not be redrawn by"),
        (
            {"world": {"delay": {"name": "scripted", "unit": "seconds", "delays": [[1.0] * 6] * 9 + [[1.0] * 5]}}},
            "world.delay.delays: must hold a delay for each of 6 rounds, got fewer for peers [9]; add the others",
        ),
        ({"algorithm": {"name": "sgp", "overlap": 1}, "world": GOSSIP}, "algorithm.overlap: must be 0 for peers that"),
        ({"algorithm": "push_pull", "world": GOSSIP, "local__steps": 1}, "world.synchronous: must be true for"),
        *(
            (
                {"algorithm": name, "world": GOSSIP, "local__steps": 1},
                f"world.synchronous: must be true for {name}, whose corrections sum to zero only if all mix at once, "
                "got false; leave it out, or take d_psgd",
            )
            for name in ("extra", "exact_diffusion")
        ),
        ({"algorithm": "ad_psgd"}, "world.synchronous: must be false for ad_psgd, whose peers ask a neighbour when"),
        ({"algorithm": "ad_psgd", "world": GOSSIP, "uplink": [{"name": "half"}]}, "uplink: must be left out for"),
        ({"algorithm": "fedavg", "world": {"dispatch": {"per_round": 3}}}, "topology: goes with algorithms without a "),
        ({"algorithm": "fedavg", "topology": None}, "world.dispatch: must have exactly one of per_round"),
        (
            {"algorithm": "fedavg", "topology": None, "world": {"dispatch": {"per_round": 3}, "loss": 0.5}},
            "world.loss: is for peers only, and fedavg has a server, got 0.5; leave it out",
        ),
    ],
)
def test_a_scenario_that_cannot_run_says_why(more: Raw, told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        raysim.parse_scenario(peers(**{"algorithm": "decfedavg", **more}))
    assert told in str(caught.value)
    assert len(caught.value.problems) == 1


def test_an_unknown_key_names_the_parts_that_have_it() -> None:
    with pytest.raises(ScenarioError, match=r"topology.directed: unknown key \(a key of edges"):
        raysim.parse_scenario(peers(topology={"name": "random", "directed": True}))
