"""Peers that come and go: who trains, sends and hears, what waits, and who is evaluated."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Raw, Simulate
from peers_runs import COMING, GOSSIP, centers, of_all, peers

import raysim
from raysim.parts.errors import ScenarioError
from raysim.world import World
from raysim.world.clock import Horizon
from raysim.world.gossip_timeline import GossipTimeline
from raysim.world.rounds_timeline import RoundsTimeline
from raysim.world.topology import Complete

SECOND: Raw = {"delay": {"name": "constant", "value": 1.0, "unit": "seconds"}}
X = [[1.0], [2.0], [6.0]]


def trace(folder: Path, rows: str) -> Raw:
    path = folder / "there.csv"
    path.write_text(f"client,on,off\n{rows}")
    return {"name": "trace", "path": str(path), "period": 100}


def test_those_who_stay_agree_on_their_mean_and_the_state_of_others_waits(simulate: Simulate, tmp_path: Path) -> None:
    """Peer 1 with 2 is away but from 50 s to 52 s: 1 and 6 agree on 3.5 before, and all on 3 after."""
    world = {**SECOND, "availability": trace(tmp_path, "0,0,100\n1,50,52\n2,0,100\n")}
    raw = centers(X, 10, topology="complete", world=world)
    result = simulate(raw)
    assert result.vectors()["w"][:, 0].tolist() == [3.5, 2.0, 3.5]
    assert of_all(result, "present") == [2.0] * 10
    alone = result.pandas("evaluations").query("subject == 'peer'")
    assert set(alone.member) == {0, 2}
    assert set(result.pandas("updates").client) == {0, 2}
    raw["run"]["rounds"] = 60
    result = simulate(raw)
    assert result.vectors()["w"][:, 0].tolist() == pytest.approx([3.0] * 3)
    assert [round for round, there in enumerate(of_all(result, "present")) if there == 3] == [50, 51]


def test_a_peer_hands_over_what_it_has_and_comes_back_with_nothing(simulate: Simulate, tmp_path: Path) -> None:
    """Peer 1 goes after 1 s, before which there are no links, and hands 2 over to its only neighbour. So two share 9,
    and three once it is back at 50 s."""
    links = tmp_path / "links.csv"
    links.write_text("source,target,from,to\n0,2,1,100\n2,1,1,100\n")
    there = trace(tmp_path, "0,0,100\n1,0,1\n1,50,100\n2,0,100\n")
    world = {**SECOND, "availability": there, "links": str(links), "leave": "hand_over"}
    raw = centers(X, 2, topology="line", world=world, algorithm="toys_peers:PushSum")
    raw["topology"] = {"name": "edges", "edges": [[0, 2], [2, 1]]}
    assert simulate(raw).vectors()["w"][:, 0].tolist() == pytest.approx([0.5 * 1 + 0.5 * 6, 0.0, 0.5 * 1 + 0.5 * 6 + 2])
    raw["run"]["rounds"] = 40
    assert simulate(raw).vectors()["w"][:, 0].tolist() == pytest.approx([4.5, 0.0, 4.5])
    raw["run"]["rounds"] = 99
    assert simulate(raw).vectors()["w"][:, 0].tolist() == pytest.approx([3.0] * 3)
    with pytest.raises(ScenarioError, match=r"world\.leave: must be wait for decfedavg, which does not push"):
        raysim.parse_scenario({**raw, "algorithm": "decfedavg"})
    with pytest.raises(ScenarioError, match=r"world\.join: must be first or copy for decfedavg, which does not push"):
        raysim.parse_scenario({**raw, "algorithm": "decfedavg", "world": {**world, "leave": "wait", "join": "empty"}})


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize(("join", "limit", "mass"), [("empty", 3.0, 3), ("copy", 3.0, 4), ("first", 5.25, 4)])
def test_a_peer_joins_with_nothing_or_a_copy_or_the_first_model(
    simulate: Simulate, tmp_path: Path, join: str, limit: float, mass: int, synchronous: bool
) -> None:
    """Peer 1 hands 2 over to peer 2, so two peers agree on 9 / 3 before peer 3 comes at 30.5 s, whose own is 12."""
    there = trace(tmp_path, "0,0,100\n1,0,0.5\n2,0,100\n3,30.5,100\n")
    topology = {"name": "edges", "edges": [[0, 2], [2, 1], [2, 3], [0, 3]]}
    world = {**SECOND, "availability": there, "leave": "hand_over", "join": join, "synchronous": synchronous}
    raw = centers([*X, [12.0]], 60, topology=topology, world=world, algorithm="toys_peers:Ratios")
    result = simulate(raw)
    assert result.vectors()["w"][[0, 2, 3], 0].tolist() == pytest.approx([limit] * 3, rel=1e-5)
    if synchronous:  # else some is under way
        assert of_all(result, "mass")[-1] == pytest.approx(mass, rel=1e-6)
    assert {2.0, 3.0} <= set(of_all(result, "present"))


@pytest.mark.parametrize("synchronous", [True, False])
def test_what_is_copied_is_the_model_of_a_peer_that_is_heard(
    simulate: Simulate, tmp_path: Path, synchronous: bool
) -> None:
    """Peer 0 with 1 and peer 1 with 6 meet from 5 s on, when peer 2 has come with a copy of 6: the mean is 13 / 3."""
    links = tmp_path / "links.csv"
    links.write_text("source,target,from,to\n1,2,0,100\n0,1,5,100\n0,2,5,100\n")
    there = trace(tmp_path, "0,0,100\n1,0,100\n2,2.5,100\n")
    world = {**SECOND, "availability": there, "links": str(links), "join": "copy", "synchronous": synchronous}
    raw = centers([[1.0], [6.0], [20.0]], 60, topology="complete", world=world, algorithm="toys_peers:Ratios")
    assert simulate(raw).vectors()["w"][:, 0].tolist() == pytest.approx([13 / 3] * 3, rel=1e-5)


def test_training_pauses_while_a_peer_is_away(tmp_path: Path) -> None:
    """Peer 0 trains for 2 s each time, and is away from 3 to 7 s and from 8 s to 9 s: it mixes at 2, 9, 11 and 13 s."""
    delay = {"name": "constant", "value": 2.0, "unit": "seconds"}
    there = trace(tmp_path, "0,0,3\n0,7,8\n0,9,100\n1,0,100\n")
    world = World.model_validate({"synchronous": False, "delay": delay, "availability": there})
    rounds = list(GossipTimeline(world, Complete(), 2, Horizon(5, every_rounds=1), seed=0))
    mixed = [mix for exchanged in rounds for mix in exchanged.mixed]
    assert [mix.time for mix in mixed if mix.peer == 0] == [2.0, 9.0, 11.0, 13.0]
    assert [mix.time for mix in mixed if mix.peer == 1] == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    sent = {mix.time: [message.target for message in mix.sent] for mix in mixed if mix.peer == 1}
    assert [time for time, targets in sent.items() if not targets] == [4.0, 6.0, 8.0]
    assert [exchanged.present for exchanged in rounds] == [(0, 1), (1,), (0, 1), (0, 1), (0, 1)]


def test_a_round_begins_when_somebody_is_there(tmp_path: Path) -> None:
    there = trace(tmp_path, "0,5,6\n1,5.5,9\n")
    world = World.model_validate({**SECOND, "availability": there})
    rounds = list(RoundsTimeline(world, Complete(), 2, Horizon(3, every_rounds=1), seed=0))
    assert [(exchanged.time, exchanged.present) for exchanged in rounds] == [(6.0, (0,)), (7.0, (1,)), (8.0, (1,))]
    assert [mix.serial for exchanged in rounds for mix in exchanged.mixed] == [0, 1, 2]


@pytest.mark.parametrize("synchronous", [True, False])
def test_the_mass_of_a_push_sum_is_told_with_each_evaluation(simulate: Simulate, synchronous: bool) -> None:
    """All peers have 1, so what is mixed is the weights themselves. Without a notice, lost ones are gone."""
    topology = {"name": "exponential", "one_peer": True, "period_s": 3.0}
    world = {**GOSSIP, "synchronous": synchronous, "availability": COMING["availability"], "loss": 0.1}
    raw = centers([[1.0]] * 6, 8, topology=topology, world=world, algorithm="toys_peers:PushSum")
    result = simulate(raw)
    mass = of_all(result, "mass")
    assert mass[-1] == pytest.approx(result.vectors()["w"].sum(), rel=1e-5) and mass[-1] < 5.9
    kept = simulate({**raw, "world": {**world, "on_loss": "kept"}})
    assert synchronous is (of_all(kept, "mass")[-1] == pytest.approx(6, rel=1e-6))


def test_mass_that_is_lost_on_a_graph_that_stays_is_told(simulate: Simulate) -> None:
    world = {**GOSSIP, "synchronous": True, "loss": 0.1}
    raw = centers([[1.0]] * 6, 8, topology="exponential", world=world, algorithm="toys_peers:PushSum")
    result = simulate(raw)
    mass = of_all(result, "mass")
    assert mass[-1] == pytest.approx(result.vectors()["w"].sum(), rel=1e-5) and mass[-1] < 5.9
    assert "second_eigenvalue" not in set(result.pandas("evaluations").metric)
    assert "mass" not in set(simulate({**raw, "world": {**world, "on_loss": "kept"}}).pandas("evaluations").metric)


@pytest.mark.parametrize(
    ("algorithm", "join", "synchronous"),
    [("decfedavg", "copy", True), ("sgp", "empty", False), ("swift", "copy", False)],
)
def test_peers_who_come_and_go_get_the_same_bits_in_chunks_of_any_size(
    simulate: Simulate, algorithm: str, join: str, synchronous: bool
) -> None:
    world = {**GOSSIP, "synchronous": synchronous, "availability": COMING["availability"], "join": join}
    raw = peers(algorithm=algorithm, topology={"name": "matching", "period_s": 2.0}, world=world, run__rounds=4)
    one, other = (simulate({**raw, "resources": {"chunk": chunk}}) for chunk in (1, 7))
    assert np.array_equal(one.vectors()["w"], other.vectors()["w"])
    first = simulate({**raw, "world": {**world, "join": "first"}})
    assert not np.array_equal(one.vectors()["w"], first.vectors()["w"])


def test_a_trace_of_availability_needs_seconds(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"world\.availability: a trace is in seconds"):
        raysim.parse_scenario(peers(world={"availability": trace(tmp_path, "0,0,9\n")}, data__clients=1))
