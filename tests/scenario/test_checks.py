"""Parts of a scenario that are right alone must fit together."""

from typing import Any

import pytest
from conftest import Raw, digits, quadratic
from peers_runs import GOSSIP, peers
from refusals import compute, problem

from raysim import parse_scenario

# --- with a server ----------------------------------------------------------------------------------------------------


SECONDS = {"name": "constant", "value": 1, "unit": "seconds"}
NORMED: Raw = {"name": "resnet", "depth": 14}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"world__dispatch": {"per_round": 31}}, "world.dispatch.per_round: must be at most the number of clients,"),
        ({"world__dispatch": {"concurrency": 31}}, "world.dispatch.concurrency: must be at most the number of clients"),
        ({"world__dispatch": {"picks": [[0]]}}, "world.dispatch.picks: must have a list for each of 8 rounds, got 1"),
        ({"world__dispatch": {"picks": [[-1], [30]] * 4}}, "must be numbers of clients, 0 to 29, got [-1, 30]"),
        ({"world__dispatch": {"picks": [[0, 1]] * 7 + [[2, 3, 2]]}}, "world.dispatch.picks.7: must name a client once"),
        (
            {"world": {"dispatch": {"picks": [[0, 1], [0]] * 4}, "delay": {"name": "scripted", "delays": [[0.0] * 7]}}},
            "world.delay.delays: must hold a delay for every time that a client is picked, got 7 of 8 for client 0, "
            "0 of 4 for client 1; add the others",
        ),
        ({"world__dropout": {"probability": 1}}, "world.dropout.probability: must be less than 1, or no update ever"),
        (
            {"world__availability": {"name": "periodic", "period": 1, "slot": 0.1}},
            "world.availability: `on` * `period` must be at least a round, or some clients are never there, got 0.5",
        ),
        (
            {"algorithm": "fedat"},
            "world.dispatch: must have per_tier and tiers, because fedat has rounds in each tier,",
        ),
        ({"world": {"dispatch": {"per_tier": 4, "tiers": 8}, "delay": SECONDS}}, "world.dispatch.per_tier: must be at"),
        ({"world": {"dispatch": {"per_tier": 4, "tiers": 2}}}, "world: dispatch.per_tier needs a delay in seconds,"),
        ({"world": {"dispatch": {"per_tier": 4}, "delay": SECONDS}}, "must have both of per_tier and tiers, or none"),
        ({"run__evaluate_clients": 3}, "run.evaluate_clients: needs samples of each client's own to test on"),
        ({"data__partition": {"name": "classes", "per_client": 11}}, "data: partition classes: `per_client` must be"),
        ({"model": {"name": "mlp", "norm": "frozen"}}, "model.norm: must be average, because mlp has no normalisation"),
        ({"model": {**NORMED, "norm": "local"}}, "model.norm: must be average or frozen for fedbuff, whose clients"),
        (
            {"model": {**NORMED, "norm": "local"}, "algorithm": "fedbabu", "world": {"dispatch": {"per_round": 6}}},
            "got local; take one of fedeq, fedper, fedrep, lg_fedavg: with fedper, it is FedBN",
        ),
        ({"model": "vector"}, "model.name: vector takes functions, and digits holds images"),
        (
            {"algorithm": "fedavg", "world": {"dispatch": {"concurrency": 3}, "delay": SECONDS}},
            "world.dispatch: must be per_round or picks, because fedavg steps at the end of rounds, got concurrency",
        ),
    ],
)
def test_parts_that_are_right_alone_must_fit_together(change: Raw, expected: str) -> None:
    assert expected in problem(digits(**change))


@pytest.mark.parametrize(
    ("delay", "dispatch", "least"),
    [
        ({"name": "half_normal", "sigma": 5, "rounding": "ceil"}, {}, 1),
        ({"name": "uniform", "low": 1.5, "high": 2, "rounding": "ceil"}, {}, 2),
        ({"name": "constant", "value": 1}, {}, 1),
        ({"name": "constant", "value": 0.5, "rounding": "nearest"}, {}, 1),
        ({"name": "scripted", "delays": [[2.0], [3.5]]}, {}, 2),
        ({"name": "uniform", "low": 9, "high": 10, "unit": "seconds"}, {"round_s": 9}, 9),
        (compute() | {"latency_s": 7}, {"round_s": 7}, 7),
    ],
)
def test_an_algorithm_that_discards_late_updates_needs_some_in_time(delay: Raw, dispatch: Raw, least: int) -> None:
    """One that keeps them needs some before the end."""
    world = {"dispatch": {"per_round": 3, **dispatch}, "delay": delay}
    end = dispatch.get("round_s", 1)
    unit = "seconds" if dispatch else "rounds"
    assert problem(digits(algorithm="fedavg", world=world)) == (
        f"world.delay: must allow delays of less than {end} {unit}, because fedavg discards what arrives after its "
        f"round, got delays of at least {least}"
    )
    assert parse_scenario(digits(algorithm="fedasync", world=world))
    assert "because the run ends then" in problem(digits(algorithm="fedasync", world=world, run={"rounds": 1}))


@pytest.mark.parametrize(
    "delay",
    [
        "none",
        {"name": "half_normal", "sigma": 20},
        {"name": "constant", "value": 0, "rounding": "ceil"},
        {"name": "uniform", "low": 0.5, "high": 9},
        {"name": "log_normal", "median": 9, "sigma": 1},
        {"name": "log_normal", "median": 9, "sigma": 0, "unit": "seconds"},
        compute(latency_s=3.0),
    ],
)
def test_what_may_be_in_time_is_let_through(delay: Any) -> None:
    assert parse_scenario(digits(algorithm="fedavg", world__delay=delay))


def test_quadratic_data_has_no_samples_for_a_server() -> None:
    raw = quadratic([1.0], "fedavg", {"dispatch": {"per_round": 1}}, 1)
    raw["server_data"] = {"name": "in_domain", "samples": 1}
    assert problem(raw) == "server_data: the quadratic data has no samples for the server; leave it out"


# --- without one ------------------------------------------------------------------------------------------------------


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
def test_what_peers_cannot_do_is_said_before_anything_runs(more: Raw, told: str) -> None:
    assert told in problem(peers(**{"algorithm": "decfedavg", **more}))


def test_an_unknown_key_names_the_parts_that_have_it() -> None:
    told = problem(peers(topology={"name": "random", "directed": True}))
    assert told.startswith("topology.directed: unknown key (a key of edges")
