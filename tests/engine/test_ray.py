"""On Ray: the same bits as in this process, for any number of workers, killed ones too; and how a run ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from command_line import write
from conftest import Raw, digits
from peers_runs import peers
from run_actors import actor_of, actors_of, own_actors
from same_bits import same_on_ray
from server_runs import ON_RAY, with_own_models
from test_computed_delays import UNEVEN
from test_computed_delays import scenario as computed
from test_metrics import ALL
from test_own_columns import peers as logging_peers
from test_own_columns import server as logging
from test_picks_by_losses import BY_LOSSES, SECONDS
from waiting import PATIENT_S, until

import raysim
from actors import MissingResources
from raysim.engine.progress import Progress
from raysim.runs.execution import Execution
from results.info import Status

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def run(raw: Raw, out: Path, **options: object) -> raysim.Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("algorithm", "actors"),
    [
        *((name, 2) for name in ON_RAY),
        pytest.param("fedbuff", 1, marks=pytest.mark.slow),
        pytest.param("toys:Counting", 3, marks=pytest.mark.slow),
        *(pytest.param(toy, 2, marks=pytest.mark.slow) for toy in ("toys:Median", "toys:Heads")),
    ],
)
def test_ray_with_any_number_of_actors_equals_inline(algorithm: str, actors: int, tmp_path: Path) -> None:
    """Clients' own models too, of those that took part and of those that did not."""
    raw = with_own_models(algorithm, resources__client_actors=actors)
    result = run(raw, tmp_path)
    assert result.info["digest"] == run(raw, tmp_path, inline=True).info["digest"]
    assert len(set(result.pandas("updates").worker.dropna())) <= actors


