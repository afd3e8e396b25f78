"""In worker processes of this machine: the bits of a run in one process, whatever becomes of the workers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import typer
from conftest import PYTHONPATH, Raw, digits
from peers_runs import COMING, GOSSIP, peers
from ruamel.yaml import YAML
from server_runs import with_own_models
from toys_jobs import Add, Adder, AddOrDieOnce, Attach, Carry, Die
from waiting import until

import raysim
from actors import Group, JobFailed, LocalPool, MissingResources, finished
from raysim.cli.command import place_of
from raysim.engine.progress import Progress
from results import open_run

RUNS = {
    "fedavg": with_own_models("fedavg"),
    "fedbuff with states": with_own_models("toys:Counting", world__dispatch={"concurrency": 6}),
    "peers": peers(algorithm="fedf_admm", world=GOSSIP, public={"samples": 20}),
    "swift": peers(algorithm="swift", world=GOSSIP),
    "ad_psgd": peers(algorithm="ad_psgd", world=GOSSIP),
    "sgp": peers(algorithm="sgp", world={**GOSSIP, **COMING}, topology={"name": "matching", "period_s": 2.0}),
}


def run(raw: Raw, out: Path, **options: object) -> raysim.Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, progress=False, **options)  # type: ignore[arg-type]


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    made = LocalPool(["", ""])
    made.start(Group("client", Adder, 7))
    made.set_up({"client": Attach(5)})
    yield made
    made.close()


def test_jobs_of_a_process_that_died_are_done_by_another_and_values_stay(pool: LocalPool, tmp_path: Path) -> None:
    added = pool.submit("client", Add(2))
    carried = pool.submit("client", Carry(added.left[0], pool.put("x" * 10), str(tmp_path / "carry")))
    once = [pool.submit("client", AddOrDieOnce(str(tmp_path / "once"), number)) for number in range(6)]
    assert [finished(pool, job).result for job in once] == [5, 6, 7, 8, 9, 10]
    assert finished(pool, carried).result == "8 " + "x" * 10
    assert [pool.get(value) for value in (*added.left, *carried.left)] == [7, 8, "x" * 10]
    assert pool.processes.keys() <= {"local-0", "local-1"}
    with pytest.raises(JobFailed, match="it died 3 times; the last time: its process ended with exit code 1"):
        pool.set_up({"client": Die()})
    folders = [Path(path) for path in pool._folders._paths]
    pool.close()
    assert not any(folder.exists() for folder in folders)


def test_large_arrays_are_shared_and_freed(pool: LocalPool) -> None:
    import numpy as np

    value = pool.put({"w": np.arange(100_000.0), "name": "w", "odd": np.ones(3, np.uint8)})
    file = value.content.file
    found = pool.get(value)
    assert file.exists() and not found["w"].flags.writeable and found["w"].ctypes.data % 64 == 0
    del value
    assert not file.exists() and found["w"][-1] == 99_999.0 and found["odd"].sum() == 3


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("fedbuff with states", 2),
        pytest.param("fedbuff with states", 1, marks=pytest.mark.slow),
        *(pytest.param(name, local, marks=pytest.mark.slow) for name in ("fedavg", "peers") for local in (1, 2)),
        *(pytest.param(name, 2, marks=pytest.mark.slow) for name in ("swift", "ad_psgd", "sgp")),
    ],
)
def test_any_number_of_processes_equals_inline(name: str, local: int, tmp_path: Path) -> None:
    result = run(RUNS[name], tmp_path, local=local)
    assert result.info["digest"] == run(RUNS[name], tmp_path, inline=True).info["digest"]
    workers = {f"local-{number}" for number in range(local)}
    assert {worker["worker"] for worker in result.info["workers"]} == set(result.pandas("tasks").worker) == workers


@pytest.mark.chaos
def test_a_killed_process_is_replaced_and_changes_no_bit(tmp_path: Path) -> None:
    raw = digits(run__rounds=60, run__evaluate_every=60, local__epochs=3, algorithm="toys:Counting")
    killed: list[int] = []

    def kill_once(progress: Progress) -> None:
        if not killed:
            (folder,) = (tmp_path / "local").iterdir()
            killed.append(open_run(folder).info["workers"][1]["pid"])
            os.kill(killed[0], signal.SIGKILL)

    result = run(raw, tmp_path / "local", local=2, observers=[kill_once])
    assert result.digest == run(raw, tmp_path, inline=True).digest
    assert killed[0] not in [worker["pid"] for worker in result.info["workers"]]


@pytest.mark.slow
def test_errors_of_users_code_are_told_as_on_ray(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed, match="ZeroDivisionError: this client divides by zero") as caught:
        run(digits(algorithm="toys:Failing", run__rounds=30), tmp_path / "failing", local=1)
    assert "client 3" in str(caught.value)
    assert "in update" in caught.value.traceback
    with pytest.raises(raysim.RunFailed, match="its worker died 3 times; the last time: its process ended with exit"):
        run(digits(algorithm="toys:Deadly", run__rounds=30), tmp_path / "deadly", local=1)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.chaos
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_a_command_that_ends_early(number: signal.Signals, tmp_path: Path) -> None:
    """Its whole group gets the signal, as with Ctrl-C. The run goes on with another number of processes."""
    raw = digits(
        run__rounds=400, run__evaluate_every=50, run__checkpoint={"every_rounds": 20}, algorithm="toys:Counting"
    )
    YAML().dump(raw, tmp_path / "run.yaml")
    line = [sys.executable, "-m", "raysim", "run", str(tmp_path / "run.yaml"), "--local", "2", "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    process = subprocess.Popen(line, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)

    def folder() -> Path:
        return next(path for path in tmp_path.iterdir() if path.is_dir())

    def has_checkpoint() -> bool:
        return any(tmp_path.glob("*/checkpoint/*.json"))

    until(has_checkpoint, process)  # type: ignore[arg-type]
    workers = [worker["pid"] for worker in open_run(folder()).info["workers"]]
    os.killpg(process.pid, number)
    assert process.wait() == (130 if number == signal.SIGINT else -9)
    until(lambda: all(map(gone, workers)))
    assert open_run(folder()).standing == ("interrupted" if number == signal.SIGINT else "killed")
    result = raysim.resume(folder(), local=1, progress=False)
    assert result.digest == run(raw, tmp_path / "inline", inline=True).digest


def test_what_cannot_be_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="local: must be given without inline and address, got local=2 and"):
        run(digits(), tmp_path, local=2, inline=True)
    with pytest.raises(ValueError, match="local=2 and address='auto'"):
        run(digits(), tmp_path, local=2, address="auto")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        run(digits(), tmp_path, local=0)
    with pytest.raises(MissingResources, match="GB of memory for each process, got 1000000 processes"):
        run(digits(), tmp_path, local=1_000_000)
    with pytest.raises(MissingResources, match=r"must have 0.5 GPU for each process, got 40 processes and \d GPU"):
        run(digits(resources__gpus_per_client=0.5), tmp_path, local=40)
    for other in ({"inline": True, "address": None}, {"inline": False, "address": "auto"}):
        with pytest.raises(typer.BadParameter, match=r"must be given without inline and address, got local=2 and .*;"):
            place_of(local=2, **other)  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()]


@pytest.mark.chaos
def test_no_worker_outlives_a_driver_that_is_killed(tmp_path: Path) -> None:
    """At whatever moment: in the start, while data are loaded, or in the middle of a job."""
    YAML().dump(digits(run__rounds=3000), tmp_path / "run.yaml")
    line = [sys.executable, "-m", "raysim", "run", "run.yaml", "--local", "2"]
    for number, moment in enumerate(np.random.default_rng().uniform(0.3, 6.0, 8)):
        mark = f"{os.getpid()}-{number}"
        environment = os.environ | {"PYTHONPATH": PYTHONPATH, "MARK": mark}
        driver = subprocess.Popen(line, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        time.sleep(moment)
        driver.kill()
        driver.wait()
        end = time.monotonic() + 10.0
        while (left := _processes_with(f"MARK={mark}")) and time.monotonic() < end:
            time.sleep(0.1)
        assert left == [], f"the driver was killed after {moment:.2f} s"


def _processes_with(variable: str) -> list[int]:
    """Returns the numbers of the processes with a variable in their environment."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if variable.encode() in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found
