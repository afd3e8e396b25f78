"""The engine for algorithms without a server: who hears whom when, and that nothing else decides a bit."""

import copy
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Raw, Simulate, digits, override
from torch.nn.modules.module import register_module_forward_pre_hook
from witness import execute, worker_of

import raysim
from actors import InlinePool, Job, Request, Value
from actors.job import values_of
from raysim.algorithms import ALGORITHMS, Peer
from raysim.engine.execution import Execution
from raysim.engine.peers.jobs import cut
from raysim.engine.progress import Progress
from raysim.errors import ScenarioError
from raysim.workers.peer_requests import MixRequest
from raysim.workers.workbench import Workbench
from raysim.world import World
from raysim.world.mixing import NeighbourMean
from raysim.world.network import Mail, Sent
from raysim.world.peers_timeline import Mixed, PeersTimeline
from raysim.world.random_topology import Regular
from raysim.world.topology import Line, Ring

NAMES = [a.model_fields["name"].default for a in ALGORITHMS if issubclass(a, Peer)]
SECONDS = {"name": "log_normal", "median": 1.0, "sigma": 0.5, "unit": "seconds"}
GOSSIP = {"synchronous": False, "delay": SECONDS, "edge_delay": {"name": "exponential", "mean": 0.3}, "loss": 0.2}


def peers(**more: Any) -> Raw:
    """A small scenario on real data."""
    raw = digits(algorithm="toys_peers:Averaging", topology="ring", world={}, data__clients=10, run__rounds=6)
    return override(raw, **more)


def centers(vectors: Any, rounds: int, **more: Any) -> Raw:
    """Peers that start from vectors of their own, and only mix them."""
    return {
        "name": "gossip",
        "data": {"name": "quadratic", "centers": vectors},
        "model": "vector",
        "algorithm": "toys_peers:Gossip",
        "topology": "ring",
        "run": {"rounds": rounds, "evaluate_every": 1},
        **more,
    }


def of_all(result: raysim.Result, metric: str) -> list[float]:
    """A metric of all peers, by round."""
    rows = result.pandas("evaluations").query("subject == 'peers' and metric == @metric")
    return rows.value.tolist()


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_without_training_peers_agree_as_fast_as_the_second_eigenvalue_of_w(simulate: Simulate) -> None:
    """A ring of six with weights 1/3: the start is an eigenvector of 1/3 + 2/3 cos(2 pi / 6) = 2/3."""
    start = [float(np.cos(2 * np.pi * peer / 6)) for peer in range(6)]
    apart = of_all(simulate(centers(start, 12)), "consensus")
    assert apart[0] == pytest.approx(2 / 3 * np.sqrt(np.mean(np.square(start))), rel=1e-6)
    assert np.divide(apart[1:], apart[:-1]) == pytest.approx([2 / 3] * 11, rel=1e-5)


def test_a_graph_that_is_drawn_anew_has_other_edges_and_the_mean_stays(simulate: Simulate) -> None:
    topology = {"name": "random", "redraw_every": 2}
    result = simulate(centers([1.0, 2.0, 3.0, 4.0, 5.0, 9.0], 6, topology=topology))
    edges = (
        result.pandas("exchanges").groupby("round").apply(lambda rows: set(zip(rows.source, rows.target, strict=True)))
    )
    assert edges[0] == edges[1] and edges[2] == edges[3] and edges[4] == edges[5]
    assert edges[0] != edges[2] != edges[4]
    assert result.vectors()["w"].mean() == pytest.approx(4.0, rel=1e-6)


