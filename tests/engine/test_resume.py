"""A run that ends early and goes on is, in every bit, the run that was never interrupted; so is a longer one."""

import json
import os
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import command, write
from conftest import Raw, digits, override, quadratic
from peers_runs import COMING, GOSSIP, peers
from stopping import stop_after
from test_computed_delays import UNEVEN
from test_computed_delays import scenario as computed

import raysim
from raysim import CannotGoOn, Result, ScenarioError, StopRun
from raysim.engine.server.simulation import ServerSimulation
from raysim.parts.errors import DamagedCheckpoint, RunFailed
from raysim.runs.continuing import EarlierRuns, OutOfDate, going_on, locked
from raysim.workers.device import STAND_IN
from results.schemas import TABLES

SECONDS = {"name": "log_normal", "median": 3.0, "sigma": 1.0, "unit": "seconds"}
CONCURRENT = {"dispatch": {"concurrency": 12}, "delay": SECONDS}
BY_LOSSES = {
    "dispatch": {"per_round": 6, "round_s": 4.0, "policy": {"name": "oort", "preferred": 3.0, "explore": 0.5}},
    "delay": SECONDS,
}
SEARCHED: Raw = {"server_data": {"name": "in_domain", "samples": 60}}
OWN: Raw = {"data__local_test": 0.2, "data__unseen": 0.2, "run__evaluate_clients": 5, "run__save_clients": True}
FOLLOWED = {"name": "fedadmm_in", "convexity": 5.0}
REDRAWN: Raw = {"levels": [1.0, 0.5], "redraw": "dispatch"}
TWO_LAYERS: Raw = {"name": "mlp", "hidden": [8, 8]}

RUNS: dict[str, Raw] = {
    "rounds": digits(),
    "asynchronous": digits(world=CONCURRENT, run__rounds=12),
    "stateful clients": digits(algorithm="scaffold"),
    "a state that messages carry in part": digits(algorithm="toys:Sending"),
    "search": digits(algorithm={"name": "feddle", "search_after": 2}, **SEARCHED),
    "own models": digits(algorithm="ditto", **OWN),
    "models of several widths": digits(
        algorithm="heterofl", model={"name": "module", "module": "toys_levels:Normed"}, capacity=REDRAWN
    ),
    "windows of widths": digits(algorithm={"name": "fedrolex", "buffer": 3}, world=CONCURRENT, capacity=REDRAWN),
    "widths in one": digits(algorithm="fjord", capacity=REDRAWN),
    "models of several depths": digits(algorithm={"name": "depthfl", "exits": 2}, model=TWO_LAYERS, capacity=REDRAWN),
    "depths with one exit": digits(algorithm={"name": "inclusivefl", "exits": 2}, model=TWO_LAYERS, capacity=REDRAWN),
    "models of several architectures": digits(
        algorithm={"name": "feddf", "server_epochs": 1},
        clients=[{"name": "other", "share": 0.5, "model": TWO_LAYERS}],
        **SEARCHED,
    ),
    "merged adapters": digits(
        algorithm="flora", model={"name": "mlp", "hidden": [16], "lora": {"rank": 2, "merge": True}}
    ),
    "delays that follow the work": computed(FOLLOWED, {"per_round": 5}, UNEVEN),
    "picks by losses": digits(algorithm="fedavg", world=BY_LOSSES, run__rounds=9),
    "peers": peers(algorithm="fedf_admm", public={"samples": 20}),
    "peers without waiting": peers(algorithm="dfedadmm", world=GOSSIP),
    "peers in pairs": peers(algorithm="ad_psgd", world=GOSSIP),
    "peers that push": peers(algorithm="push_diging", world=GOSSIP, local__steps=1),
    "peers that send first": peers(algorithm="swift", world=GOSSIP),
    "peers that come and go": peers(
        algorithm="sgp", world={**GOSSIP, **COMING}, topology={"name": "matching", "period_s": 2.0}, run__rounds=12
    ),
    "rounds of peers that come and go": peers(algorithm="sgp", world=COMING),
    "messages of earlier rounds": peers(algorithm={"name": "sgp", "overlap": 2}, topology="exponential"),
}
# By default, runs of these are killed, and then stopped; those of FIRST are stopped only, extended and forked, too.
KILLED = (
    "rounds",
    "asynchronous",
    "stateful clients",
    "a state that messages carry in part",
    "search",
    "models of several depths",
    "models of several architectures",
    "merged adapters",
    "delays that follow the work",
    "picks by losses",
    "peers without waiting",
    "peers in pairs",
    "peers that push",
    "peers that send first",
    "messages of earlier rounds",
)
FIRST = ("rounds", "peers without waiting")


