"""Sweeps: what they expand to, how their runs are carried out, and searches."""

import threading
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from conftest import Raw, digits
from ruamel.yaml import YAML
from stopping import stop_after
from typer.testing import Result
from waiting import PATIENT_S

import raysim
from raysim.sweep import load_sweep, run_all
from raysim.sweep.batch import labels
from raysim.sweep.slots import Slots

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a small scenario with a sweep, gives its path."""

    def to(sweep: Raw | None, **more: Any) -> Path:
        path = tmp_path / "scenario.yaml"
        raw = digits(**{"run__rounds": 4, "run__evaluate_every": 2} | more)
        YAML().dump(raw | ({} if sweep is None else {"sweep": sweep}), path)
        return path

    return to


def sweep(path: Path, out: Path, *words: Any, parallel: int = 1) -> Result:
    return command("sweep", path, "--inline", "--out", out, "--parallel", parallel, *words)


# --- what a sweep expands to ------------------------------------------------------------------------------------------


def test_every_case_with_every_combination_seeds_innermost(write: Any) -> None:
    cases = {"slow": {"local.lr": 0.01, "algorithm": "fedavg"}, "fast": {"local": {"lr": 1.0, "batch_size": 32}}}
    path = write({"grid": {"seed": [0, 1], "world.delay.sigma": [1, 2]}, "cases": cases})
    plan = load_sweep(path)
    made = [(s.name, s.algorithm.name, s.local.lr, s.world.delay.sigma, s.seed) for s in plan.scenarios()]  # type: ignore[union-attr]
    slow = [("digits-slow", "fedavg", 0.01, sigma, seed) for sigma in (1, 2) for seed in (0, 1)]
    fast = [("digits-fast", "fedbuff", 1.0, sigma, seed) for sigma in (1, 2) for seed in (0, 1)]
    assert made == slow + fast
    assert [len(group) for group in plan.groups()] == [2] * 4
    assert [scenario.local.batch_size for scenario in plan.scenarios()] == [16] * 4 + [32] * 4


def test_a_case_that_would_drop_settings_of_the_file_is_refused(write: Any) -> None:
    """With `local: {lr: 1.0}` for `local.lr: 1.0`, batches would silently have the size by default."""
    path = write({"cases": {"slow": {"local.lr": 0.01}, "fast": {"local": {"lr": 1.0}}}})
    for load in (lambda: load_sweep(path), lambda: raysim.load_scenario(path, case="fast")):
        with pytest.raises(raysim.ScenarioError, match="also sets batch_size; set only"):
            load()
    world = {"cases": {"few": {"world.dispatch": {"concurrency": 3}}}}  # keys that exclude each other
    assert load_sweep(write(world)).scenarios()[0].world.dispatch.concurrency == 3


def test_the_command_line_adds_values_and_overrules_the_file(write: Any) -> None:
    path = write({"grid": {"seed": [7, 8, 9], "local.lr": [0.1]}, "cases": {"a": {"run.rounds": 3}}})
    plan = load_sweep(path, ["seed=0,1", "local.lr=0.5", "run.rounds=2", "algorithm=fedavg,{name: fedbuff, buffer: 3}"])
    made = [(s.seed, s.local.lr, s.run.rounds, s.algorithm.name) for s in plan.scenarios()]
    assert made == [(seed, 0.5, 2, name) for name in ("fedavg", "fedbuff") for seed in (0, 1)]
    lists = load_sweep(write(None), ["model.hidden=[8],[8, 4]"]).scenarios()
    assert [scenario.model.hidden for scenario in lists] == [(8,), (8, 4)]  # type: ignore[union-attr]


def test_a_block_that_is_set_does_not_undo_what_varies_in_it(write: Any) -> None:
    for words in (["algorithm=fedasync", "algorithm.alpha=0.2,0.4"], ["algorithm.alpha=0.2,0.4", "algorithm=fedasync"]):
        made = load_sweep(write(None), words).scenarios()
        assert [s.algorithm.model_dump()["alpha"] for s in made] == [0.2, 0.4]


def test_labels_name_what_differs(write: Any) -> None:
    scenarios = load_sweep(write(None), ["seed=0,1", "algorithm=fedavg,fedbuff"]).scenarios()
    assert labels(scenarios) == ["fedavg, seed=0", "fedavg, seed=1", "fedbuff, seed=0", "fedbuff, seed=1"]
    cases = {case: {"algorithm": case, "local.lr": lr} for case, lr in [("fedavg", 0.1), ("fedbuff", 0.2)]}
    scenarios = load_sweep(write({"cases": cases, "grid": {"seed": [0, 1]}})).scenarios()
    assert labels(scenarios) == [f"digits-{case}, seed={seed}" for case in cases for seed in (0, 1)]


CASES: Raw = {
    "average": {"algorithm": "fedavg"},
    "small": {"algorithm": {"name": "fedbuff", "buffer": 2}},
    "large": {"algorithm": {"name": "fedbuff", "buffer": 9}},
}


def test_a_single_case_is_a_run_with_its_name(write: Any, tmp_path: Path) -> None:
    path = write({"grid": {"seed": [5, 6]}, "cases": CASES})
    answer = command("run", path, "--inline", "--case", "small", "--set", "run.rounds=2", "--out", tmp_path / "runs")
    assert answer.exit_code == 0, answer.output
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("digits-small-")
    made = raysim.Result(folder).info["scenario"]
    assert (made["algorithm"]["buffer"], made["seed"], made["run"]["rounds"]) == (2, 0, 2)
    assert raysim.load_scenario(path, ["run.rounds=2"], case="small").resolved() == made


def test_some_cases_are_taken_by_name(write: Any) -> None:
    plan = load_sweep(write({"cases": CASES, "grid": {"seed": [0, 1]}}), cases=["large", "average"])
    assert [s.name for s in plan.scenarios()] == ["digits-large"] * 2 + ["digits-average"] * 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "--case", "huge"], "--case: must be one of average, small, large, got huge"),
        (["sweep", "--cases", "small,huge"], "--cases: must be some of average, small, large, got huge"),
        (["sweep", "--set", "algorithm.sever_lr=1"], "algorithm.sever_lr: unknown key"),
        (["run"], "run it with `raysim sweep`, or one of its cases with --case, such as --case average"),
    ],
)
def test_cases_and_keys_that_are_not_there_are_refused(write: Any, tmp_path: Path, words: list[str], text: str) -> None:
    name, *options = words
    answer = command(name, write({"cases": CASES}), "--inline", "--out", tmp_path / "runs", *options)
    assert answer.exit_code == 2
    assert text in " ".join(answer.output.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({}, "sweep: must have grid, cases or search in it, got {}"),
        ([1], "sweep: must have grid, cases or search in it, got [1]"),
        ({"gird": {"seed": [1]}}, "sweep.gird: unknown key (did you mean 'grid'?)"),
        ({"grid": {"seed": 3}}, "sweep.grid.seed: must be a list, got 3"),
        ({"grid": {"seed": []}}, "sweep.grid.seed: must have at least 1, got []"),
        ({"grid": {"lr": [1]}}, "lr: unknown key"),
        ({"grid": {"local.lr": [0.1, -1.0]}}, "local.lr: must be greater than 0, got -1.0 (in run local.lr=-1.0)"),
        ({"grid": {"seed.x": [1]}}, "seed.x: seed must be a block to set seed.x in, got 0"),
        ({"cases": {"a b": {"seed": 1}}}, "sweep.cases.a b: must be text that matches"),
        ({"search": {"over": {"local.lr": {"low": 1.0, "high": 0.1}}}}, "must have low < high, or choices"),
        ({"search": {"over": {"local.lr": {"low": 0, "high": 1, "log": True}}}}, "low must be positive where log"),
        ({"search": {"over": {"local.lr": {"low": 0.1, "high": 1, "choices": [1]}}}}, "got both"),
        ({"search": {"over": {}}}, "sweep.search.over: must have at least 1, got {}"),
    ],
)
def test_a_wrong_sweep_is_refused_before_anything_runs(write: Any, block: Any, text: str, tmp_path: Path) -> None:
    answer = command("check", write(block, seed=0))
    assert answer.exit_code == 2
    assert text in answer.stderr
    assert sweep(tmp_path / "scenario.yaml", tmp_path / "runs").exit_code == 2
    assert not (tmp_path / "runs").exists()


def test_wrong_words_on_the_command_line_are_told_by_their_option(write: Any, tmp_path: Path) -> None:
    answer = sweep(write(None), tmp_path, "--set", "seed", "--set", "x=[", "--search", "local.lr=1,2,3")
    assert answer.exit_code == 2
    for text in ("--set: must be key.path=value, got 'seed'", "--set: x must be set to YAML, got '['"):
        assert text in answer.stderr
    answer = sweep(write(None), tmp_path, "--search", "local.lr=1,2,3", "--set", "local.lr=", "--seeds", "")
    assert "--search: local.lr must be LOW,HIGH or LOW,HIGH,log or a block, got [1, 2, 3]" in answer.stderr
    assert "--set: local.lr must be set to a value, got none" in answer.stderr
    assert "--set: seed must be set to a value, got none" in answer.stderr


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["local.lr=0.5"], "sweep.search.over.local.lr: is to be tuned, but is also set or in the grid"),
        (["local.lr=0.5,0.6"], "sweep.search.over.local.lr: is to be tuned, but is also set or in the grid"),
        ([], "sweep.search.over.seed: must not be tuned"),
    ],
)
def test_what_is_given_cannot_be_tuned(write: Any, tmp_path: Path, given: list[str], text: str) -> None:
    words = [word for key in given for word in ("--set", key)]
    tuned = "local.lr=0.1,1.0" if given else "seed=0,5"
    answer = sweep(write(None), tmp_path, "--search", tuned, *words)
    assert answer.exit_code == 2
    assert text in answer.stderr


# --- how its runs are carried out -------------------------------------------------------------------------------------


def test_a_name_that_is_set_is_that_of_runs_and_folder(write: Any, tmp_path: Path) -> None:
    path = write({"cases": {"slow": {"local.lr": 0.1}, "fast": {"local.lr": 0.5}}})
    assert sweep(path, tmp_path, "--set", "name=other").exit_code == 0
    assert [run.info["name"] for run in raysim.load(tmp_path / "other").runs] == ["other-fast", "other-slow"]
    assert [folder.name for folder in tmp_path.iterdir() if folder.is_dir()] == ["other"]


def test_equal_scenarios_run_once(write: Any, tmp_path: Path) -> None:
    path = write(None)
    scenarios = [load_sweep(path, [f"resources.client_actors={number}"]).scenarios()[0] for number in (1, 2, 3)]
    outcomes = run_all(scenarios, out=tmp_path / "runs", inline=True)
    assert [outcome.status for outcome in outcomes] == ["finished"] * 3
    (again,) = run_all(load_sweep(path), out=tmp_path / "runs", inline=True)
    assert (again.status, again.folder) == ("done before", outcomes[0].folder)
    tuned = load_sweep(write({"search": SEARCH}))
    with pytest.raises(raysim.ScenarioError, match="must not be there for runs that are known"):
        run_all(tuned, out=tmp_path / "runs", inline=True)
    assert len({outcome.folder for outcome in outcomes}) == 1


def finished_beside_a_failure(write: Any, out: Path, *words: str) -> dict[str, str]:
    """Carries out a sweep of which one run must fail, be named and stop no other; gives the digests of the others."""
    path = write({"grid": {"algorithm": ["fedavg", "toys:Failing", "fedbuff"]}})
    answer = command("sweep", path, "--out", out, *words)
    assert answer.exit_code == 1
    assert "3 runs: 2 finished, 1 failed" in answer.stdout
    assert "failed toys:Failing" in answer.stdout.replace("\n", "")
    assert "this client divides by zero" in answer.stdout.replace("\n", " ")
    runs = raysim.load(out).runs
    assert sorted(run.status for run in runs) == ["failed", "finished", "finished"]
    return {
        run.info["scenario"]["algorithm"]["name"]: run.info["digest"]["run"] for run in runs if run.status == "finished"
    }


def test_a_run_that_fails_stops_no_other_and_is_named(write: Any, tmp_path: Path) -> None:
    finished_beside_a_failure(write, tmp_path, "--inline")


@pytest.mark.ray
@pytest.mark.slow
def test_runs_side_by_side_on_ray_have_the_same_bits_and_one_may_fail(
    ray_session: None, write: Any, tmp_path: Path
) -> None:
    on_ray = finished_beside_a_failure(
        write, tmp_path / "ray", "--parallel", "2", "--set", "resources.cpus_per_client=0.5"
    )
    assert on_ray == finished_beside_a_failure(write, tmp_path / "inline", "--inline")


def test_the_first_exception_ends_all_runs_whichever_run_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = threading.Event()

    def carry_out(place: int) -> None:
        if place == 1:
            raise KeyboardInterrupt
        assert interrupted.wait(PATIENT_S)

    monkeypatch.setattr("raysim.sweep.slots.Child.interrupt", lambda child: interrupted.set())
    with pytest.raises(KeyboardInterrupt):
        list(Slots(2, None, inline=True).each(carry_out, [0, 1]))


def test_an_interrupted_sweep_tells_how_it_goes_on(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("raysim.cli.sweep.outcomes_of", interrupted)
    answer = sweep(write({"grid": {"seed": [0, 1]}}), tmp_path / "runs")
    assert answer.exit_code == 130
    assert answer.stdout.splitlines()[-1] == "the sweep was interrupted; the same command continues it"


# --- search -----------------------------------------------------------------------------------------------------------


SEARCH = {"over": {"local.lr": {"low": 1e-4, "high": 1.0, "log": True}}, "trials": 8, "batch": 2}


@pytest.mark.slow
def test_a_search_depends_on_its_file_alone(write: Any, tmp_path: Path) -> None:
    """One process or two, fresh or with all its runs done before: the same trials, the same best."""
    path = write({"grid": {"seed": [0, 1]}, "search": SEARCH})
    first = sweep(path, tmp_path / "a", parallel=2)
    assert first.exit_code == 0
    assert "8 trials: " in first.stdout
    assert sweep(path, tmp_path / "b").stdout == first.stdout
    runs = len(raysim.load(tmp_path / "a"))
    assert sweep(path, tmp_path / "a").stdout == first.stdout
    assert len([run for run in raysim.load(tmp_path / "a").runs if run.status == "finished"]) <= runs


def test_the_best_trial_is_the_best_of_the_runs(write: Any, tmp_path: Path) -> None:
    """Given on one line, however long, as options to run it again with; the loss is minimised."""
    keys = ["local.lr", "local.optimizer.momentum", "local.weight_decay"]
    over = SEARCH["over"] | {key: {"low": 1e-9, "high": 1e-8} for key in keys[1:]}
    path = write({"search": SEARCH | {"over": over, "metric": "loss", "trials": 6}})
    answer = sweep(path, tmp_path / "runs")
    runs = raysim.load(tmp_path / "runs")
    frame = runs.pandas("evaluations", ["metric", "round", "value"], keys=keys)
    last = frame[(frame.metric == "loss") & (frame["round"] == frame["round"].max())]
    best = last.sort_values("value").iloc[0]
    assert " ".join(f"--set {key}={best[key]}" for key in keys) in answer.stdout
    assert f"{best.value:.4g}" in answer.stdout


def test_a_search_names_trials_that_fail_and_groups_without_a_best_one(write: Any, tmp_path: Path) -> None:
    """Each failure is on one line, whose folder can be copied."""
    cases = {"bad": {"algorithm": {"name": "toys_endings:Ends", "how": "KeyError"}}, "wild": {"algorithm": "fedavg"}}
    over = {"local.lr": {"low": 1e29, "high": 1e30}}
    path = write({"cases": cases, "search": {"over": over, "trials": 1, "batch": 1}})
    answer = sweep(path, tmp_path / "a long name so that a line would be wrapped in a narrow terminal")
    assert answer.exit_code == 1
    lines = answer.stdout.splitlines()
    assert "2 trials: 1 failed, 1 diverged" in lines
    assert (
        sum(line.startswith("best of ") and line.endswith(": none, because no trial finished") for line in lines) == 2
    )
    (told,) = [line for line in lines if line.startswith("  failed ")]
    (failed,) = [run for run in raysim.load(tmp_path).runs if run.status == "failed"]
    assert "digits-bad  trial 0: " in told and told.endswith(f"(in {failed.folder})")


def test_trials_that_were_interrupted_go_on(write: Any, tmp_path: Path) -> None:
    """With the same suggestions."""
    over = {"local.lr": {"choices": [1e-9, 0.5]}, "local.optimizer.momentum": {"low": 0.0, "high": 0.1}}
    path = write({"search": {"over": over, "trials": 7, "batch": 6}}, run__rounds=6)
    whole = sweep(path, tmp_path / "whole")
    for run in raysim.load(tmp_path / "whole").runs:
        scenario = raysim.parse_scenario(run.info["scenario"])
        raysim.run(scenario, out=tmp_path / "early" / "digits", inline=True, observers=[stop_after(3)])
    early = {run.id for run in raysim.load(tmp_path / "early").runs}
    assert sweep(path, tmp_path / "early").stdout == whole.stdout
    runs = raysim.load(tmp_path / "early").runs
    assert {run.id for run in runs} == early
    digests = [{str(run.info.get("digest")) for run in found} for found in (runs, raysim.load(tmp_path / "whole").runs)]
    assert digests[0] == digests[1]
    assert all(run.info["resumed"][0]["round"] >= 2 for run in runs if run.status == "finished")


def test_a_metric_that_is_not_measured_is_named(write: Any, tmp_path: Path) -> None:
    answer = sweep(write({"search": SEARCH | {"metric": "f1", "direction": "maximize"}}), tmp_path / "runs")
    assert answer.exit_code == 2
    assert "search.metric: must be one of loss, accuracy, which these runs measure, got 'f1'" in answer.stderr
    over = {"local.lr": {"choices": [0.1, 0.2]}}
    for metric, code in (("loss", 0), ("f1", 2)):  # the second finds its runs done
        path = write({"search": {"over": over, "metric": metric, "direction": "minimize", "trials": 2}})
        answer = sweep(path, tmp_path / "done")
        assert answer.exit_code == code
    assert "which these runs measure, got 'f1'" in answer.stderr


@pytest.mark.parametrize("metric", ["accuracy_gap", "consensus"])
def test_a_metric_of_unknown_direction_is_refused_unless_that_is_set(write: Any, metric: str) -> None:
    search = {"over": {"local.lr": {"choices": [0.1, 0.2]}}, "metric": metric}
    answer = command("check", write({"search": search}))
    assert answer.exit_code == 2
    said = "sweep.search.direction: must be maximize or minimize for a metric other than accuracy, loss, because it is"
    assert f"{said} not known whether larger is better, got null for '{metric}'; set it" in answer.stderr
    assert command("check", write({"search": search | {"direction": "minimize"}})).exit_code == 0


def test_a_search_tunes_on_validation_samples_and_says_where_it_does_not(write: Any, tmp_path: Path) -> None:
    search = {"over": {"local.lr": {"low": 0.01, "high": 1.0}}, "trials": 1}
    on_test = sweep(write({"search": search}), tmp_path / "test")
    assert "tunes on the split test" in on_test.output
    assert "data.validation sets samples aside to tune on" in on_test.output
    on_others = sweep(write({"search": search}, data__validation=0.2), tmp_path / "validation")
    assert "tunes on the split validation" in on_others.output
    assert "data.validation" not in on_others.output
    (run,) = raysim.load(tmp_path / "validation").runs
    evaluations = run.pandas("evaluations").query("metric == 'accuracy'")
    last = evaluations[evaluations["round"] == evaluations["round"].max()].set_index("split").value
    assert last["validation"] != last["test"]
    assert f"accuracy {last['validation']:.4g}" in on_others.output


def test_a_search_tunes_clients_own_models_where_they_are_evaluated(write: Any, tmp_path: Path) -> None:
    own: Any = {"model": {"name": "mlp", "hidden": [8], "personal": ["head"]}, "algorithm": "fedper"}
    own |= {"data__local_test": 0.2, "data__validation": 0.2, "run__evaluate_clients": "all"}
    answer = sweep(write({"search": {"over": {"local.lr": {"choices": [0.3]}}, "trials": 1}}, **own), tmp_path / "runs")
    (run,) = raysim.load(tmp_path / "runs").runs
    frame = run.pandas("evaluations").query("metric == 'accuracy' and split == 'validation' and step == step.max()")
    of = frame.groupby("subject").value.mean()
    assert f"{of['client']:.4g}" != f"{of['global']:.4g}"
    assert f"accuracy {of['client']:.4g}" in answer.stdout


def test_ranges_on_the_command_line(write: Any, tmp_path: Path) -> None:
    search = ["local.lr=0.001,1,log", "algorithm.buffer=2,6", "local.batch_size={choices: [8, 16]}"]
    plan = load_sweep(write(None), [], search)
    assert plan.search is not None
    over = plan.search.over
    assert (over["local.lr"].log, over["algorithm.buffer"].high, over["local.batch_size"].choices) == (True, 6, [8, 16])
    (scenario,) = plan.scenarios()
    assert (scenario.local.lr, scenario.local.batch_size) == (0.001, 8)