def test_in_seconds_a_round_ends_with_its_last_message() -> None:
    """Trainings take 1 and 3 s, then 2 and 1 s; messages half a second."""
    delay = {"name": "scripted", "unit": "seconds", "delays": ((1.0, 2.0), (3.0, 1.0))}
    world = World.model_validate({"delay": delay, "edge_delay": {"name": "constant", "value": 0.5}})
    rounds = list(PeersTimeline(world, Line(), 2, 2, 1, seed=0))
    assert [exchanged.time for exchanged in rounds] == [3.5, 6.0]
    assert [[mixed.trained for mixed in exchanged.mixed] for exchanged in rounds] == [[1.0, 3.0], [5.5, 4.5]]
    assert all(heard.age == 0 for exchanged in rounds for mixed in exchanged.mixed for heard in mixed.inbox)


def test_computed_delays_count_training_mixing_and_messages(simulate: Simulate) -> None:
    """32 -> 10 on a ring: 3 forward passes of 640 FLOPs a sample; 330 parameters to and from two neighbours."""
    speeds = {key: {"name": "constant", "value": value} for key, value in FLOPS_AND_BYTES.items()}
    delay = {"name": "compute", **speeds}
    raw = peers(algorithm="decfedavg", model={"name": "mlp", "hidden": []}, world={"delay": delay}, run={"rounds": 1})
    raw["data"]["partition"] = "iid"
    result = simulate(raw)
    updates = result.pandas("updates")
    bytes_s = 2 * 650 * 4 * (1 / 1000 + 1 / 2000)
    expected = 3 * 2 * 64 * 10 * updates.samples / 1e6 + bytes_s
    assert updates.arrived_at.to_numpy() == pytest.approx(expected.to_numpy())


FLOPS_AND_BYTES = {"flops_per_s": 1e6, "up_bytes_per_s": 1000, "down_bytes_per_s": 2000}


@pytest.mark.parametrize(
    ("share", "size", "local", "mixing", "each"), [("outputs", 40 * 10, 40, 120, 0), ("parameters", 650, 0, 160, 40)]
)
def test_computed_delays_count_predictions_too(
    simulate: Simulate, share: str, size: int, local: int, mixing: int, each: int
) -> None:
    """Of 40 public inputs: three passes to train on them, one for outputs, of oneself or of each neighbour too."""
    speeds = {key: {"name": "constant", "value": value} for key, value in FLOPS_AND_BYTES.items()}
    raw = peers(
        algorithm={"name": "cmfd", "share": share},
        topology="star",
        public={"samples": 40},
        model={"name": "mlp", "hidden": []},
        world={"delay": {"name": "compute", **speeds}},
        run={"rounds": 1},
    )
    updates = simulate(raw, "--dry").pandas("updates")
    neighbours = np.array([9] + [1] * 9)
    passes = 3 * updates.samples + local + mixing + each * neighbours
    expected = 2 * 64 * 10 * passes / 1e6 + 4 * size * neighbours * (1 / 1000 + 1 / 2000)
    assert updates.arrived_at.to_numpy() == pytest.approx(expected.to_numpy())


def test_a_delay_is_drawn_for_each_message_or_for_each_edge(simulate: Simulate) -> None:
    """Of an edge it is the same both ways; edges differ."""
    for redraw, delays in (("message", 120), ("edge", 10)):
        edge_delay = {"name": "exponential", "mean": 0.3, "redraw": redraw}
        exchanges = simulate(peers(world={"delay": SECONDS, "edge_delay": edge_delay})).pandas("exchanges")
        exchanges["delay"] = (exchanges.arrived_at - exchanges.virtual_time).round(9)
        assert len(exchanges) == 120 and exchanges.delay.nunique() == delays
    edges = exchanges[["source", "target"]].agg(lambda ends: tuple(sorted(ends)), axis=1)
    assert exchanges.groupby(edges).delay.nunique().tolist() == [1] * 10


# --- gossip -----------------------------------------------------------------------------------------------------------


def heard(mixed: Mixed) -> list[tuple[int, int, float]]:
    return [(message.peer, message.number, message.age) for message in mixed.inbox]