def slow_but(*names: str) -> list[Any]:
    """The names of all runs, of which only these are not slow."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in names)) for name in RUNS]


@cache
def made_once(scenario: str, out: Path) -> Path:
    """The folder of a run with which many tests compare theirs, and which none may change."""
    return raysim.run(raysim.parse_scenario(json.loads(scenario)), out=out, inline=True).folder


def undisturbed(raw: Raw, tmp_path: Path) -> Result:
    """A run of the scenario that nothing ended, copied to a folder of the test's own."""
    folder = made_once(json.dumps(raw), tmp_path.parent / "made once")
    return Result(shutil.copytree(folder, tmp_path / "whole" / folder.name, dirs_exist_ok=True))


def stopped(raw: Raw, tmp_path: Path, after: int) -> Result:
    """Runs a scenario, and ends it once so many rounds are over."""
    return raysim.run(raysim.parse_scenario(raw), out=tmp_path / "stopped", inline=True, observers=[stop_after(after)])


def killed(raw: Raw, tmp_path: Path, after: int) -> Path:
    """Returns the folder as a run would leave it that is killed then: nothing more is written."""
    left = tmp_path / "killed"

    def watch(progress: Any) -> None:
        if progress.round >= after and not left.exists():
            (folder,) = (tmp_path / "running").iterdir()
            shutil.copytree(folder, left)
            raise StopRun("killed")

    raysim.run(raysim.parse_scenario(raw), out=tmp_path / "running", inline=True, observers=[watch])
    return left


def assert_same(one: Result, other: Result) -> None:
    """Model, tables and digest are equal, up to wall times and the run's id."""
    assert one.info["status"] == other.info["status"] == "finished"
    assert one.info["digest"] == other.info["digest"]
    assert one.info["totals"] == other.info["totals"]
    for name, schema in TABLES.items():
        fixed = [field.name for field in schema if b"wall" not in (field.metadata or {}) and field.name != "run"]
        pd.testing.assert_frame_equal(one.pandas(name)[fixed], other.pandas(name)[fixed])
    vectors, others = one.vectors(), other.vectors()
    assert all((vectors[key] == others[key]).all() for key in vectors)


@pytest.mark.parametrize("name", slow_but(*FIRST))
def test_a_run_that_was_stopped_goes_on(name: str, tmp_path: Path) -> None:
    """It goes on where it was stopped: a stopped run leaves a checkpoint."""
    whole = undisturbed(RUNS[name], tmp_path)
    early = stopped(RUNS[name], tmp_path, after=3)
    assert early.info["status"] == "stopped"
    result = raysim.resume(early.folder, inline=True)
    assert_same(result, whole)
    assert result.info["resumed"][0]["version"] >= 1
    assert "resumed once, from version" in command("show", early.folder).stdout
    assert (set(result.pandas("updates").run), result.info["run"]) == ({early.folder.name}, early.folder.name)


@pytest.mark.parametrize("name", slow_but(*KILLED))
def test_a_run_that_was_killed_goes_on(name: str, tmp_path: Path) -> None:
    """It continues from its last checkpoint, and then is killed once more."""
    whole = undisturbed(RUNS[name], tmp_path)
    left = killed(override(RUNS[name], run__checkpoint__every_rounds=2), tmp_path, after=3)
    assert json.loads((left / "run.json").read_text())["status"] == "running"
    raysim.resume(left, inline=True, observers=[stop_after(5)])
    assert_same(raysim.resume(left, inline=True), whole)


def test_a_run_without_a_checkpoint_starts_again(tmp_path: Path) -> None:
    raw = digits()
    left = killed(raw, tmp_path, after=2)
    assert not (left / "checkpoint").exists()
    result = raysim.resume(left, inline=True)
    assert_same(result, undisturbed(raw, tmp_path))
    assert result.info["resumed"][0]["version"] == 0