NOISY: Raw = {"resources": {"chunk": 3}, "run__rounds": 2}
SAME: dict[str, Raw] = {
    "own metrics and a loss": digits(
        data__local_test=0.2, run={"rounds": 4, "metrics": ALL, "loss": "own_modules:hinge", "evaluate_clients": 4}
    ),
    "own metrics of peers": peers(algorithm="decfedavg", run={"rounds": 4, "metrics": ALL}),
    "own columns": logging(),
    "a budget of bytes": digits(run={"rounds": 10, "evaluate_every": 1, "until": {"bytes": "100kB"}}),
    "own columns of peers": logging_peers(),
    "delays that follow the work": computed("fedadmm_insa", {"per_round": 6, "round_s": 0.9}, UNEVEN),
    "global generators": digits(algorithm="toys_lawless:Noisy", **NOISY),
    "global generators of peers": peers(algorithm="toys_lawless:NoisyPeer", **NOISY),
    **{
        f"picks by {name}": digits(
            world={"dispatch": {"concurrency": 6, "policy": {"name": name, **keys}}, "delay": SECONDS}
        )
        for name, keys in BY_LOSSES.items()
    },
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torchmetrics.*")
@pytest.mark.parametrize("name", SAME)
@pytest.mark.slow
def test_what_else_runs_hold_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    assert same_on_ray(SAME[name], tmp_path).pandas("updates").client.nunique() > 5


def kill_and_see_another(run_name: str) -> None:
    """Kills a client actor of a run, and returns when there is another in its place."""
    import ray

    ray.kill(actor_of(run_name, "client-1"))
    until(lambda: "client-1.1" in actors_of(run_name))


@pytest.mark.slow
def test_a_killed_client_actor_is_replaced_and_changes_no_bit(tmp_path: Path) -> None:
    raw = digits(run__rounds=150, run__evaluate_every=150, local__epochs=3, algorithm="toys:Counting", **own_actors())
    expected = run(raw, tmp_path / "inline", inline=True).digest
    killed: list[str] = []

    def kill_once(progress: Progress) -> None:
        if not killed:
            (folder,) = (tmp_path / "ray").iterdir()
            kill_and_see_another(folder.name)
            killed.append(folder.name)

    assert run(raw, tmp_path / "ray", observers=[kill_once]).digest == expected
    assert killed


def test_what_the_cluster_has_not_got_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(MissingResources, match="must have 2 GPU, got 0"):
        run(digits(resources__gpus_per_client=1.0), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_run_that_needs_more_cpus_than_the_ray_of_this_process_has_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(MissingResources, match=r"must have 9 CPU, got 8; .* call ray\.shutdown\(\) first"):
        run(digits(resources__client_actors=9), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("address", ["10.83.0.9:6379", "{host}:1", "no.such.host.:6379", "ray://{host}:{port}"])
def test_an_address_of_another_cluster_than_that_of_this_process_is_refused(tmp_path: Path, address: str) -> None:
    import ray

    connected = ray.get_runtime_context().gcs_address
    host, _, port = connected.rpartition(":")
    other = address.format(host=host, port=port)
    with pytest.raises(MissingResources) as caught:
        run(digits(), tmp_path / "runs", address=other)
    where = f"address: must be that of the Ray to which this process is connected, {connected!r}, got {other!r}; "
    assert str(caught.value).startswith(where)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("address", ["{host}:{port}", "localhost:{port}", "127.0.0.1:{port}", "auto", "local"])
def test_an_address_of_the_cluster_of_this_process_is_taken(address: str) -> None:
    import ray

    from raysim.runs.place import RunPlace

    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    RunPlace(address=address.format(host=host, port=port)).connect([raysim.parse_scenario(digits())])


@pytest.mark.chaos
def test_a_task_that_kills_its_worker_again_and_again_is_named(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed, match=r"train for version \d+: its worker died 3 times"):
        run(digits(algorithm="toys:Deadly"), tmp_path)


# --- how a run ends ---------------------------------------------------------------------------------------------------


def command(*arguments: object) -> subprocess.Popen[str]:
    """A process of its own, which does not share this one's connection."""
    line = [sys.executable, "-m", "raysim", "run", *map(str, arguments)]
    return subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.chaos
def test_ctrl_c_ends_a_run_with_exit_code_130_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    import ray

    path = write(tmp_path, digits(run__rounds=100_000))
    running = command(path, "--address", ray.get_runtime_context().gcs_address, "--out", tmp_path / "runs")
    until(lambda: list((tmp_path / "runs").glob("*/updates/*.parquet")), running)  # they are written every few seconds
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=PATIENT_S)
    assert running.returncode == 130
    assert "Traceback" not in errors
    (folder,) = (tmp_path / "runs").iterdir()
    info = raysim.Result(folder).info
    assert info["status"] == "interrupted"
    assert info["totals"]["dispatched"] == ds.dataset(folder / "updates").count_rows() > 0


def test_an_interrupted_run_has_every_row_that_was_told(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(digits(run__rounds=100_000), tmp_path, observers=[interrupt])
    (folder,) = tmp_path.iterdir()
    info = raysim.Result(folder).info
    assert info["status"] == "interrupted"
    assert info["totals"]["rounds"] > 0
    assert info["totals"]["dispatched"] == len(raysim.Result(folder).table("updates"))


@pytest.mark.chaos
def test_a_dead_scheduler_fails_the_run(tmp_path: Path) -> None:
    import ray

    def kill(progress: Progress) -> None:
        (folder,) = tmp_path.iterdir()
        ray.kill(actor_of(folder.name, "scheduler"))

    with pytest.raises(raysim.RunFailed) as failed:
        run(digits(run__rounds=100_000, **own_actors()), tmp_path, observers=[kill])
    (folder,) = tmp_path.iterdir()
    told = f"scheduler: the scheduler actor died; `raysim resume {folder}` continues it"
    info = raysim.Result(folder).info
    assert (str(failed.value), info["status"]) == (told, "failed")
    assert info["error"].startswith(told) and "it was killed by `ray.kill`" in info["error"]


def test_only_a_run_that_says_running_is_settled(tmp_path: Path) -> None:
    execution = Execution(raysim.parse_scenario(digits()), tmp_path)
    for status, expected in ((Status.INTERRUPTED, "interrupted"), (Status.FAILED, "interrupted")):
        execution.settle(status)
        info = raysim.Result(tmp_path).info
        assert (info["status"], info["name"]) == (expected, "digits")
        assert info["finished_at"] is not None


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1:9", "a Ray cluster must answer there, got '127.0.0.1:9'"),
        *(
            pytest.param(address, told, marks=pytest.mark.slow)
            for address, told in (
                (
                    "ray://127.0.0.1:10001",
                    "submit the run as a job to the cluster instead: ray job submit -- raysim run",
                ),
                ("nonsense", "must be that of a Ray cluster, got 'nonsense'"),
            )
        ),
    ],
)
def test_an_address_without_a_cluster_is_refused_soon_and_leaves_no_folder(
    tmp_path: Path, address: str, told: str
) -> None:
    path = write(tmp_path, digits())
    running = command(path, "--address", address, "--out", tmp_path / "runs")
    output, errors = running.communicate(timeout=PATIENT_S)
    assert (running.returncode, output) == (2, "")
    assert errors.startswith("address: ")
    assert told in errors
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "runs").exists()