def test_gossip_on_a_line_by_hand() -> None:
    """Peers 0 - 1 - 2 train for 1, 2 and 3 s, messages take 0.5 s: six mixes, at 1, 2, 2, 3, 3 and 4 s.

    At 4 s both 0 and 1 are there, but the run is over after the mix of 0.
    """
    delay = {"name": "scripted", "unit": "seconds", "delays": ((1.0,) * 5, (2.0,) * 4, (3.0,) * 3)}
    world = World.model_validate(
        {"synchronous": False, "delay": delay, "edge_delay": {"name": "constant", "value": 0.5}}
    )
    timeline = PeersTimeline(world, Line(weights=NeighbourMean(beta=0.5)), 3, 2, 1, seed=0)
    first, last = rounds = list(timeline)
    assert [exchanged.time for exchanged in rounds] == [2.0, 4.0]
    assert [(m.time, m.peer, m.number, m.began, heard(m)) for m in first.mixed] == [
        (1.0, 0, 0, 0.0, []),
        (2.0, 0, 1, 1.0, []),  # peer 1 sends now, and its message arrives at 2.5
        (2.0, 1, 0, 0.0, [(0, 0, 1.0)]),
    ]
    assert [(m.time, m.peer, m.number, m.began, heard(m)) for m in last.mixed] == [
        (3.0, 0, 2, 2.0, [(1, 0, 1.0)]),
        (3.0, 2, 0, 0.0, [(1, 0, 1.0)]),
        (4.0, 0, 3, 3.0, [(1, 0, 2.0)]),  # still the newest that has arrived
    ]
    assert last.mixed[0].inbox[0].weight == 0.5 and first.mixed[2].inbox[0].weight == 0.25
    assert [(m.next.trains, m.next.kept) for m in (*first.mixed, *last.mixed)] == [
        (True, False),
        (True, True),
        (False, True),  # evaluated after both rounds
        (True, False),
        (False, True),
        (False, True),
    ]
    assert timeline.start == ((True, False), (True, False), (True, True))  # 2 has not mixed after the first round


def test_a_message_that_is_overtaken_is_not_mixed() -> None:
    mail = Mail()
    mail.put(
        [Sent(0, 1, number, sent, arrives) for number, sent, arrives in ((0, 1.0, 5.0), (1, 2.0, 3.0), (2, 3.0, None))]
    )
    assert mail.newest(0, 1, 2.0) is None
    assert mail.newest(0, 1, 3.0) == mail.newest(0, 1, 9.0) == Sent(0, 1, 1, 2.0, 3.0)
    assert mail.held == {(0, 1)}


def test_gossip_in_step_is_rounds(simulate: Simulate) -> None:
    """Where all train for a second and messages take no time, nobody has anything to wait for."""
    delay = {"name": "constant", "value": 1.0, "unit": "seconds"}
    waiting, hasty = (simulate(peers(world={"delay": delay, "synchronous": wait})) for wait in (True, False))
    assert waiting.info["digest"]["model"] == hasty.info["digest"]["model"]
    assert waiting.pandas("updates").virtual_time.tolist() == hasty.pandas("updates").virtual_time.tolist()


def test_gossip_goes_on_until_there_are_rounds_times_peers_mixes(simulate: Simulate) -> None:
    result = simulate(peers(world=GOSSIP))
    updates, steps = result.pandas("updates"), result.pandas("steps")
    assert len(updates) == 60 and steps.used.tolist() == [10] * 6
    assert updates.virtual_time.is_monotonic_increasing
    assert updates.groupby("client").size().nunique() > 1  # fast ones mix more often
    assert updates.groupby("client").version.apply(lambda v: v.tolist() == list(range(len(v)))).all()
    assert (updates.dispatched_at < updates.arrived_at).all()
    assert steps.staleness_max.max() > 0.3
    assert result.pandas("evaluations")["round"].unique().tolist() == [3, 5]


# --- lost messages ----------------------------------------------------------------------------------------------------