@pytest.mark.parametrize("name", slow_but(*FIRST))
def test_a_finished_run_can_be_extended(name: str, tmp_path: Path) -> None:
    """It continues from its end, and the longer run has no sign of the shorter one's last evaluation."""
    rounds = RUNS[name]["run"]["rounds"]
    short = override(RUNS[name], run__checkpoint__at_end=True, run__rounds=rounds - 3)
    ended = raysim.run(raysim.parse_scenario(short), out=tmp_path / "short", inline=True)
    longer = raysim.resume(ended.folder, [f"run.rounds={rounds}"], inline=True)
    assert_same(longer, undisturbed(RUNS[name], tmp_path))
    done = longer.info["resumed"][0]["round"]
    assert done >= (rounds - 5 if RUNS[name].get("world", {}).get("synchronous", True) else 0)


def test_a_last_checkpoint_cuts_no_table_into_parts(tmp_path: Path) -> None:
    result = raysim.run(digits(run__checkpoint__at_end=True), out=tmp_path, inline=True)
    assert (result.folder / "checkpoint" / "checkpoint.json").is_file()
    assert {part.name for part in result.folder.glob("*/*.parquet")} == {"000000.parquet"}


def test_a_last_checkpoint_is_there_before_models_are_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = []

    def finish(simulation: ServerSimulation) -> Any:
        there.extend(tmp_path.glob("*/checkpoint/checkpoint.json"))
        raise MemoryError

    monkeypatch.setattr(ServerSimulation, "finish", finish)
    with pytest.raises(RunFailed):
        raysim.run(digits(run__checkpoint__at_end=True), out=tmp_path, inline=True)
    assert len(there) == 1


