"""Scenarios that come with raysim are right, and those of papers make the runs that published numbers are of."""

import json
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from command_line import command
from conftest import ROOT, SHIPPED, Simulate
from ruamel.yaml import YAML

import raysim
from raysim.sweep import load_sweep

REPRODUCTIONS = ROOT / "benchmarks" / "reproductions"
SCENARIOS = [file for file in sorted(REPRODUCTIONS.rglob("*.yaml")) if "\nmodel:" in file.read_text()]  # others: tables


@pytest.mark.parametrize("path", [*SHIPPED, *SCENARIOS], ids=lambda path: path.stem)
def test_every_shipped_scenario_is_right_and_the_same_when_it_is_resolved(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(path.parent)  # where some have a module of their own
    scenario, *_ = load_sweep(path).scenarios()
    again = raysim.parse_scenario(json.loads(json.dumps(scenario.resolved())))
    assert (again, again.hash, again.resolved()) == (scenario, scenario.hash, scenario.resolved())


@pytest.mark.parametrize("sweep", ["feddle/full_size", "fedeq/shakespeare_16"])
def test_kept_runs_count_as_done_in_the_sweep_that_made_them(sweep: str) -> None:
    """Their tables have this version's columns, and their scenarios the hash that the sweep would run."""
    wanted = {
        (one.name, one.seed): one.hash
        for seed in (0, 1, 2)
        for one in load_sweep(REPRODUCTIONS / f"{sweep}.yaml", [f"seed={seed}"]).scenarios()
    }
    kept = raysim.load(REPRODUCTIONS / sweep)
    assert {run.status for run in kept.runs} == {"finished"}
    for run in kept.runs:
        assert wanted[run.info["name"], run.info["seed"]] == run.info["scenario_hash"]
    assert set(kept.pandas("evaluations")["metric"]) >= {"accuracy", "loss"}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("seed=0", 1 + 2**-0.5),
        ("world.staleness=rounds", 1 + (1 + 3**-0.5) / 2),
        ("algorithm.staleness=none", 2.0),
        ("algorithm=fedavg", 3.0),
    ],
)
def test_the_run_by_hand_ends_where_its_comments_say(simulate: Simulate, override: str, expected: float) -> None:
    (path,) = (path for path in SHIPPED if path.stem == "by_hand")
    result = simulate(YAML(typ="safe").load(path), "--set", override)
    assert result.vectors()["w"].tolist() == pytest.approx([expected], abs=1e-6)


# --- of papers --------------------------------------------------------------------------------------------------------

FEDADMM_INSA = ROOT / "scenarios" / "fedadmm_insa"
SMALL = {  # of data that comes with scikit-learn, or in a moment
    "example_1": ["data.samples=200", "data.features=8", "data.clients=10", "run.rounds=4"],
    "example_2": [
        "data={name: digits, clients: 10, partition: {name: shards, per_client: 2}}",
        "model.hidden=[8]",
        "run.rounds=4",
    ],
}


@pytest.fixture(params=SMALL)
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A file's name, and the folder of all its runs, made small."""
    for scenario in load_sweep(FEDADMM_INSA / f"{request.param}.yaml", SMALL[request.param]).scenarios():
        raysim.run(scenario, out=tmp_path, inline=True)
    return request.param, tmp_path


def test_fedadmm_insa_makes_the_rows_of_its_table(runs: tuple[str, Path]) -> None:
    name, folder = runs
    metrics = ["loss", "local_steps"] if name == "example_1" else ["accuracy", "loss", "local_steps"]  # 1: no labels
    for metric in metrics:
        answer = command("compare", folder, "--metric", metric, "--format", "csv")
        assert answer.exit_code == 0, answer.output
        table = pd.read_csv(StringIO(answer.stdout), index_col=["algorithm.name", "local.epochs"])
        assert len(table) == 5
    steps = table["mean"]
    assert [steps["fedadmm", epochs] for epochs in (2, 5, 10)] == [80, 200, 400]  # ten clients in each of four rounds
    assert 0 < steps["fedadmm_in", 10] < 400
    assert 0 < steps["fedadmm_insa", 10] < 400


FEDF_ADMM = ROOT / "scenarios" / "fedf_admm"


@pytest.mark.parametrize("path", sorted(FEDF_ADMM.glob("*.yaml")), ids=lambda path: path.stem)
def test_scenarios_of_the_paper_divide_as_many_images_in_each_figure(path: Path) -> None:
    """10,000 of Fashion-MNIST, and all of CIFAR-10 and of the digits."""
    wanted = {"fashion_mnist": 10_000, "cifar10": None, "digits": None}
    for scenario in load_sweep(path).scenarios():
        assert scenario.data.train_samples == wanted[scenario.data.name]
