"""A run in which something is not finite says so, and ends there unless it is to go on."""

from pathlib import Path
from typing import Any

import pytest
from command_line import command, write
from conftest import Raw, digits, quadratic
from peers_runs import peers

import raysim
from raysim.sweep import load_sweep, run_all
from raysim.sweep.search import search
from results import load
from results.report import report

EVERYONE: Raw = {"dispatch": {"per_round": 6}}


def exploding(what: str = "loss", **more: Any) -> Raw:
    """Six clients, all of which take part in each of five rounds. Client 3 diverges in round 2."""
    algorithm = {"name": "toys_diverging:Explodes", "what": what}
    small = {"data__clients": 6, "run__rounds": 5, "run__evaluate_every": 1, "resources__chunk": 6}
    return digits(**{"algorithm": algorithm, "world": EVERYONE, **small, **more})


def run(raw: Raw, out: Path, **options: Any) -> raysim.Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, **{"inline": True, **options})


@pytest.mark.parametrize(
    ("what", "told", "client", "version", "round"),
    [
        ("loss", "the loss of client 3", 3, 2, 2),
        ("update", "the update 'delta' of client 3", 3, 2, 2),
        ("model", "'w' of the server's model", None, 2, 1),
    ],
)
def test_a_run_ends_where_something_is_not_finite(
    what: str, told: str, client: int | None, version: int, round: int, tmp_path: Path
) -> None:
    """The clients of a step are summed in one chunk, and yet it is known whose update it was."""
    result = run(exploding(what), tmp_path)
    assert result.info["status"] == "diverged"
    found = result.info["diverged"]
    assert (found["what"], found["client"], found["version"], found["round"]) == (told, client, version, round)
    steps, evaluations = result.pandas("steps"), result.pandas("evaluations")
    assert steps["round"].tolist() == list(range(round + 1))  # that of the divergence is the last
    assert set(evaluations["round"]) == set(range(round))
    assert result.info["totals"]["steps"] == round + 1
    assert result.digest
    assert (result.info["left"]["step"], result.vectors()["w"].ndim) == (round, 1)  # of the last finite evaluation


@pytest.mark.parametrize("what", ["loss", "model"])
def test_a_run_may_go_on_and_still_says_it(what: str, tmp_path: Path) -> None:
    stopped = run(exploding(what), tmp_path)
    result = run(exploding(what, run__on_divergence="go_on"), tmp_path)
    assert result.info["status"] == "finished"
    assert result.info["diverged"] == stopped.info["diverged"]
    assert result.info["totals"]["rounds"] == 5
    assert result.vectors()["w"].ndim == 1


def test_predictions_that_are_nan_are_wrong(tmp_path: Path) -> None:
    """They would else be as accurate as the share of the first label."""
    result = run(exploding("model", run__on_divergence="go_on"), tmp_path)
    frame = result.pandas("evaluations").pivot(index="step", columns="metric", values="value")
    assert (frame.accuracy > 0).tolist() == frame.loss.notna().tolist() == [True] + 4 * [False]


def test_large_numbers_are_finite(tmp_path: Path) -> None:
    result = run(exploding("large"), tmp_path)
    assert (result.info["status"], result.info["diverged"]) == ("finished", None)


def test_a_learning_rate_that_is_too_large_is_told(tmp_path: Path) -> None:
    """By the client's own loss or update, on real data and with a shipped algorithm."""
    result = run(digits(local__lr=1e30, run__rounds=20), tmp_path)
    assert result.info["status"] == "diverged"
    assert result.info["diverged"]["client"] in result.pandas("updates").query("status == 'used'").client.tolist()


def test_a_loss_of_the_servers_model_counts_too(tmp_path: Path) -> None:
    """|x - a|^2 overflows, where x and its gradient are finite: lr 1e19 jumps far beyond the optimum."""
    raw = quadratic([1.0], "fedavg", {"dispatch": {"per_round": 1}}, 3, local__lr=1e20, run__evaluate_every=1)
    result = run(raw, tmp_path)
    assert result.info["status"] == "diverged"
    assert result.info["diverged"]["what"] == "the loss of the server's model"
    assert result.info["diverged"]["round"] == 0
    assert len(result.pandas("evaluations")) == 1


def test_a_loss_of_a_clients_own_model_is_that_clients(tmp_path: Path) -> None:
    result = run(exploding("personal", data__local_test=0.3, run__evaluate_clients="all"), tmp_path)
    found = result.info["diverged"]
    assert (found["what"], found["client"], found["version"]) == ("the loss of client 3's own model", 3, 2)