@pytest.mark.parametrize("dear", [True, False])
def test_a_last_checkpoint_that_would_take_long_is_left_out(
    dear: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The run is then extended from its beginning, and this is said."""
    raw = digits(algorithm="scaffold")
    monkeypatch.setattr("raysim.engine.saver.BYTES_PER_S", 1.0 if dear else 1e15)
    short = raysim.run(raysim.parse_scenario(raw), out=tmp_path / "short", inline=True)
    assert (short.folder / "checkpoint").exists() != dear
    told = command("resume", short.folder, "--set", "run.rounds=10", "--inline").stdout
    assert ("continues from its beginning, because it has no checkpoint" in told) == dear
    assert_same(Result(short.folder), undisturbed(override(raw, run__rounds=10), tmp_path))


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(
    "name",
    [
        "asynchronous",
        *(
            pytest.param(name, marks=pytest.mark.chaos)
            for name in ("stateful clients", "delays that follow the work", "peers", "search")
        ),
    ],
)
@pytest.mark.slow
def test_it_goes_on_on_ray_with_another_number_of_workers(name: str, tmp_path: Path) -> None:
    raw = override(RUNS[name], run__checkpoint__every_rounds=2, resources__client_actors=1)
    whole = undisturbed(raw, tmp_path)
    early = stopped(raw, tmp_path, after=3)
    raysim.resume(early.folder, ["resources.client_actors=2"], observers=[stop_after(5)])
    assert_same(raysim.resume(early.folder, inline=True), whole)


def test_running_a_scenario_again_goes_on_if_it_is_asked_to(tmp_path: Path) -> None:
    """Then it is over, and is not run again."""
    raw, out = digits(), tmp_path / "stopped"
    early = stopped(raw, tmp_path, after=4)
    again = raysim.run(raw, out=out, inline=True, resume=True)
    assert again.folder == early.folder
    assert_same(again, undisturbed(raw, tmp_path))
    path = write(tmp_path, raw)
    before = json.loads((early.folder / "run.json").read_text())
    assert command("run", path, "--inline", "--out", out, "--resume").exit_code == 0
    assert json.loads((early.folder / "run.json").read_text()) == before
    assert command("run", path, "--inline", "--out", out).exit_code == 0
    assert len(list(out.iterdir())) == 2


@pytest.mark.usefixtures("here")
def test_a_sweep_goes_on_with_runs_that_ended_early(tmp_path: Path) -> None:
    raw = digits()
    early = stopped(raw, tmp_path, after=4)
    (outcome,) = raysim.run_all([raysim.parse_scenario(raw)], out=tmp_path / "stopped", inline=True)
    assert (outcome.status, outcome.folder) == ("finished", early.folder)
    result = Result(early.folder)
    assert [again["version"] >= 1 for again in result.info["resumed"]] == [True]
    assert_same(result, undisturbed(raw, tmp_path))


@pytest.mark.usefixtures("here")
def test_a_sweep_leaves_runs_alone_that_another_process_goes_on_with(tmp_path: Path) -> None:
    """Whether that is still at work, or has ended since the sweep looked which runs there are."""
    scenario = raysim.parse_scenario(digits())
    early = stopped(digits(), tmp_path, after=4)
    before = (early.folder / "run.json").read_text()
    with locked(early.folder):
        (outcome,) = raysim.run_all([scenario], out=tmp_path / "stopped", inline=True)
        assert outcome.why is not None and "but a process is at work on it" in outcome.why
    assert (early.folder / "run.json").read_text() == before
    found = EarlierRuns(tmp_path / "stopped").to_resume(scenario)
    raysim.resume(early.folder, inline=True)
    assert found == early.folder
    with pytest.raises(CannotGoOn, match="another process continued it, and it is finished now"):
        going_on(found, scenario).__enter__()


def test_a_run_that_goes_on_with_another_instruction_set_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    early = stopped(digits(), tmp_path, after=4)
    path = early.folder / "run.json"
    info = json.loads(path.read_text())
    info["machines"][0]["capability"] = "AVX"
    path.write_text(json.dumps(info))
    result = raysim.resume(early.folder, inline=True)
    (note,) = (note for note in result.info["notes"] if "other last bits" in note)
    assert "capability AVX and " in note
    assert note in caplog.text


def test_a_run_that_went_on_with_another_device_is_no_run_of_its_scenario_for_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scenario promises bits that the run has not had all along. It is a run of none."""
    monkeypatch.setenv(STAND_IN, "80")
    early = stopped(digits(), tmp_path, after=4)
    result = raysim.resume(early.folder, ["resources.gpus_per_client=0.5"], inline=True)
    (note,) = result.info["notes"]
    assert "after a change: resources.gpus_per_client " in note and note.endswith(" -> 0.5")
    earlier = EarlierRuns(early.folder.parent)
    found = earlier.find(raysim.parse_scenario(digits(resources__gpus_per_client=0.5)))
    assert isinstance(found, OutOfDate) and found.folder == early.folder
    assert earlier.find(raysim.parse_scenario(digits())) is None


# --- forks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", slow_but(*FIRST, "asynchronous", "search", "models of several widths", "models of several depths")
)
@pytest.mark.parametrize("at_end", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_fork_that_changes_nothing_is_the_run(name: str, at_end: bool, tmp_path: Path) -> None:
    """Whether the run left a checkpoint from before the version or not."""
    raw = override(RUNS[name], run__checkpoint={"at_end": at_end})
    whole = undisturbed(raw, tmp_path)
    result = raysim.fork(whole.folder, 3, out=tmp_path / "forks", inline=True)
    assert_same(result, whole)
    assert result.info["forked_from"] == {"run": whole.info["run"], "version": 3, "before": {}}
    assert f"fork of {whole.info['run']} from version 3 " in command("show", result.folder).stdout
    assert result.info["resumed"] == []


def test_a_fork_differs_from_its_version_on(tmp_path: Path) -> None:
    """Who is picked and when they arrive stays as it was; only what the server does with them changes."""
    raw = digits(world=CONCURRENT, run__rounds=12, run__evaluate_every=1)
    whole = undisturbed(raw, tmp_path)
    result = raysim.fork(whole.folder, 5, ["algorithm.server_lr=0.3"], out=tmp_path / "forks", inline=True)
    assert result.info["scenario"]["algorithm"]["server_lr"] == 0.3
    who = ["client", "dispatched_at", "arrived_at", "version", "staleness", "status"]
    pd.testing.assert_frame_equal(result.pandas("updates")[who], whole.pandas("updates")[who])
    same = (result.pandas("evaluations").value == whole.pandas("evaluations").value).groupby(
        whole.pandas("evaluations").step
    )
    assert same.all().loc[:5].all()
    assert not same.any().loc[6:].any()


def test_tables_of_a_fork_say_from_which_run_and_version_it_is(tmp_path: Path) -> None:
    """A run from scratch with the fork's scenario has another past, so it is another case."""
    out, lr = tmp_path / "runs", "algorithm.server_lr"
    whole = raysim.run(raysim.parse_scenario(digits()), out=out, inline=True)
    fork = raysim.fork(whole.folder, 2, [f"{lr}=0.3"], out=out, inline=True)
    scratch = raysim.run(raysim.parse_scenario(digits(algorithm__server_lr=0.3)), out=out, inline=True)
    origin = {"forked_from.run": whole.run.id, "forked_from.version": 2}
    runs = raysim.load(out)
    table = runs.pandas("steps").groupby("run", observed=True)[list(origin)].first()
    assert table.loc[fork.run.id].to_dict() == origin
    assert table.drop(fork.run.id).isna().all(axis=None)
    compared = runs.compare()[[lr, "forked_from.version", "runs"]]
    assert compared.fillna(0).to_numpy().tolist() == [[0.3, 0, 1], [0.3, 2, 1], [1.0, 0, 1]]
    assert scratch.digest != fork.digest


def test_forks_with_other_settings_before_are_other_cases(tmp_path: Path) -> None:
    """Forks of two seeds are one case, and a fork of a fork says what both had before."""
    lr, before = "algorithm.server_lr", "forked_from.before.algorithm.server_lr"
    out, rates = tmp_path / "runs", [(0.5, 0), (0.5, 1), (1.0, 0)]
    fixed = {"every_s": None, "at_end": False}  # else it depends on time from which version a fork can be forked
    raws = [digits(algorithm__server_lr=rate, seed=seed, run__checkpoint=fixed) for rate, seed in rates]
    for raw in raws:
        whole = raysim.run(raysim.parse_scenario(raw), out=tmp_path / "whole", inline=True)
        fork = raysim.fork(whole.folder, 2, [f"{lr}=0.3"], out=out, inline=True)
    compared = raysim.load(out).compare()[[before, "runs"]]
    assert compared.to_numpy().tolist() == [[0.5, 2], [1.0, 1]]
    again = raysim.fork(fork.folder, 3, ["local.lr=0.01"], out=out, inline=True)
    origins = {key: value for key, value in again.run.keys.items() if key.startswith("forked_from.")}
    assert origins == {
        "forked_from.run": fork.run.id,
        "forked_from.version": 3,
        "forked_from.before.local.lr": raws[0]["local"]["lr"],
        "forked_from.forked_from.run": whole.run.id,
        "forked_from.forked_from.version": 2,
        f"forked_from.{before}": 1.0,
    }


def test_a_fork_by_hand(tmp_path: Path) -> None:
    """Two clients with centers 1 and 3: full steps bring the model to 2, which half of one then leaves at 2."""
    raw = quadratic([1.0, 3.0], "fedavg", {"dispatch": {"per_round": 2}}, rounds=4, start=0.0, local__lr=0.5)
    whole = undisturbed(raw, tmp_path)
    result = raysim.fork(whole.folder, 2, ["local.lr=1.0", "run.rounds=3"], out=tmp_path / "forks", inline=True)
    # lr 0.5 halves the distance to the mean, 2, in each round: 0, 1, 1.5; then lr 1 goes all the way.
    assert whole.vectors()["w"][0] == pytest.approx(1.875)
    assert result.vectors()["w"][0] == pytest.approx(2.0)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("local.lr", 0.2),
        ("run.evaluate_every", 1),
        ("seed", 3),
        ("resources.chunk", 1),
        ("algorithm.server_lr", 0.5),
        ("run.rounds", 2),
        ("name", "other"),
    ],
)
def test_keys_that_would_change_the_past_are_refused(key: str, value: object, tmp_path: Path) -> None:
    early = stopped(digits(), tmp_path, after=4)
    with pytest.raises(ScenarioError, match=key.replace(".", r"\.")) as refused:
        raysim.resume(early.folder, [f"{key}={value}"], inline=True)
    assert f"got {value!r}" in str(refused.value)
    why = "its folder is named after it" if key == "name" else "the past depends on it"
    assert key == "run.rounds" or f"because {why}, " in str(refused.value)


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        (["seed=3"], "seed: must stay 0"),
        (["algorithm=fedasync"], "algorithm.name: must stay 'fedbuff'"),
        (["algorithm.buffer=3"], "must not change when the server steps"),
        (["world.dispatch.concurrency=5"], "world.dispatch.concurrency: must stay 12"),
    ],
)
def test_a_fork_must_have_the_same_past(overrides: list[str], error: str, tmp_path: Path) -> None:
    whole = undisturbed(digits(world=CONCURRENT), tmp_path)
    with pytest.raises(ScenarioError, match=error):
        raysim.fork(whole.folder, 3, overrides, out=tmp_path / "forks", inline=True)
    assert not (tmp_path / "forks").exists()


