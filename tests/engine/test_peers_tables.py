"""What a run of peers leaves: evaluations, the consensus, tables, and what a dry run has of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Raw, Simulate, computed
from peers_runs import GOSSIP, of_all, peers, tables
from torch.nn.modules.module import register_module_forward_pre_hook
from witness import worker_of

import raysim
from raysim.engine.progress import Progress
from raysim.workers.workbench import Workbench


@pytest.mark.parametrize("world", [{"loss": 0.3}, GOSSIP, {"delay": computed(1e6, 1e4, 1e4)}])
def test_a_dry_run_is_the_timeline_of_the_run(simulate: Simulate, world: Raw) -> None:
    """Also the bytes of each message, where they must be known."""
    raw = peers(world=world)
    real, dry = simulate(raw), simulate(raw, "--dry")
    assert dry.info["totals"] == real.info["totals"]
    for name in ("updates", "steps", "exchanges"):
        told = tables(dry)[name].dropna(axis=1, how="all")
        assert len(told)
        pd.testing.assert_frame_equal(told, tables(real)[name][told.columns])
    assert ("bytes" in told) == ("delay" in world and world != GOSSIP)


def test_peers_are_evaluated_one_by_one_and_together(simulate: Simulate) -> None:
    result = simulate(peers(run={"rounds": 4, "evaluate_every": 2, "evaluate_on": ["test", "train"]}))
    evaluations = result.pandas("evaluations")
    for (_, split), rows in evaluations.groupby(["round", "split"], observed=True):
        accuracy = rows.query("subject == 'peer' and metric == 'accuracy'")
        assert accuracy.member.tolist() == list(range(10))
        together = rows.query("subject == 'peers'").set_index("metric").value
        low, high = accuracy.value.min(), accuracy.value.max()
        found = [together[key] for key in ("accuracy", "accuracy_min", "accuracy_max", "accuracy_gap")]
        assert found == pytest.approx([accuracy.value.mean(), low, high, high - low])
        assert ("consensus" in together) == (split == "test")
    assert evaluations["round"].unique().tolist() == [1, 3]


@pytest.mark.parametrize("public", [0, 300])
def test_the_consensus_is_the_distance_of_final_vectors_and_outputs_from_their_mean(
    simulate: Simulate, public: int
) -> None:
    raw = peers(data__clients=30, public={"samples": public})  # more peers than are compared in a task
    result, bench = simulate(raw), worker_of(raw, Workbench)
    w = result.vectors()["w"].astype(np.float64)
    apart = np.sqrt(((w - w.mean(0)) ** 2).sum(1).mean())
    assert of_all(result, "consensus")[-1] == pytest.approx(apart, rel=1e-6)
    federation = bench.federation
    inputs = bench.samples.public if public else bench.loader(federation.test, federation.evaluation_rows[:500])[0]
    logits = np.stack([result.module(peer)(inputs).detach().double().numpy() for peer in range(30)])
    outputs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    apart = np.sqrt(((outputs - outputs.mean(0)) ** 2).sum(-1).mean())
    assert of_all(result, "consensus_outputs")[-1] == pytest.approx(apart, rel=1e-5)


def test_outputs_are_compared_few_inputs_at_a_time(simulate: Simulate) -> None:
    seen: list[int] = []
    hook = register_module_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    try:
        simulate(peers(data__clients=2, run__rounds=1, public={"samples": 600}))
    finally:
        hook.remove()
    assert 100 in seen and max(seen) == 250


def test_the_consensus_is_told_of_the_first_split_that_is_evaluated(simulate: Simulate) -> None:
    evaluations = simulate(peers(run={"rounds": 1, "evaluate_on": ["train"]})).pandas("evaluations")
    assert set(evaluations.query("metric in ['consensus', 'consensus_outputs']").split) == {"train"}


@pytest.mark.parametrize("algorithm", ["decfedavg", "decfedprox", "dfedavgm", "dfedadmm"])
def test_statistics_of_batches_are_mixed_as_models_are(simulate: Simulate, algorithm: str) -> None:
    """Those of the first training, which who hears nobody still has after it."""
    small: Raw = {"data__clients": 3, "data__test_samples": 10, "local": {"steps": 1, "batch_size": 8}}
    weights = {"name": "neighbours", "beta": 0.4}
    raw = peers(
        algorithm=algorithm,
        model={"name": "module", "module": "own_modules:Net", "args": {"hidden": 4}},
        topology={"name": "line", "weights": weights},
        run={"rounds": 1, "evaluate_clients": 1},
        **small,
    )
    mixed, alone = (simulate({**raw, "world": {"loss": loss}}).vectors()["buffers"] for loss in (0.0, 1.0))
    w = np.array([[0.6, 0.4, 0], [0.2, 0.6, 0.2], [0, 0.4, 0.6]])
    assert mixed == pytest.approx(w @ alone, rel=1e-5, abs=1e-6)
    assert np.ptp(alone, axis=0).max() > 0.01


def test_so_many_peers_are_evaluated_always_the_same(simulate: Simulate) -> None:
    evaluations = simulate(peers(run__evaluate_clients=3, run__evaluate_every=2)).pandas("evaluations")
    members = evaluations.query("subject == 'peer'").groupby("round").member.apply(lambda m: tuple(sorted(set(m))))
    assert len(members) == 3 and members.nunique() == 1 and len(members.iloc[0]) == 3


def test_the_tables_of_peers(simulate: Simulate) -> None:
    result = simulate(peers())
    updates, exchanges, steps = (result.pandas(name) for name in ("updates", "exchanges", "steps"))
    parameters = result.info["parameters"]
    assert (exchanges.bytes == 4 * parameters).all() and len(exchanges) == 6 * 20
    assert (updates.up_bytes == 8 * parameters).all()
    assert (steps.up_bytes == 20 * 4 * parameters).all() and (steps.down_bytes == steps.up_bytes).all()
    assert steps.virtual_time.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert (updates.local_steps == -(-updates.samples // 16)).all()
    assert updates.loss_before.notna().all() and (updates.seconds > 0).all()
    counts = {"dispatched": 60, "used": 60, "sent": 120, "lost": 0, "steps": 6, "rounds": 6}
    assert result.info["totals"] == {**counts, "virtual_time": 6.0}
    assert result.vectors()["w"].shape == (10, parameters)


def test_the_accuracy_shown_is_the_mean_over_peers(tmp_path: Path) -> None:
    told: list[Progress] = []
    scenario = raysim.parse_scenario(peers())
    result = raysim.run(scenario, out=tmp_path, inline=True, observers=[told.append])
    assert told[-1].metrics["accuracy"] == of_all(result, "accuracy")[-1]
    assert (told[-1].round, told[-1].rounds, told[-1].used) == (6, 6, 60)