def test_who_hears_nobody_keeps_what_it_has(simulate: Simulate) -> None:
    result = simulate(centers([1.0, 5.0, 3.0], 4, world={"loss": 1.0}))
    assert result.vectors()["w"][:, 0].tolist() == [1.0, 5.0, 3.0]
    assert result.info["totals"]["lost"] == result.info["totals"]["sent"] == 24
    assert result.pandas("steps").down_bytes.tolist() == [0] * 4


def test_the_weight_of_a_lost_message_falls_to_the_peer_itself(simulate: Simulate) -> None:
    """Followed with the table of messages: x_i + sum_j W_ij (x_j - x_i) over those that arrived."""
    result = simulate(centers([1.0, 2.0, 4.0, 8.0, 16.0], 10, world={"loss": 0.4}))
    exchanges = result.pandas("exchanges")
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    for _, rows in exchanges.groupby("round"):
        arrived = rows[rows.arrived_at.notna()]
        change = np.zeros(5)
        np.add.at(change, arrived.target, (x[arrived.source] - x[arrived.target]) / 3)
        x = x + change
    assert result.vectors()["w"][:, 0] == pytest.approx(x, rel=1e-6)
    assert len(exchanges) == 100 and 20 < exchanges.arrived_at.isna().sum() < 60
    steps = result.pandas("steps")
    assert (steps.up_bytes == 40).all() and steps.down_bytes.sum() == 4 * exchanges.arrived_at.notna().sum()


# --- the same bits everywhere -----------------------------------------------------------------------------------------


def tables(result: raysim.Result) -> dict[str, pd.DataFrame]:
    """All that does not depend on how the work was cut into tasks, and not on the stopwatch."""
    wall = ["run", "seconds", "worker", "elapsed_s"]
    names = ("steps", "updates", "evaluations", "exchanges")
    return {name: result.pandas(name).drop(columns=wall, errors="ignore") for name in names}


@pytest.mark.parametrize(("algorithm", "world"), [("fedf_admm", {}), ("fedf_admm", GOSSIP), ("dfedadmm", GOSSIP)])
def test_chunks_change_no_bit(simulate: Simulate, algorithm: str, world: Raw) -> None:
    raw = peers(algorithm=algorithm, world=world, public={"samples": 20})
    one, four = (simulate(raw, "--set", f"resources.chunk={chunk}") for chunk in (1, 4))
    assert one.info["digest"]["model"] == four.info["digest"]["model"]
    for name, table in tables(one).items():
        pd.testing.assert_frame_equal(table, tables(four)[name])


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(
    ("algorithm", "world", "actors"),
    [("decfedavg", {}, 2), ("decfedavg", {}, 1), ("decfedprox", GOSSIP, 2), ("fedf_admm", GOSSIP, 2)],
)
def test_ray_equals_inline(algorithm: str, world: Raw, actors: int, tmp_path: Path) -> None:
    raw = peers(algorithm=algorithm, world=world, public={"samples": 20}, resources__client_actors=actors)
    scenario = raysim.parse_scenario(raw)
    one, two = raysim.run(scenario, out=tmp_path), raysim.run(scenario, out=tmp_path, inline=True)
    assert one.info["digest"] == two.info["digest"]
    assert set(one.pandas("tasks").worker) <= {"client-0", "client-1"}


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_thousand_peers_run_on_two_actors(tmp_path: Path) -> None:
    """With a training sample or two each."""
    raw = peers(
        algorithm="decfedavg",
        topology={"name": "regular", "degree": 4},
        data={"name": "digits", "clients": 1000, "partition": "iid"},
        model={"name": "mlp", "hidden": []},
        run={"rounds": 2, "evaluate_every": 2, "evaluate_clients": 5},
        resources={"client_actors": 2, "chunk": 100},
    )
    scenario = raysim.parse_scenario(raw)
    one, two = (raysim.run(scenario, out=tmp_path / str(inline), inline=inline) for inline in (False, True))
    assert one.info["digest"] == two.info["digest"]
    assert one.info["totals"]["sent"] == 8000
    assert set(one.pandas("tasks").worker) == {"client-0", "client-1"}


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_killed_actor_changes_no_bit(tmp_path: Path) -> None:
    import ray

    scenario = raysim.parse_scenario(peers(run__rounds=150, run__evaluate_every=150))
    expected = raysim.run(scenario, out=tmp_path / "inline", inline=True).digest
    killed = []

    def kill_once(progress: Progress) -> None:
        if not killed:
            assert progress.round < 100
            (folder,) = (tmp_path / "ray").iterdir()
            ray.kill(ray.get_actor(f"{folder.name}/client-1", namespace="raysim"))
            killed.append(time.monotonic())

    result = raysim.run(scenario, out=tmp_path / "ray", progress=kill_once)
    assert killed and result.digest == expected


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_task_that_kills_its_worker_again_and_again_is_named(tmp_path: Path) -> None:
    scenario = raysim.parse_scenario(peers(algorithm="toys_peers:Deadly"))
    with pytest.raises(raysim.RunFailed, match=r"mix of round 0: its worker died 3 times"):
        raysim.run(scenario, out=tmp_path)