def test_a_fork_of_peers_that_do_not_wait_evaluates_when_its_past_did(tmp_path: Path) -> None:
    """The past kept only the states that its evaluations needed."""
    whole = undisturbed(peers(world=GOSSIP, run__evaluate_every=3), tmp_path)
    for changed, error in (("run.evaluate_every=1", "must stay 3"), ("run.rounds=5", "must be at least 6")):
        with pytest.raises(ScenarioError, match=error):
            raysim.fork(whole.folder, 2, [changed], out=tmp_path / "forks", inline=True)


def test_a_fork_keeps_the_work_of_clients_of_every_size(tmp_path: Path) -> None:
    """Without batches that are not full, 30 samples are 30 in batches of ten, and 20 in batches of 20."""
    whole = undisturbed(
        computed("fedavg", {"per_round": 5}, UNEVEN, local__batch_size=10, local__drop_last=True), tmp_path
    )
    with pytest.raises(ScenarioError, match="local: must not change how many samples clients compute"):
        raysim.fork(whole.folder, 1, ["local.batch_size=20"], out=tmp_path / "forks", inline=True)


@pytest.mark.parametrize(
    ("more", "at", "last"),
    [
        ({"world": CONCURRENT}, 8, "7, one less than run.rounds"),
        ({}, 4, "3, the run's last step"),
        ({}, 50, "3, the run's last step"),
    ],
)
def test_a_fork_needs_a_version_before_the_end(more: Raw, at: int, last: str, tmp_path: Path) -> None:
    """Fewer than all, where rounds end without a step."""
    whole = undisturbed(digits(**more), tmp_path)
    with pytest.raises(CannotGoOn, match=f"--at: must be from 1 to {last}, got {at}"):
        raysim.fork(whole.folder, at, out=tmp_path / "forks", inline=True)
    assert not (tmp_path / "forks").exists()


