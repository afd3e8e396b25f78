"""Each memory of transforms is a part of states: the same bits however a run is carried out, and where it goes on."""

from pathlib import Path

import pytest
from conftest import Raw, digits

from raysim import parse_scenario, run
from raysim.laws.runs import PicklingPool, carried_out

TOP: Raw = {"name": "top_k", "share": 0.1}
ROUNDS: Raw = {"run__rounds": 6, "run__evaluate_every": 3}
PEERS: Raw = {"algorithm": "decfedavg", "topology": {"name": "ring", "step": 0.5}, "world": {}, **ROUNDS}
MEMORIES: dict[str, Raw] = {
    "ef14": digits(
        algorithm={"name": "fedbuff", "buffer": 3},
        uplink=[{**TOP, "memory": "ef14", "decay": 0.9}, "quantise", {"name": "clip_norm", "max": 0.5}],
        **ROUNDS,
    ),
    "increments": digits(algorithm="scaffold", uplink=[{**TOP, "memory": "ef14"}], **ROUNDS),
    "ef21": digits(algorithm="fedasync", uplink=[{**TOP, "memory": "ef21"}, "half"], **ROUNDS),
    "factors": digits(uplink=[{"name": "low_rank", "rank": 1}], **ROUNDS),
    "shadow": digits(
        algorithm={"name": "fedbuff", "buffer": 3}, downlink=[{**TOP, "memory": "shadow"}, "quantise"], **ROUNDS
    ),
    "shadows": digits(algorithm="fedasync", downlink=[{**TOP, "memory": "shadow", "shadow": "client"}], **ROUNDS),
    "shadow of factors": digits(
        algorithm="scaffold", downlink=[{"name": "low_rank", "rank": 1, "memory": "shadow"}], **ROUNDS
    ),
    "DeepSqueeze": digits(uplink=[{**TOP, "memory": "ef14"}], **PEERS),
    "CHOCO": digits(uplink=[{**TOP, "memory": "ef21"}, "qsgd"], **PEERS),
}
each = pytest.mark.parametrize("raw", MEMORIES.values(), ids=MEMORIES)


@each
def test_the_same_bits_when_a_run_goes_on(raw: Raw) -> None:
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == carried_out(raw).digest


@pytest.mark.chaos
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@each
def test_the_same_bits_on_ray_where_an_actor_is_killed(raw: Raw, tmp_path: Path) -> None:
    import ray
    from run_actors import actor_of, actors_of, own_actors
    from waiting import until

    long = {**raw, "run": {"rounds": 60, "evaluate_every": 60}}
    long["resources"] = {**raw["resources"], "wait_s": own_actors()["resources__wait_s"]}
    killed: list[str] = []

    def kill_once(progress: object) -> None:
        if not killed:
            (folder,) = tmp_path.iterdir()
            ray.kill(actor_of(folder.name, "client-1"))
            until(lambda: "client-1.1" in actors_of(folder.name))
            killed.append(folder.name)

    found = run(parse_scenario(long), out=tmp_path, progress=False, observers=[kill_once])
    assert killed and found.digest == carried_out(long).digest