class WatchingPool(InlinePool):
    """Compares what jobs are given with a copy made before."""

    def submit(self, group: str, request: Request[Any], **options: Any) -> Job[Any]:
        contents = [value.content for value in values_of(request)]
        before = copy.deepcopy(contents)
        job = super().submit(group, request, **options)
        np.testing.assert_equal(contents, before, f"{request.name} changed what it was given")
        return job


@pytest.mark.parametrize("algorithm", ["toys_peers:Averaging", *NAMES])
def test_nothing_that_is_given_is_changed(algorithm: str, tmp_path: Path) -> None:
    raw = peers(algorithm=algorithm, world=GOSSIP, public={"samples": 20}, local__steps=1)
    assert execute(raw, tmp_path, WatchingPool()).info["status"] == "finished"


def test_a_peer_that_changes_what_it_was_sent_ends_the_run(tmp_path: Path) -> None:
    scenario = raysim.parse_scenario(peers(algorithm="toys_peers:Overwriting"))
    text = "an algorithm must not change in place what it is given, but changed 'w'; copy it first"
    with pytest.raises(raysim.RunFailed, match=text):
        raysim.run(scenario, out=tmp_path, inline=True)


class KeepingPool(InlinePool):
    """Knows which messages somebody holds. With a peer in each job, a job leaves one."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: weakref.WeakSet[Value[Any]] = weakref.WeakSet()
        self.mixes = 0

    def submit(self, group: str, request: Request[Any], **options: Any) -> Job[Any]:
        job = super().submit(group, request, **options)
        if isinstance(request, MixRequest):
            self.messages.add(job.values[1])
            self.mixes += 1
        return job


def test_old_messages_are_let_go(tmp_path: Path) -> None:
    """After each round of a ring, only the messages that come next are held; in gossip a few that came late, too."""
    for world, most in (({}, 20), (GOSSIP, 50)):
        scenario, pool = raysim.parse_scenario(peers(world=world, run__rounds=30, resources__chunk=1)), KeepingPool()
        for _ in Execution(scenario, tmp_path / str(most))(pool):
            assert len(pool.messages) <= most
        assert pool.mixes == 310


def test_a_chunk_is_cut_where_a_peer_needs_what_another_makes() -> None:
    """Peer 0 mixes three times while peer 1 trains: each mix needs the training after the one before."""
    delay = {"name": "scripted", "unit": "seconds", "delays": ((1.0,) * 9, (3.5,) * 3)}
    world = World.model_validate({"synchronous": False, "delay": delay})
    mixes = [mixed for exchanged in PeersTimeline(world, Line(), 2, 4, 1, seed=0) for mixed in exchanged.mixed]
    chunks = [[(mixed.peer, mixed.number) for mixed in chunk] for chunk in cut(mixes, 3)]
    assert chunks == [[(0, 0)], [(0, 1)], [(0, 2), (1, 0)], [(0, 3)], [(0, 4)], [(0, 5)], [(0, 6)]]


# --- what a run leaves ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [{"loss": 0.3}, GOSSIP])
def test_a_dry_run_is_the_timeline_of_the_run(simulate: Simulate, world: Raw) -> None:
    raw = peers(world=world)
    real, dry = simulate(raw), simulate(raw, "--dry")
    assert dry.info["totals"] == real.info["totals"]
    for name in ("updates", "steps", "exchanges"):
        told = tables(dry)[name].dropna(axis=1, how="all")
        assert len(told)
        pd.testing.assert_frame_equal(told, tables(real)[name][told.columns])


def test_peers_are_evaluated_one_by_one_and_together(simulate: Simulate) -> None:
    result = simulate(peers(run={"rounds": 4, "evaluate_every": 2, "evaluate_on": ["test", "train"]}))
    evaluations = result.pandas("evaluations")
    for (_, split), rows in evaluations.groupby(["round", "split"], observed=True):
        accuracy = rows.query("subject == 'peer' and metric == 'accuracy'")
        assert accuracy.member.tolist() == list(range(10))
        together = rows.query("subject == 'peers'").set_index("metric").value
        low, high = accuracy.value.min(), accuracy.value.max()
        found = [together[key] for key in ("accuracy", "accuracy_min", "accuracy_max", "accuracy_gap")]
        assert found == pytest.approx([accuracy.value.mean(), low, high, high - low])
        assert ("consensus" in together) == (split == "test")
    assert evaluations["round"].unique().tolist() == [1, 3]


@pytest.mark.parametrize("public", [0, 300])
def test_the_consensus_is_the_distance_of_final_vectors_and_outputs_from_their_mean(
    simulate: Simulate, public: int
) -> None:
    raw = peers(data__clients=30, public={"samples": public})  # more peers than are compared in a task
    result, bench = simulate(raw), worker_of(raw, Workbench)
    w = result.vectors()["w"].astype(np.float64)
    apart = np.sqrt(((w - w.mean(0)) ** 2).sum(1).mean())
    assert of_all(result, "consensus")[-1] == pytest.approx(apart, rel=1e-6)
    federation = bench.federation
    inputs = bench.public if public else bench.loader(federation.test, federation.evaluation_rows[:500])[0]
    logits = np.stack([result.module(peer)(inputs).detach().double().numpy() for peer in range(30)])
    outputs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    apart = np.sqrt(((outputs - outputs.mean(0)) ** 2).sum(-1).mean())
    assert of_all(result, "consensus_outputs")[-1] == pytest.approx(apart, rel=1e-5)


def test_outputs_are_compared_few_inputs_at_a_time(simulate: Simulate) -> None:
    seen: list[int] = []
    hook = register_module_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    try:
        simulate(peers(data__clients=2, run__rounds=1, public={"samples": 600}))
    finally:
        hook.remove()
    assert 100 in seen and max(seen) == 250


def test_the_consensus_is_told_of_the_first_split_that_is_evaluated(simulate: Simulate) -> None:
    evaluations = simulate(peers(run={"rounds": 1, "evaluate_on": ["train"]})).pandas("evaluations")
    assert set(evaluations.query("metric in ['consensus', 'consensus_outputs']").split) == {"train"}


@pytest.mark.parametrize("algorithm", ["decfedavg", "decfedprox", "dfedavgm", "dfedadmm"])
def test_statistics_of_batches_are_mixed_as_models_are(simulate: Simulate, algorithm: str) -> None:
    """Those of the first training, which who hears nobody still has after it."""
    small: Raw = {"data__clients": 3, "data__test_samples": 10, "local": {"steps": 1, "batch_size": 8}}
    weights = {"name": "neighbours", "beta": 0.4}
    raw = peers(
        algorithm=algorithm,
        model={"name": "resnet", "depth": 14, "personal": []},
        topology={"name": "line", "weights": weights},
        run={"rounds": 1, "evaluate_clients": 1},
        **small,
    )
    mixed, alone = (simulate({**raw, "world": {"loss": loss}}).vectors()["buffers"] for loss in (0.0, 1.0))
    w = np.array([[0.6, 0.4, 0], [0.2, 0.6, 0.2], [0, 0.4, 0.6]])
    assert mixed == pytest.approx(w @ alone, rel=1e-5, abs=1e-6)
    assert np.ptp(alone, axis=0).max() > 0.01


def test_so_many_peers_are_evaluated_always_the_same(simulate: Simulate) -> None:
    evaluations = simulate(peers(run__evaluate_clients=3, run__evaluate_every=2)).pandas("evaluations")
    members = evaluations.query("subject == 'peer'").groupby("round").member.apply(lambda m: tuple(sorted(set(m))))
    assert len(members) == 3 and members.nunique() == 1 and len(members.iloc[0]) == 3


def test_the_tables_of_peers(simulate: Simulate) -> None:
    result = simulate(peers())
    updates, exchanges, steps = (result.pandas(name) for name in ("updates", "exchanges", "steps"))
    parameters = result.info["parameters"]
    assert (exchanges.bytes == 4 * parameters).all() and len(exchanges) == 6 * 20
    assert (updates.up_bytes == 8 * parameters).all()
    assert (steps.up_bytes == 20 * 4 * parameters).all() and (steps.down_bytes == steps.up_bytes).all()
    assert steps.virtual_time.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert (updates.local_steps == -(-updates.samples // 16)).all()
    assert updates.loss_before.notna().all() and (updates.seconds > 0).all()
    assert result.info["totals"] == {"dispatched": 60, "used": 60, "sent": 120, "lost": 0, "steps": 6, "rounds": 6}
    assert result.vectors()["w"].shape == (10, parameters)


def test_the_accuracy_shown_is_the_mean_over_peers(tmp_path: Path) -> None:
    told: list[Progress] = []
    scenario = raysim.parse_scenario(peers())
    result = raysim.run(scenario, out=tmp_path, inline=True, progress=told.append)
    assert told[-1].metrics["accuracy"] == of_all(result, "accuracy")[-1]
    assert (told[-1].round, told[-1].rounds, told[-1].used) == (6, 6, 60)


# --- what is wrong ----------------------------------------------------------------------------------------------------


def test_a_peer_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as caught:
        raysim.run(raysim.parse_scenario(peers(algorithm="toys_peers:Failing")), out=tmp_path, inline=True)
    assert "ZeroDivisionError: this peer divides by zero - peer 4, after 2 mixes, local" in str(caught.value)
    (folder,) = tmp_path.iterdir()
    assert raysim.Result(folder).info["status"] == "failed"


def test_a_peer_without_samples_is_an_error_before_any_work(tmp_path: Path) -> None:
    raw = peers(data__clients=100, data__partition={"name": "dirichlet", "alpha": 0.05, "min_size": 0})
    with pytest.raises(raysim.RunFailed, match=r"data.partition: every peer must hold a sample to train on, got none"):
        raysim.run(raysim.parse_scenario(raw), out=tmp_path, inline=True)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"topology": None}, "topology: must be given, for decfedavg has no server; say who is whose neighbour"),
        ({"topology": "rings"}, "topology.name: must be one of 'ring', "),
        ({"data__clients": 1}, "topology: must have at least two peers, got 1"),
        ({"world": {"dispatch": {"per_round": 3}}}, "world.dispatch: must not be given, for decfedavg has no server"),
        (
            {"world": {"dropout": {"probability": 0.1}}},
            "world.dropout: must not be given, for decfedavg has no server",
        ),
        (
            {"server_data": {"name": "in_domain", "samples": 9}},
            "server_data: must not be given, for decfedavg has no",
        ),
        ({"world": {"delay": {"name": "constant", "value": 1}}}, "world.delay: must be in seconds for peers, got"),
        (
            {"world": {"synchronous": False}},
            "world.delay: must be in seconds, and not zero, for peers that do not wait, got `none` in rounds; set one",
        ),
        (
            {"world": {"synchronous": False, "delay": {"name": "constant", "value": 0, "unit": "seconds"}}},
            "world.delay: must be in seconds, and not zero, for peers that do not wait, got `constant` of zero seconds",
        ),
        ({"world": {"edge_delay": {"name": "constant", "value": 1}}}, "world.edge_delay: needs a delay in seconds"),
        (
            {"topology": {"name": "edges", "edges": [[0, 1], [1, 2, 3]]}},
            "topology.edges.1: an edge is two peers, got [1, 2, 3]",
        ),
        (
            {"topology": {"name": "erdos_renyi", "probability": 0.12, "redraw_every": 3}, "run__rounds": 99},
            "topology: erdos_renyi: from round 36 on, a graph of 10 peers must be connected, but none of 100 drawn was",
        ),
        ({"run__evaluate_clients": 11}, "run.evaluate_clients: must be at most the number of peers, 10, got 11; lower"),
        ({"resources__shards": 2}, "resources.shards: is for servers only, and decfedavg has none, got 2; leave"),
        ({"resources__aggregators": 2}, "resources.aggregators: is for servers only, and decfedavg has none, got 2"),
        ({"resources__gpus_per_aggregator": 0.5}, "resources.gpus_per_aggregator: is for servers only, and"),
        (
            {"algorithm": "d_psgd"},
            "local.steps: must be 1 for d_psgd, which mixes after every mini-batch, got epochs;",
        ),
        (
            {"algorithm": "d_psgd", "local": {"steps": 1, "momentum": 0.9}},
            "local.momentum: must be 0 for d_psgd, which starts every mini-batch afresh, got 0.9; leave it out",
        ),
        (
            {"algorithm": "cdsgd", "local": {"steps": 1, "optimizer": "adam"}},
            "local.optimizer: must be sgd for cdsgd, which starts every mini-batch afresh, got adam; leave it out",
        ),
        (
            {"topology": {"name": "random", "redraw_every": 2}, "world": GOSSIP},
            "topology: must not be redrawn for peers that do not wait for each other; leave `redraw_every` out",
        ),
        (
            {"world": {"delay": {"name": "scripted", "unit": "seconds", "delays": [[1.0] * 6] * 9 + [[1.0] * 5]}}},
            "world.delay.delays: must hold a delay for each of 6 rounds, got fewer for peers [9]; add the others",
        ),
        ({"algorithm": "fedavg", "world": {"dispatch": {"per_round": 3}}}, "topology: goes with algorithms without a "),
        ({"algorithm": "fedavg", "topology": None}, "world.dispatch: must have exactly one of per_round, concurrency"),
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


def test_gossip_without_durations_is_an_error() -> None:
    world = World.model_validate(
        {"synchronous": False, "delay": {"name": "scripted", "unit": "seconds", "delays": ((0.0,),) * 3}}
    )
    with pytest.raises(
        ValueError, match=r"must be longer than 0 seconds for peers that do not wait, got 0\.0 for peer 0"
    ):
        PeersTimeline(world, Ring(), 3, 1, 1, seed=0)


def test_a_thousand_peers_have_a_timeline_in_a_moment() -> None:
    """Every message of a round is heard once, by everybody's neighbours."""
    world = World.model_validate({})
    (exchanged,) = list(PeersTimeline(world, Regular(degree=4), 1000, 1, 1, seed=0))
    sent = {(message.source, message.target) for mixed in exchanged.mixed for message in mixed.sent}
    assert sent == {(message.peer, mixed.peer) for mixed in exchanged.mixed for message in mixed.inbox}
    assert len(sent) == 4000