@pytest.mark.parametrize("damage", ["changed", "gone", "index"])
def test_a_damaged_checkpoint_is_named(damage: str, tmp_path: Path) -> None:
    early = stopped(digits(), tmp_path, after=4)
    (file, *_) = sorted((early.folder / "checkpoint").glob("records-*"))
    if damage == "changed":
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    elif damage == "gone":
        file.unlink()
    else:
        file = early.folder / "checkpoint" / "checkpoint.json"
        file.write_text(file.read_text()[:100])
    with pytest.raises(DamagedCheckpoint, match=str(file)):
        raysim.resume(early.folder, inline=True)


def test_a_run_under_way_is_refused(tmp_path: Path) -> None:
    """So is a run that may be under way on another machine, until it has written nothing for ten minutes."""
    refused: list[str] = []

    def watch(progress: Any) -> None:
        (folder,) = (tmp_path / "stopped").iterdir()
        for go_on in (lambda: raysim.resume(folder, inline=True), lambda: raysim.fork(folder, 1, out=tmp_path)):
            with pytest.raises(CannotGoOn, match="must be a run that has ended, but a process is at work on it"):
                go_on()
            refused.append(str(folder))
        raise StopRun("enough")

    scenario = raysim.parse_scenario(digits())
    folder = raysim.run(scenario, out=tmp_path / "stopped", inline=True, observers=[watch]).folder
    assert refused == [str(folder)] * 2
    info = json.loads((folder / "run.json").read_text())
    elsewhere = info | {"status": "running", "holder": {"host": "elsewhere", "pid": 1}}
    (folder / "run.json").write_text(json.dumps(elsewhere))
    with pytest.raises(CannotGoOn, match=r"is running, on elsewhere .* continue ten minutes after"):
        raysim.resume(folder, inline=True)
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))
    assert_same(raysim.resume(folder, inline=True), undisturbed(digits(), tmp_path))


@pytest.mark.parametrize("at_end", [True, False])
def test_fewer_rounds_would_delete_what_a_run_has_done(at_end: bool, tmp_path: Path) -> None:
    whole = undisturbed(digits(run__checkpoint={"at_end": at_end}), tmp_path)
    with pytest.raises(ScenarioError, match=r"run\.rounds: must be at least 8"):
        raysim.resume(whole.folder, ["run.rounds=7"], inline=True)
    assert Result(whole.folder).info["status"] == "finished"


