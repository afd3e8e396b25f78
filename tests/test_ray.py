"""On Ray: the same bits as in this process, for any number of workers, killed ones too; failures are told once."""

import time
from pathlib import Path

import pytest
from conftest import Raw, digits

import raysim
from actors import MissingResources
from raysim.algorithms import ALGORITHMS

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]
NAMES = [a.model_fields["name"].default for a in ALGORITHMS]


def run(raw: Raw, out: Path, **options: object) -> raysim.Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", [*NAMES, "toys:Counting", "toys:Median"])
def test_ray_with_one_and_two_actors_equals_inline(algorithm: str, tmp_path: Path) -> None:
    digests = [run(digits(algorithm=algorithm), tmp_path, inline=True).info["digest"]]
    for actors in (1, 2):
        raw = digits(algorithm=algorithm, resources__client_actors=actors)
        result = run(raw, tmp_path)
        digests.append(result.info["digest"])
        assert len(set(result.pandas("updates").worker.dropna())) <= actors
    assert digests[0] == digests[1] == digests[2]


def test_personal_models_are_the_same_on_ray(tmp_path: Path) -> None:
    personal = {"name": "mlp", "hidden": [16], "personal": ["head"]}
    raw = digits(algorithm="toys:Heads", model=personal, data__local_test=0.2, run__evaluate_clients=30)
    assert run(raw, tmp_path).digest == run(raw, tmp_path, inline=True).digest


def kill_when_training(run_name: str, killed: list[str]) -> None:
    """Kills the first client actor of the run as soon as it is there and works."""
    import ray

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [a["name"] for a in ray.util.list_named_actors(all_namespaces=True) if run_name in a["name"]]
        if f"{run_name}/client-1" in found:
            time.sleep(0.5)
            ray.kill(ray.get_actor(f"{run_name}/client-1", namespace="raysim"))
            killed.append(run_name)
            return
        time.sleep(0.02)


def test_a_killed_client_actor_is_replaced_and_changes_no_bit(tmp_path: Path) -> None:
    raw = digits(run__rounds=60, run__evaluate_every=60, local__epochs=3, algorithm="toys:Counting")
    expected = run(raw, tmp_path / "inline", inline=True).digest
    killed: list[str] = []

    def kill_once(progress: object) -> None:
        if not killed:
            (folder,) = (tmp_path / "ray").iterdir()
            kill_when_training(folder.name, killed)

    result = run(raw, tmp_path / "ray", progress=kill_once)
    assert killed
    workers = set(result.pandas("updates").worker.dropna())
    assert workers == {"client-0", "client-1"}
    assert result.digest == expected


def test_a_failing_client_stops_the_run_with_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as caught:
        run(digits(algorithm="toys:Failing", run__rounds=30), tmp_path)
    assert "ZeroDivisionError: this client divides by zero" in str(caught.value)
    assert "client 3" in str(caught.value) and "model version" in str(caught.value) and "train" in str(caught.value)
    assert "in update" in caught.value.traceback
    (folder,) = tmp_path.iterdir()
    result = raysim.Result(folder)
    assert result.info["status"] == "failed"
    assert "divides by zero" in result.info["error"]
    assert result.table("updates").num_rows >= 0


def test_what_the_cluster_has_not_got_is_said_before_anything_starts(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(MissingResources, match="must have 2 GPU, got 0"):
        run(digits(resources__gpus_per_client=1.0), tmp_path)
    assert time.monotonic() - started < 30


def test_a_task_that_kills_its_worker_again_and_again_is_named(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed, match=r"train for version \d+: its worker died 3 times"):
        run(digits(algorithm="toys:Deadly"), tmp_path)


def test_what_is_never_used_is_never_trained(tmp_path: Path) -> None:
    """FedAvg at sigma 20: of 200 dispatches about 8 are in time; only they are trained."""
    world = {"dispatch": {"per_round": 10}, "delay": {"name": "half_normal", "sigma": 20}}
    result = run(digits(algorithm="fedavg", world=world, run__rounds=20, data__clients=100), tmp_path)
    updates = result.pandas("updates")
    trained = updates[updates.local_steps.notna()]
    assert set(trained.status) == {"used"}
    assert len(trained) == result.info["totals"]["used"] < 30
    assert result.info["totals"]["dispatched"] == len(updates) > 100
