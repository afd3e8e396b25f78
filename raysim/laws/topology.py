"""The laws of policies, by which clients are picked, and of topologies, by which peers are neighbours."""

import pickle
from typing import Any

import numpy as np

from raysim.laws.runs import RUNS
from raysim.laws.subject import Broken, Groups, Subject
from raysim.parts.process import isolated
from raysim.parts.rng import seed_globals
from raysim.world import Candidates, Reports
from raysim.world.topology import Topology, require_graph

IDLE_CLIENTS = 8
IDLE = ([3], [0, 2, 5, 7], list(range(IDLE_CLIENTS)))


def picks_are_idle_clients(subject: Subject) -> None:
    """It picks idle clients, none of them twice, and at most as many as are wanted."""
    for wanted, idle in _asked_picks():
        picked = _picked(subject, wanted, idle)
        if not set(picked) <= set(idle) or len(set(picked)) < len(picked) or len(picked) > wanted:
            raise Broken(f"pick: must return at most {wanted} of {idle}, none of them twice, got {picked}")


def candidates_stay_as_they_are(subject: Subject) -> None:
    """It changes nothing of what it is told of clients."""
    for wanted, idle in _asked_picks():
        told = _candidates(idle)
        subject.made.pick(told, wanted, np.random.default_rng(0))
        if pickle.dumps(told) != pickle.dumps(_candidates(idle)):
            raise Broken("pick: must not change what it is told of the candidates, and does; take a copy")


def _asked_picks() -> list[tuple[int, list[int]]]:
    """Returns how many clients are wanted of which idle ones."""
    return [(wanted, idle) for wanted in (1, 3, IDLE_CLIENTS) for idle in IDLE]


def _picked(subject: Subject, wanted: int, idle: list[int]) -> list[int]:
    return list(map(int, subject.made.pick(_candidates(idle), wanted, np.random.default_rng(0))))


def _candidates(idle: list[int]) -> Candidates:
    """Returns what is known of clients who have 1, 2, ... samples, and labels and numbers of picks that differ."""
    numbers = np.arange(IDLE_CLIENTS)
    labels = (numbers[:, None] + 1) * (numbers[:, None] % 3 == np.arange(3))
    reports = Reports.none(IDLE_CLIENTS)
    for client in range(0, IDLE_CLIENTS, 2):
        reports.set(client, loss=1.0 + client % 3, round=client % 4, duration=2.0, staleness=1.0)
    return Candidates(np.array(idle), numbers + 1, numbers % 3, 4, reports, labels)


POLICY: Groups = (
    (picks_are_idle_clients,),
    (candidates_stay_as_they_are,),
    *RUNS,
)


def topology(subject: Subject) -> Topology:
    """Returns the topology of the trial, which is the part itself or has its weights."""
    found = subject.scenario.topology
    assert found is not None
    return found


def its_graph_is_one_of_peers(subject: Subject) -> None:
    """Its graph is of all peers, without loops, directed as it says, and connected unless `connected` says no."""
    graph = topology(subject).graph(subject.clients, np.random.default_rng(0))
    try:
        require_graph(topology(subject), graph, subject.clients)
    except ValueError as error:
        raise Broken(str(error)) from error


def the_same_seed_gives_the_same_graph(subject: Subject) -> None:
    """A seed decides the graph, whatever the global generators hold."""
    edges = []
    for seed in (1, 2):
        with isolated():
            seed_globals(seed, "graph")  # so that draws from the global generators show
            graph: Any = topology(subject).graph(subject.clients, np.random.default_rng(0))
        edges.append(sorted(map(sorted, graph.edges)))
    if edges[0] != edges[1]:
        raise Broken("graph: must be the same for the same generator, and differs; draw from the generator given")


def weights_follow_degrees(subject: Subject) -> None:
    """The weights of any pair of degrees are at least 0, and never let a peer give away more than all."""
    for own in range(1, 8):
        for other in range(1, 8):
            weight = subject.made.weight(own, other, 7)
            if not 0 <= own * weight <= 1 + 1e-9:
                text = f"must be between 0 and 1 / {own}, got {weight!r}"
                raise Broken(f"weight, a peer with {own} neighbours and one with {other}: {text}")


TOPOLOGY: Groups = (
    RUNS[0],
    (its_graph_is_one_of_peers,),
    (the_same_seed_gives_the_same_graph,),
    *RUNS[1:],
)
WEIGHTS: Groups = ((weights_follow_degrees,), *RUNS)