def test_a_fork_that_has_not_come_to_its_version_cannot_go_on(tmp_path: Path) -> None:
    """With the other settings only from its resumption on, it would be no fork, and nobody could tell."""
    whole = undisturbed(digits(run__checkpoint={"at_end": False}), tmp_path)
    changed = ["algorithm.server_lr=0.3"]
    half = raysim.fork(whole.folder, 3, changed, out=tmp_path / "forks", inline=True, observers=[stop_after(2)])
    assert half.info["status"] == "stopped"
    with pytest.raises(CannotGoOn, match=r"this is a fork, .* fork again"):
        raysim.resume(half.folder, inline=True)
    with pytest.raises(CannotGoOn, match=f"fork the run {whole.run.id}"):
        raysim.fork(half.folder, 1, out=tmp_path / "forks", inline=True)


def test_the_past_of_a_fork_is_not_done_again_with_its_settings(tmp_path: Path) -> None:
    """It goes on, or is forked, from its own checkpoints only."""
    whole = undisturbed(digits(run__checkpoint={"at_end": True}), tmp_path)
    fork = raysim.fork(whole.folder, 2, ["algorithm.server_lr=0.3"], out=tmp_path / "forks", inline=True)
    with pytest.raises(CannotGoOn, match="whose past had other settings"):
        raysim.fork(fork.folder, 3, out=tmp_path / "forks", inline=True)
    longer = raysim.resume(fork.folder, ["run.rounds=12"], inline=True)
    wanted = raysim.fork(
        whole.folder, 2, ["algorithm.server_lr=0.3", "run.rounds=12"], out=tmp_path / "forks", inline=True
    )
    assert_same(longer, wanted)
    shutil.rmtree(fork.folder / "checkpoint")
    with pytest.raises(CannotGoOn, match="must have a checkpoint from its version or later"):
        raysim.resume(fork.folder, ["run.rounds=20"], inline=True)


def test_a_longer_fork_never_comes_to_a_version_beyond_its_last_step(tmp_path: Path) -> None:
    """How many steps more rounds have is not known beforehand."""
    whole = undisturbed(digits(), tmp_path)  # it makes three steps
    with pytest.raises(RunFailed, match="must reach version 11 well before its end, but reached "):
        raysim.fork(whole.folder, 11, ["run.rounds=12"], out=tmp_path / "forks", inline=True)
    (folder,) = (tmp_path / "forks").iterdir()
    assert Result(folder).info["status"] == "failed"


def test_a_run_that_is_extended_has_no_model_until_its_end(tmp_path: Path) -> None:
    """The one in its folder is of the shorter run until then."""
    whole = undisturbed(digits(), tmp_path)
    before, told = whole.vectors()["w"], list[str]()

    def stop(progress: Any) -> None:
        try:
            Result(whole.folder).vectors()
        except FileNotFoundError as error:
            told.append(str(error))
        raise StopRun("enough")

    half = raysim.resume(whole.folder, ["run.rounds=12"], inline=True, observers=[stop])
    assert "must be finished to have model.safetensors, got a run that is running" in told[0]
    assert half.vectors()["w"].shape == before.shape
    assert half.info["left"]["step"] == half.info["totals"]["steps"]


def test_a_scenario_that_was_changed_by_hand_is_refused(tmp_path: Path) -> None:
    early = stopped(digits(), tmp_path, after=4)
    info = json.loads((early.folder / "run.json").read_text())
    info["scenario"]["local"]["lr"] = 0.5
    (early.folder / "run.json").write_text(json.dumps(info))
    with pytest.raises(CannotGoOn, match="must be the one that was run"):
        raysim.resume(early.folder, inline=True)


# --- what is written --------------------------------------------------------------------------------------------------


def test_a_checkpoint_writes_only_what_has_changed(tmp_path: Path) -> None:
    """The states of clients that took part since the checkpoint before, and a model; not those of all clients."""
    raw = digits(algorithm="scaffold", run__checkpoint__every_rounds=2, run__rounds=12)
    sizes: list[dict[str, int]] = []

    def watch(progress: Any) -> None:
        (folder,) = (tmp_path / "runs").iterdir()
        sizes.append({path.name: path.stat().st_size for path in folder.glob("checkpoint/records-*")})

    raysim.run(raysim.parse_scenario(raw), out=tmp_path / "runs", inline=True, observers=[watch])
    kept = [set(later) & set(earlier) for earlier, later in pairwise(sizes)]
    assert any(kept)  # files of earlier checkpoints stay as long as they are needed
    numbers = [int(name[8:14]) for name in sizes[-1]]
    assert max(numbers) > len(numbers)  # and others were deleted