@pytest.mark.parametrize(
    ("what", "told", "version"), [("local", "the message 'w' of peer 4", 2), ("mix", "the state 'w' of peer 4", 2)]
)
def test_a_peer_that_diverges_is_named(what: str, told: str, version: int, tmp_path: Path) -> None:
    raw = peers(algorithm={"name": "toys_diverging:ExplodingPeer", "what": what})
    result = run(raw, tmp_path)
    found = result.info["diverged"]
    assert (result.info["status"], found["what"], found["client"]) == ("diverged", told, 4)
    assert (found["version"], found["round"]) == (version, 2)
    assert result.pandas("steps")["round"].tolist() == [0, 1, 2]
    went_on = run({**raw, "run": {**raw["run"], "on_divergence": "go_on"}}, tmp_path)
    assert (went_on.info["status"], went_on.info["diverged"]) == ("finished", found)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(
    "raw",
    [
        exploding("update", resources__chunk=2, run__rounds=30),
        peers(algorithm={"name": "toys_diverging:ExplodingPeer"}, run__rounds=30),
    ],
)
@pytest.mark.slow
def test_a_run_ends_on_ray_where_it_ends_in_this_process(raw: Raw, tmp_path: Path) -> None:
    here, there = run(raw, tmp_path), run(raw, tmp_path, inline=False)
    assert here.info["status"] == there.info["status"] == "diverged"
    assert here.info["diverged"] == there.info["diverged"]
    assert here.info["totals"] == there.info["totals"]
    assert here.digest == there.digest


# --- where it is told -------------------------------------------------------------------------------------------------


TOLD = "the loss of client 3 was not finite in round 2 (model version 2)"


def test_the_command_line_says_it_and_does_not_exit_with_0(tmp_path: Path) -> None:
    bad = write(tmp_path, exploding(name="bad"), "bad")
    out = tmp_path / "runs"
    answer = command("run", bad, "--inline", "--out", out)
    assert answer.exit_code == 3
    assert TOLD in " ".join(answer.output.split())
    (folder,) = out.glob("bad-*")
    shown = command("show", folder)
    assert shown.exit_code == 0
    for text in (TOLD, "mostly helps a smaller local.lr"):
        assert text in " ".join(shown.output.split())


def test_comparisons_and_reports_name_it(tmp_path: Path) -> None:
    bad = run(exploding(), tmp_path / "runs")
    went_on = run(exploding(run__on_divergence="go_on"), tmp_path / "runs")
    run(exploding(algorithm="fedavg"), tmp_path / "runs")
    answer = command("compare", tmp_path / "runs", "--by", "algorithm", "--by", "run.on_divergence")
    told = " ".join((answer.output + answer.stderr).split())
    assert f"{bad.folder}: diverged, {TOLD}; left out" in told
    assert f"{went_on.folder}: diverged, {TOLD}; counts" in told
    assert report(load(tmp_path / "runs"), sections=()).html.count(TOLD) == 2


@pytest.mark.usefixtures("here")
def test_in_a_sweep_a_run_that_diverges_stops_no_other_and_is_not_run_again(tmp_path: Path) -> None:
    plan = load_sweep(write(tmp_path, exploding(), "sweep"), ["algorithm.what=loss,none"])
    outcomes = run_all(plan.scenarios(), out=tmp_path / "runs", inline=True, parallel=1)
    assert [outcome.status for outcome in outcomes] == ["diverged", "finished"]
    assert outcomes[0].why == TOLD
    again = run_all(plan.scenarios(), out=tmp_path / "runs", inline=True, parallel=1)
    assert [outcome.status for outcome in again] == ["done before", "done before"]
    told = command("sweep", tmp_path / "sweep.yaml", "--set", "algorithm.what=loss,none", "--out", tmp_path, "--inline")
    assert f"diverged what=loss: {TOLD}; what usually helps: a smaller local.lr " in told.stdout


@pytest.mark.usefixtures("here")
def test_a_search_takes_what_diverges_for_the_worst(tmp_path: Path) -> None:
    over = {"local.lr": {"choices": [0.1, 1e30]}}
    tuned: Raw = {"sweep": {"search": {"over": over, "trials": 5}}}
    path = write(tmp_path, digits(world=EVERYONE, run__rounds=2) | tuned)
    for _ in range(2):  # the second time, all runs were done before
        trials = list(search(load_sweep(path), out=tmp_path / "runs", inline=True, parallel=1))
        found = {trial.values["local.lr"]: (trial.status, trial.score) for trial in trials}
        assert found[1e30] == ("diverged", -float("inf"))
        assert found[0.1][0] == "finished"


def test_a_run_that_diverged_can_go_on_from_before(tmp_path: Path) -> None:
    """It ends in the same place again, or goes on as if it had never ended."""
    every: Raw = {"run__checkpoint": {"every_rounds": 1, "at_end": False}}
    expected = run(exploding("update", run__on_divergence="go_on"), tmp_path / "expected")
    first = run(exploding("update", **every), tmp_path / "runs")
    again = raysim.resume(first.folder, inline=True)
    assert (again.info["status"], again.digest) == ("diverged", first.digest)
    on = raysim.resume(first.folder, ["run.on_divergence=go_on"], inline=True)
    assert (on.info["status"], on.digest) == ("finished", expected.digest)
    assert on.info["diverged"] == expected.info["diverged"]
