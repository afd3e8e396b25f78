"""Budgets end a run in the timeline's order: it is, in every bit, the run that had so many rounds from the start."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import command
from conftest import Raw, Simulate, digits, override, quadratic
from peers_runs import GOSSIP, peers
from test_resume import CONCURRENT, assert_same, killed
from witness import LatePool, execute

import raysim
from raysim import Result, ScenarioError

TWO: Raw = {"data__clients": 8, "run__evaluate_every": 2}
ASYNCHRONOUS = digits(
    world=override(CONCURRENT, dispatch__concurrency=6), algorithm={"name": "fedbuff", "buffer": 3}, **TWO
)
RUNS: dict[str, Raw] = {
    "asynchronous": ASYNCHRONOUS,
    "stateful clients": digits(algorithm="scaffold", **TWO),
    "empty at first": digits(**TWO),
    "peers": peers(run__evaluate_every=2),
    "peers without waiting": peers(algorithm="dfedadmm", world=GOSSIP, run__evaluate_every=2),
}


def run(raw: Raw, out: Path, **options: Any) -> Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, **{"inline": True, **options})


def until(raw: Raw, **keys: Any) -> Raw:
    return override(raw, run__until=keys)


def spent(result: Result, rounds: int, *columns: str) -> float:
    """What the table `steps` counts of the first rounds."""
    steps = result.pandas("steps").query("round < @rounds")
    return float(steps[list(columns)].to_numpy().sum())


@pytest.mark.parametrize(
    ("name", "key"),
    [*((name, "bytes") for name in RUNS), *((n, k) for n in ("asynchronous", "peers") for k in ("flops", "up_bytes"))],
)
def test_a_run_that_has_spent_its_budget_is_one_of_so_many_rounds(name: str, key: str, tmp_path: Path) -> None:
    """It ends with the first evaluation, of one every two rounds, by which it has spent it: that after round 4."""
    wanted = run(override(RUNS[name], run__rounds=4), tmp_path)
    columns = {"bytes": ("up_bytes", "down_bytes"), "flops": ("client_flops",)}.get(key, (key,))
    result = run(until(override(RUNS[name], run__rounds=10), **{key: spent(wanted, 3, *columns) + 1}), tmp_path)
    assert_same(result, wanted)
    assert (result.info["ended_by"], wanted.info["ended_by"]) == (key, "rounds")
    assert f"run.until.{key}=" in command("show", result.folder).stdout


@pytest.mark.parametrize("name", RUNS)
def test_jobs_that_were_handed_out_ahead_are_for_nothing(name: str, tmp_path: Path) -> None:
    """A pool that works late is as far ahead as one of several workers when the budget is spent."""
    wanted = run(override(RUNS[name], run__rounds=4), tmp_path)
    raw = until(override(RUNS[name], run__rounds=10), bytes=spent(wanted, 3, "up_bytes", "down_bytes") + 1)
    (tmp_path / "late").mkdir()
    assert_same(execute(raw, tmp_path / "late", LatePool()), wanted)


def test_rounds_need_not_be_given(tmp_path: Path) -> None:
    """Who is updated goes on as long as it takes, and updates are counted when a round is over."""
    raw = override(ASYNCHRONOUS, run={"evaluate_every": 2})
    result = run(until(raw, updates=10), tmp_path)
    assert result.info["totals"]["used"] == 12  # four steps of three
    assert_same(result, run(override(ASYNCHRONOUS, run__rounds=4), tmp_path))
    assert result.info["ended_by"] == "updates"


def test_time_is_kept_to_within_a_round(simulate: Simulate) -> None:
    """Rounds last 2 s. At 5 s two are over, and client 0, which is picked again at 4 s, has not arrived."""
    delay = {"name": "constant", "value": 2.0, "unit": "seconds"}
    raw = quadratic([1.0], {"name": "fedavg"}, {"dispatch": {"per_round": 1}, "delay": delay}, 9, local__lr=0.5)
    result = simulate(until(raw, virtual_time=5.0))
    assert result.vectors()["w"].tolist() == [0.75]
    last = result.pandas("evaluations").iloc[-1]
    assert (last.virtual_time, last.step) == (5.0, 2)
    assert (
        result.info["totals"] | {"virtual_time": 5.0, "rounds": 2, "used": 2, "unfinished": 1} == result.info["totals"]
    )
    assert result.info["ended_by"] == "virtual_time"
    exact = simulate(until(raw, virtual_time=4.0))
    assert exact.info["totals"]["unfinished"] == 0


@pytest.mark.parametrize("name", ["peers", "peers without waiting"])
def test_peers_end_with_the_last_round_that_is_over_in_time(name: str, tmp_path: Path) -> None:
    timed = override(RUNS[name], world={**RUNS[name]["world"], "delay": GOSSIP["delay"]}, run__rounds=4)
    wanted = run(timed, tmp_path)
    times = run(override(timed, run__rounds=5), tmp_path).pandas("steps").virtual_time.tolist()
    raw = override(timed, run={"evaluate_every": 2, "until": {"virtual_time": (times[3] + times[4]) / 2}})
    assert_same(run(raw, tmp_path), wanted)


def test_a_metric_is_read_on_validation_samples_and_waited_for(tmp_path: Path) -> None:
    """A run ends at the first evaluation that is good enough, or after as many as it has patience for."""
    raw = digits(data__validation=0.2, run__rounds=12, run__evaluate_every=1)
    whole = run(raw, tmp_path)
    found = whole.pandas("evaluations").query("split == 'validation' and metric == 'accuracy'").value.tolist()
    enough = sorted(found)[len(found) // 2]
    first = next(place for place, value in enumerate(found) if value >= enough)
    reached = run(until(raw, metric="accuracy", at_least=enough), tmp_path)
    assert (reached.info["totals"]["rounds"], reached.info["ended_by"]) == (first + 1, "at_least")
    losing = [place for place in range(2, len(found)) if max(found[: place - 1]) >= max(found[place - 1 : place + 1])]
    patient = run(until(raw, metric="accuracy", patience=2), tmp_path)
    assert patient.info["totals"]["rounds"] == (losing[0] + 1 if losing else 12)


@pytest.mark.parametrize("name", ["asynchronous", "peers"])
def test_a_budget_holds_through_kills_and_may_be_raised(name: str, tmp_path: Path) -> None:
    raw = override(RUNS[name], run__rounds=10, run__checkpoint={"every_rounds": 1, "at_end": True})
    wanted = run(override(raw, run__rounds=4), tmp_path)
    budget = spent(wanted, 3, "up_bytes", "down_bytes") + 1
    left = killed(until(raw, bytes=budget), tmp_path, after=2)
    result = raysim.resume(left, inline=True)
    assert_same(result, wanted)
    longer = raysim.resume(left, ["run.until=null"], inline=True)
    assert_same(longer, run(raw, tmp_path))
    assert longer.info["resumed"][-1]["round"] >= 2


def test_a_run_that_goes_on_ends_no_sooner_than_it_was_to(tmp_path: Path) -> None:
    raw = override(ASYNCHRONOUS, run={"evaluate_every": 2, "checkpoint": {"at_end": True}})
    folder = run(until(raw, bytes=1.0), tmp_path).folder
    for change, told in (
        ("run.until.bytes=0.5", "run.until.bytes: must be at least 1, as the run was to have, got 0.5"),
        ("run.until.updates=1", "run.until.updates: must be null, as the run was to have, got 1"),
    ):
        with pytest.raises(ScenarioError, match=told):
            raysim.resume(folder, [change], inline=True)
    with pytest.raises(raysim.CannotGoOn, match="give it more time"):
        raysim.resume(folder, inline=True)


def test_evaluations_by_time_show_the_model_as_it_is_then(simulate: Simulate) -> None:
    """Steps are at 2, 4, 6 and 8 s, and the evaluations at 3, 6 and 9 s see 1, 3 and 4 of them."""
    delay = {"name": "constant", "value": 2.0, "unit": "seconds"}
    world = {"dispatch": {"concurrency": 1}, "delay": delay}
    raw = quadratic([1.0], {"name": "fedbuff", "buffer": 1}, world, 9, local__lr=0.5)
    result = simulate(override(raw, run={"until": {"virtual_time": 9.0}, "evaluate_every": {"virtual_time": 3.0}}))
    rows = result.pandas("evaluations").query("metric == 'loss'")
    assert list(zip(rows.virtual_time, rows.step, strict=True)) == [(3.0, 1), (6.0, 3), (9.0, 4)]
    assert rows.value.tolist() == [0.5 * 0.25**steps for steps in (1, 3, 4)]


@pytest.mark.parametrize(("name", "every"), [("asynchronous", 1.0), ("peers", 3.0)])
def test_evaluations_by_time_and_a_budget_that_they_end_stand_a_kill(name: str, every: float, tmp_path: Path) -> None:
    raw = override(RUNS[name], world={**RUNS[name]["world"], "delay": GOSSIP["delay"]})
    raw = override(raw, run={"evaluate_every": {"virtual_time": every}, "checkpoint": {"every_rounds": 1}})
    wanted = run(until(raw, virtual_time=4 * every), tmp_path)
    times = sorted(set(wanted.pandas("evaluations").virtual_time))
    assert [math.ceil(time / every) for time in times] == [1, 2, 3, 4]
    budget = spent(wanted, 99, "up_bytes", "down_bytes")
    left = killed(until(raw, bytes=budget), tmp_path, after=2)
    result = raysim.resume(left, inline=True)
    assert result.info["totals"]["used"] == wanted.info["totals"]["used"]
    assert_same(result, run(until(raw, bytes=budget), tmp_path))


def test_a_dry_run_knows_its_end(simulate: Simulate) -> None:
    raw = override(ASYNCHRONOUS, run={})
    plan = simulate(
        until(raw, virtual_time=9.0, flops=9.0, patience=2, metric="loss"), "--dry", "--set", "data.validation=0.2"
    )
    assert plan.info["totals"]["virtual_time"] == 9.0
    assert "run.until: an end by flops or patience counts only while clients train" in plan.info["notes"][0]
    assert plan.pandas("steps").up_bytes.isna().all()  # nothing asks for bytes, so no model was made
    with pytest.raises(ScenarioError, match="which does not train, got one by flops; add virtual_time, updates or"):
        raysim.run(until(raw, flops=9.0), dry=True)
    with pytest.raises(raysim.RunFailed, match="must have another key in addition to bytes where clients send and"):
        simulate(until({**raw, "algorithm": "local_only", "world": {"dispatch": {"per_round": 2}}}, bytes=9.0), "--dry")


TOP: Raw = {"name": "top_k", "share": 0.1, "memory": "ef14"}
FADING: Raw = {"name": "top_k", "share": {"name": "polynomial", "start": 0.5, "end": 0.1, "length": 4}}
RATES = {key: {"name": "constant", "value": 1e5} for key in ("flops_per_s", "up_bytes_per_s", "down_bytes_per_s")}
COMPUTED: Raw = {"world": {"dispatch": {"per_round": 3}, "delay": {"name": "compute", **RATES}}}
BY_TIME: Raw = {
    "world__delay": {"name": "exponential", "mean": 1.0, "unit": "seconds"},
    "run__evaluate_every": {"virtual_time": 0.9},
}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("asynchronous", {}),
        ("asynchronous", {"uplink": [TOP, {"name": "quantise", "bits": 8}], "downlink": [{**TOP, "memory": "shadow"}]}),
        ("empty at first", {"algorithm": "fedproto", **COMPUTED}),
        ("empty at first", {"algorithm": "fedmd", "public__samples": 20, **COMPUTED}),
        ("empty at first", {"algorithm": "fedproto", "downlink": [{"name": "half", "entries": ["prototypes"]}]}),
        ("asynchronous", {**BY_TIME, "uplink": [{**FADING, "share": {**FADING["share"], "over": "versions"}}]}),
        ("peers", {}),
        ("peers", {"uplink": [FADING]}),
        ("peers without waiting", {"uplink": [FADING], "run__rounds": 12}),
    ],
    ids=[
        "plain",
        "codecs",
        "fedproto",
        "fedmd",
        "fedproto in half",
        "by time",
        "peers",
        "peers with codecs",
        "peers without waiting",
    ],
)
def test_a_dry_run_counts_bytes_and_ends_with_the_run(name: str, more: Raw, simulate: Simulate) -> None:
    raw = override(RUNS[name], **{"run__rounds": None, **more})
    first = simulate(until(raw, updates=24))
    real, dry = (
        simulate(until(raw, bytes=spent(first, 99, "up_bytes", "down_bytes") - 1), *o) for o in ((), ("--dry",))
    )
    assert (dry.info["totals"], dry.info["ended_by"]) == (real.info["totals"], "bytes")
    assert real.info["ended_by"] == "bytes"
    for table in ("updates", "steps", "exchanges"):
        told = dry.pandas(table).drop(columns="run").dropna(axis=1, how="all")
        assert not len(told) or {"up_bytes", "bytes"} & {*told.columns}
        pd.testing.assert_frame_equal(told, real.pandas(table)[told.columns])


@pytest.mark.parametrize(
    ("run_block", "told"),
    [
        ({"until": {"metric": "accuracy", "at_least": 0.8}}, "run: until.metric may never be reached, so rounds must"),
        ({"rounds": 5, "until": {"metric": "accuracy", "at_least": 0.8}}, "run.until.metric: needs validation samples"),
        ({"rounds": 5, "until": {"patience": 3}}, "run.until: metric must be given, because patience is about it"),
        ({"rounds": 5, "until": {"metric": "accuracy"}}, "run.until: metric accuracy needs at_least, at_most or"),
        ({"until": {}}, "run.until: must have a key"),
        ({"until": {"virtual_tim": 3}}, "did you mean 'virtual_time'"),
    ],
)
def test_an_end_that_is_unclear_is_refused(run_block: Raw, told: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        raysim.parse_scenario(digits(run=run_block))
    assert told in str(refused.value)


def test_budgets_of_bytes_have_units() -> None:
    until = raysim.parse_scenario(
        override(ASYNCHRONOUS, run={"until": {"up_bytes": "2.5MB", "bytes": "1 KiB"}})
    ).run.until
    assert until is not None and until.budgets == {"up_bytes": 2.5e6, "bytes": 1024.0}
    with pytest.raises(
        raysim.ScenarioError, match=r"run\.until\.bytes: must be a number of bytes, such as .* got '5mb'"
    ):
        raysim.parse_scenario(override(ASYNCHRONOUS, run={"until": {"bytes": "5mb"}}))
