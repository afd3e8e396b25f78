"""Nothing but the scenario decides a bit of any peer's model: neither chunks, actors nor their deaths."""

import time
import weakref
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import Raw, Simulate
from peers_runs import GOSSIP, peers, tables

import raysim
from actors import InlinePool, Job, Request, Value
from raysim.engine.peers.jobs import cut
from raysim.engine.progress import Progress
from raysim.runs.execution import Execution
from raysim.workers.peer_requests import MixRequest
from raysim.world import World
from raysim.world.clock import Horizon
from raysim.world.gossip_timeline import GossipTimeline
from raysim.world.topology import Line


@pytest.mark.parametrize(
    ("algorithm", "world"),
    [("fedf_admm", {}), ("fedf_admm", GOSSIP), ("dfedadmm", GOSSIP), ("ad_psgd", GOSSIP), ("sgp", GOSSIP)],
)
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
    [
        ("decfedavg", {}, 2),
        ("fedf_admm", GOSSIP, 2),
        *(pytest.param(name, GOSSIP, 2, marks=pytest.mark.slow) for name in ("ad_psgd", "sgp", "swift")),
        pytest.param("decfedprox", GOSSIP, 1, marks=pytest.mark.slow),
    ],
)
def test_ray_equals_inline(algorithm: str, world: Raw, actors: int, tmp_path: Path) -> None:
    raw = peers(algorithm=algorithm, world=world, public={"samples": 20}, resources__client_actors=actors)
    scenario = raysim.parse_scenario(raw)
    one, two = raysim.run(scenario, out=tmp_path), raysim.run(scenario, out=tmp_path, inline=True)
    assert one.info["digest"] == two.info["digest"]
    assert set(one.pandas("tasks").worker) <= {"client-0", "client-1"}


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.slow
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
@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {},
        *(
            pytest.param({"algorithm": name, "world": GOSSIP}, marks=pytest.mark.chaos, id=name)
            for name in ("ad_psgd", "swift")
        ),
        pytest.param({"algorithm": {"name": "sgp", "overlap": 2}, "topology": "exponential"}, marks=pytest.mark.chaos),
    ],
)
def test_a_killed_actor_changes_no_bit(more: Raw, tmp_path: Path) -> None:
    import ray
    from run_actors import actor_of, own_actors

    scenario = raysim.parse_scenario(peers(run__rounds=150, run__evaluate_every=150, **own_actors(), **more))
    expected = raysim.run(scenario, out=tmp_path / "inline", inline=True).digest
    killed = []

    def kill_once(progress: Progress) -> None:
        if not killed:
            (folder,) = (tmp_path / "ray").iterdir()
            ray.kill(actor_of(folder.name, "client-1"))
            killed.append(time.monotonic())

    result = raysim.run(scenario, out=tmp_path / "ray", observers=[kill_once])
    assert killed and result.digest == expected


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.chaos
def test_a_task_that_kills_its_worker_again_and_again_is_named(tmp_path: Path) -> None:
    scenario = raysim.parse_scenario(peers(algorithm="toys_peers:Deadly"))
    with pytest.raises(raysim.RunFailed, match=r"mix of round 0: its worker died 3 times"):
        raysim.run(scenario, out=tmp_path)


class KeepingPool(InlinePool):
    """Knows which messages somebody holds. With a peer in each job, a job leaves one."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: weakref.WeakSet[Value[Any]] = weakref.WeakSet()
        self.mixes = 0

    def submit(self, group: str, request: Request[Any, Any], **options: Any) -> Job[Any, Any]:
        job = super().submit(group, request, **options)
        if isinstance(request, MixRequest):
            self.messages.add(job.left.messages)
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
    mixes = [
        mixed
        for exchanged in GossipTimeline(world, Line(), 2, Horizon(4, every_rounds=1), seed=0)
        for mixed in exchanged.mixed
    ]
    chunks = [[(mixed.peer, mixed.number) for mixed in chunk] for chunk in cut(mixes, 3)]
    assert chunks == [[(0, 0)], [(0, 1)], [(0, 2), (1, 0)], [(0, 3)], [(0, 4)], [(0, 5)], [(0, 6)]]
