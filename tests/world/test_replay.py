"""Runs that take who, when and how late from another run."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Raw, Simulate, digits

import raysim
from raysim import ScenarioError, parse_scenario
from raysim.scenario.dependencies import changes, depends_on

SECONDS = {"name": "exponential", "mean": 1.0, "unit": "seconds"}
DROPOUT = {"probability": 0.2}
COMPUTE = {
    "name": "compute",
    "flops_per_s": {"name": "log_normal", "median": 2e6, "sigma": 1.0},
    "up_bytes_per_s": {"name": "constant", "value": 1e5},
    "down_bytes_per_s": {"name": "constant", "value": 5e5},
}
SMALL = {"name": "fedbuff", "buffer": 4}
RARE = {"name": "random", "probability": 0.3, "slot": 1.0}
WORLDS = {
    "rounds": ("fedbuff", {"dispatch": {"per_round": 6}, "delay": {"name": "half_normal", "sigma": 3}}),
    "a deadline": ("fedavg", {"dispatch": {"per_round": 6, "round_s": 1.5}, "delay": SECONDS, "dropout": DROPOUT}),
    "rounds that wait": (
        SMALL,
        {"dispatch": {"per_round": 6}, "delay": SECONDS, "availability": {**RARE, "slot": 3.0}},
    ),
    "rounds of no length": (SMALL, {"dispatch": {"per_round": 6}, "delay": {**SECONDS, "mean": 0.0}}),
    "concurrency": (SMALL, {"dispatch": {"concurrency": 8}, "delay": SECONDS, "dropout": DROPOUT}),
    "tiers": (
        "fedavg",
        {"dispatch": {"per_tier": 3, "tiers": 3}, "delay": {**SECONDS, "redraw": "client"}, "dropout": DROPOUT},
    ),
    "arrivals at once": (
        SMALL,
        {
            "dispatch": {"concurrency": 12},
            "delay": {"name": "constant", "value": 2.0, "unit": "seconds"},
            "availability": RARE,
            "dropout": {"probability": 0.2, "permanent": True},
        },
    ),
    "computed delays": (SMALL, {"dispatch": {"concurrency": 8}, "delay": COMPUTE}),
    "measured delays": ("fedadmm_in", {"dispatch": {"per_round": 6, "round_s": 0.9}, "delay": COMPUTE}),
    "picks": (SMALL, {"dispatch": {"picks": [[n, n + 1, 29 - n] for n in range(8)]}}),
}


def scenario(algorithm: Any, world: Raw, **more: Any) -> Raw:
    return digits(algorithm=algorithm, resources__chunk=1, **more) | {"world": world}


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_scenario_replayed_is_the_same_run(name: str, simulate: Simulate) -> None:
    algorithm, world = WORLDS[name]
    recorded = simulate(scenario(algorithm, world))
    replayed = simulate(scenario(algorithm, {"replay": str(recorded.folder)}))
    assert replayed.info["digest"] == recorded.info["digest"]
    assert replayed.info["totals"] == recorded.info["totals"]
    again = simulate(scenario(algorithm, {"replay": str(replayed.folder)}), "--dry")
    assert again.info["totals"] == recorded.info["totals"]
    if algorithm != "fedadmm_in":  # of which no dry run is possible
        from_dry = {"replay": str(simulate(scenario(algorithm, world), "--dry").folder)}
        assert simulate(scenario(algorithm, from_dry)).info["digest"] == recorded.info["digest"]


WHO_AND_WHEN = ["client", "dispatched_at", "arrived_at"]


def test_another_algorithm_meets_the_same_arrivals(simulate: Simulate) -> None:
    """It steps by its own trigger, at every arrival; so versions and staleness are its own."""
    recorded = simulate(scenario(SMALL, WORLDS["concurrency"][1]))
    replay = {"replay": str(recorded.folder)}
    other = simulate(scenario("fedasync", replay, seed=7, model={"name": "linear"}, run__rounds=30))
    before, after = (
        result.pandas("updates").sort_values("dispatch", ignore_index=True) for result in (recorded, other)
    )
    assert (before.status == "dropped").sum() > 3
    known = after[after.status != "unfinished"]
    assert len(known) > 30
    assert known[WHO_AND_WHEN].equals(before.loc[known.index, WHO_AND_WHEN])
    assert other.info["totals"]["steps"] == 30
    assert known.version.max() > before.version.max()


def test_a_run_ends_with_what_was_recorded(simulate: Simulate) -> None:
    recorded = simulate(scenario(SMALL, WORLDS["concurrency"][1]))
    arrived = recorded.info["totals"]["used"]
    result = simulate(scenario("fedasync", {"replay": str(recorded.folder)}, run__rounds=1000))
    assert result.info["ended_early"] == f"the replayed run, {recorded.folder.name}, tells nothing of later dispatches"
    assert result.info["totals"]["used"] >= arrived
    assert result.info["totals"]["dispatched"] == recorded.info["totals"]["dispatched"]
    last = recorded.pandas("updates").virtual_time.max()
    assert result.pandas("updates").virtual_time.max() == last


def test_staleness_may_be_counted_otherwise(simulate: Simulate) -> None:
    recorded = simulate(scenario(SMALL, WORLDS["rounds"][1]), "--dry")
    other = simulate(scenario(SMALL, {"replay": str(recorded.folder), "staleness": "rounds"}), "--dry")
    columns = [result.pandas("updates").query("status == 'used'") for result in (recorded, other)]
    assert columns[0][WHO_AND_WHEN].equals(columns[1][WHO_AND_WHEN])
    assert not columns[0].staleness.equals(columns[1].staleness)


def test_other_data_must_give_samples_to_who_was_dispatched(simulate: Simulate, tmp_path: Path) -> None:
    recorded = simulate(scenario(SMALL, {"dispatch": {"concurrency": 30}, "delay": SECONDS}), "--dry")
    raw = scenario(SMALL, {"replay": str(recorded.folder)})
    raw["data"]["partition"] = {"name": "dirichlet", "alpha": 0.05, "min_size": 0, "cap": False}
    with pytest.raises(
        raysim.RunFailed, match=r"must dispatch clients with samples to train on, got \[.*\], with none"
    ):
        raysim.run(parse_scenario(raw), out=tmp_path / "other", dry=True)


def test_what_cannot_be_replayed_is_refused(simulate: Simulate, tmp_path: Path) -> None:
    recorded = simulate(scenario("fedbuff", WORLDS["rounds"][1]), "--dry")
    replay = {"replay": str(recorded.folder)}
    peers = simulate(digits(algorithm="d_psgd", topology="ring", local__steps=1, world={}), "--dry")
    refused = {
        "must be a run of at least 9 rounds, got 8; lower run.rounds": scenario("fedbuff", replay, run__rounds=9),
        "must be a run with as many clients, 20, got one with 30": scenario("fedbuff", replay, data__clients=20),
        "must go with the other keys .* got another `delay`": scenario("fedbuff", replay | {"delay": "none"}),
        "must be the folder of a run with a server, got .*": scenario("fedbuff", {"replay": str(peers.folder)}),
        "a run's folder must hold run.json": scenario("fedbuff", {"replay": str(tmp_path)}),
        "world.dispatch: must be per_round or picks": scenario(
            "fedavg", {"replay": str(simulate(scenario("fedbuff", WORLDS["concurrency"][1]), "--dry").folder)}
        ),
        "world.replay: must not be given, for d_psgd": digits(
            algorithm="d_psgd", topology="ring", local__steps=1, world=replay
        ),
    }
    for message, raw in refused.items():
        with pytest.raises(ScenarioError, match=message):
            parse_scenario(raw)


def test_a_run_that_has_not_finished_is_refused(simulate: Simulate) -> None:
    recorded = simulate(scenario("fedbuff", WORLDS["rounds"][1]), "--dry")
    file = recorded.folder / "run.json"
    file.write_text(file.read_text().replace('"status": "dry"', '"status": "interrupted"'))
    with pytest.raises(ScenarioError, match=r"must be a run that has finished, or a dry run, got .* interrupted"):
        parse_scenario(scenario("fedbuff", {"replay": str(recorded.folder)}))


def test_a_replay_says_what_it_replayed(simulate: Simulate) -> None:
    """Its run.json is a whole scenario, with the world of the run that it replayed."""
    recorded = simulate(scenario("fedbuff", WORLDS["rounds"][1]), "--dry")
    replayed = simulate(scenario("fedbuff", {"replay": str(recorded.folder)}))
    world = recorded.info["scenario"]["world"] | {"replay": str(recorded.folder)}
    assert replayed.info["scenario"]["world"] == world
    assert parse_scenario(replayed.info["scenario"]).world.delay.name == "half_normal"
    shutil.rmtree(recorded.folder)
    assert isinstance(replayed.module()(torch.zeros(1, 1, 8, 8)), torch.Tensor)  # it does not need the other run


def test_runs_are_out_of_date_where_what_they_replay_has_changed(simulate: Simulate, tmp_path: Path) -> None:
    recorded = simulate(scenario("fedbuff", WORLDS["rounds"][1]), "--dry")
    devices = tmp_path / "devices.csv"
    devices.write_text("latency_s\n1\n")
    trace = {"dispatch": {"per_round": 6}, "delay": {"name": "trace", "path": str(devices)}}
    for world, file in (({"replay": str(recorded.folder)}, recorded.folder / "run.json"), (trace, devices)):
        raw = scenario("fedbuff", world)
        before = depends_on(parse_scenario(raw))
        assert list(changes(before, depends_on(parse_scenario(raw)))) == []
        file.write_text(file.read_text() + "\n")
        assert len(list(changes(before, depends_on(parse_scenario(raw))))) == 1
