"""Laws of personalised algorithms: what clients predict with, what travels, and clients that never took part."""

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Raw, Simulate, digits, quadratic
from personal import HEADED, PERSONAL, WITH_HEADS, headed, normalised, own_models, saved, scores
from plain_run import PlainRun

from raysim import RunFailed, ScenarioError, load, parse_scenario, run
from raysim.models import MLP


@pytest.mark.parametrize(("epochs", "own"), [(1, [1.25, 3.25]), (2, [0.625, 3.625])])
def test_fine_tuning_starts_from_the_global_model(simulate: Simulate, epochs: int, own: list[float]) -> None:
    """x = 2.5 after FedAvg's two steps of 0.5; a = (0, 4)."""
    algorithm = {"name": "fedavg_ft", "finetune_epochs": epochs}
    raw = quadratic([0.0, 4.0], algorithm, {"dispatch": {"picks": [[0, 1]]}}, 1, start=1.0, data__samples=[1, 3])
    raw["local"] = {"lr": 0.5, "steps": 2, "batch_size": None}
    result = simulate(raw, "--set", "run.save_clients=true")
    assert result.vectors()["w"] == pytest.approx([2.5], abs=1e-6)
    assert own_models(result)[:, 0] == pytest.approx(own, abs=1e-6)
    assert result.clients()["client"].tolist() == [0, 1]


@pytest.mark.parametrize(("picks", "own"), [([[0, 1], [0]], [0.625, 2.5]), ([[0, 1], [0], [0], [1]], [0.15625, 3.625])])
def test_fine_tuning_goes_on_from_round_to_round(simulate: Simulate, picks: list[list[int]], own: list[float]) -> None:
    """Once the average stays, at 2.5. Each training takes two steps of 0.5, which leave a quarter of the way."""
    raw = quadratic([0.0, 4.0], {"name": "fedavg_ft", "finetune_after": 1}, {}, len(picks), start=1.0)
    raw = {**raw, "world": {"dispatch": {"picks": picks}}, "local": {"lr": 0.5, "steps": 2, "batch_size": None}}
    raw["data"]["samples"] = [1, 3]
    result = simulate(raw, "--set", "run.save_clients=true")
    assert result.vectors()["w"] == pytest.approx([2.5], abs=1e-6)
    assert own_models(result)[:, 0] == pytest.approx(own, abs=1e-6)
    assert result.pandas("updates").groupby("round").up_bytes.sum().tolist() == [8, *[0] * (len(picks) - 1)]


def test_a_run_that_ends_before_anybody_is_fine_tuned_is_refused() -> None:
    raw = quadratic([0.0, 4.0], {"name": "fedavg_ft", "finetune_after": 4}, {"dispatch": {"per_round": 1}}, 4)
    with pytest.raises(ScenarioError, match=r"finetune_after: must be less than run\.rounds, 4, .* got 4; take 30 %"):
        parse_scenario(raw)
    parse_scenario({**raw, "run": {"rounds": 5}})


# --- the engine's part ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "up", "down"),
    [
        ("local_only", 0, 0),
        ("fedavg_ft", "whole", "whole"),
        ("ditto", "whole", "whole"),
        ("knn_per", "whole", "whole"),
        ("fedper", "body", "body"),
        ("fedrep", "body", "body"),
        ("fedeq", "body", "body"),
    ],
)
def test_what_travels(simulate: Simulate, name: str, up: Any, down: Any) -> None:
    """The model is an MLP 64-16-10, the head of which is each client's own."""
    size = {0: 0, "body": 4 * (64 * 16 + 16), "whole": 4 * (64 * 16 + 16 + 16 * 10 + 10)}
    used = simulate(headed(name, run__rounds=2, run__evaluate_every=2)).pandas("updates").query("status == 'used'")
    assert set(used.up_bytes) == {size[up]}
    assert set(used.down_bytes) == {size[down]}


@pytest.mark.parametrize("name", [name for name in PERSONAL if name != "knn_per"])
def test_saved_models_are_those_that_were_evaluated(simulate: Simulate, name: str) -> None:
    result = saved(simulate, name, data__clients=10, run__rounds=4)
    accuracy, evaluations = scores(result), result.pandas("evaluations")
    plain = PlainRun(headed(name, data__clients=10))
    for client in accuracy.index:
        x, y = plain.loader(*plain.federation.local_test(client))
        with torch.no_grad():
            right = result.module(client=client)(x).argmax(-1) == y
        assert right.double().mean().item() == pytest.approx(accuracy[client])
    assert set(evaluations.subject) == {"global", "client"}


# --- clients that never took part -------------------------------------------------------------------------------------


def unseen(algorithm: Any, **more: Any) -> Raw:
    """There are 24 clients with two labels each, of which the last six never take part."""
    labels: Raw = {"clients": 24, "partition": {"name": "classes", "per_client": 2}, "local_test": 0.3, "unseen": 0.25}
    run = {"rounds": 4, "evaluate_every": 2, "evaluate_clients": "all"}
    return headed(algorithm, **{"data": {"name": "digits", **labels}, "run": run} | more)


@pytest.mark.parametrize("name", [*PERSONAL, "fedavg"])
def test_unseen_clients_adapt_once_training_is_over(simulate: Simulate, name: str) -> None:
    result = simulate(unseen(name))
    own, evaluations = scores(result, "unseen"), result.pandas("evaluations")
    assert own.index.tolist() == list(range(18, 24))
    assert set(scores(result).index) == set(range(18))
    assert evaluations.query("subject == 'unseen'")["round"].unique().tolist() == [3]
    assert result.pandas("updates").client.max() < 18
    counts = result.pandas("partition").query("split == 'test'").groupby("client").samples.sum()
    rows = evaluations.query("subject == 'unseen' and metric == 'accuracy'").set_index("member").samples
    assert rows.tolist() == counts[list(range(18, 24))].tolist()
    compared = load(result.folder).compare(subject="unseen", over="micro")["mean"].item()
    assert compared == pytest.approx((own * rows).sum() / rows.sum())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("fedavg", "ditto", True),  # of which they get the global model
        ("fedavg", {"name": "knn_per", "mix": 0.0}, True),
        ("fedavg", "knn_per", False),
        ("fedavg", "fedavg_ft", False),
        ("fedper", {"name": "fedper", "adapt_epochs": 9}, False),
    ],
)
def test_what_unseen_clients_make_of_the_last_model(simulate: Simulate, one: Any, other: Any, same: bool) -> None:
    uniform = ["--set", "algorithm.weights=uniform"]
    own = [scores(simulate(unseen(algorithm), *uniform), "unseen") for algorithm in (one, other)]
    assert own[0].equals(own[1]) == same


@pytest.mark.parametrize(
    ("name", "own", "adapted"),
    [
        ("local_only", True, True),
        ("fedavg_ft", True, True),
        ("ditto", True, False),
        ("fedper", False, False),
        ("fedrep", False, False),
        ("fedeq", True, False),
    ],
)
def test_whose_batch_norm_statistics_clients_predict_with(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch, name: str, own: bool, adapted: bool
) -> None:
    """Their own, in models that they keep, else the server's; so do clients that adapt. Of local none travel."""
    monkeypatch.setattr(MLP, "build", normalised)
    everybody, run = {"dispatch": {"per_round": 18}}, {"rounds": 2, "evaluate_clients": "all", "save_clients": True}
    result = simulate(unseen(name, world=everybody, run=run))
    others = (result.clients()["buffers"] != result.vectors()["buffers"]).any(axis=1)
    assert others[:18].tolist() == [own] * 18
    assert others[18:].tolist() == [adapted] * 6
    used = result.pandas("updates").query("status == 'used'")
    assert set(used.up_bytes == 0) == set(used.down_bytes == 0) == {name == "local_only"}


# --- what is refused --------------------------------------------------------------------------------------------------


def refusal(raw: Raw) -> str:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw)
    return str(caught.value)


def test_something_must_be_shared(tmp_path: Path) -> None:
    scenario = parse_scenario(headed("fedper", model={**HEADED, "personal": ["hidden1", "head"]}))
    with pytest.raises(RunFailed, match=r"model.personal: must leave some parameters to be shared, but \[hidden1, h"):
        run(scenario, out=tmp_path, inline=True)


@pytest.mark.parametrize("name", WITH_HEADS)
def test_heads_must_be_named(name: str) -> None:
    text = f"model.personal: must name the personal parameters, because {name} has some, got none"
    assert text in refusal(digits(algorithm=name))


def test_what_cannot_be_is_said() -> None:
    zero = {"name": "fedeq", "rho": 0.0, "server_rule": "admm"}
    assert "algorithm: rho must be greater than 0 with `server_rule: admm`" in refusal(headed(zero))
    text = refusal(quadratic([1.0], "knn_per", {"dispatch": {"per_round": 1}}, 1, run__save_clients=True))
    assert "algorithm.name: knn_per needs labels, and quadratic has none; take other data" in text
    assert "run.save_clients: must be false for knn_per" in text
    text = "`unseen` must be 0, or make one client of 30 unseen, got 0.001, which makes none; raise it to 0.0333333"
    assert text in refusal(headed("fedper", data__unseen=0.001))
    text = "data.unseen: clients that take no part are evaluated on their own samples, got none"
    assert text in refusal(digits(data__unseen=0.1))
    peers: Raw = {"algorithm": "decfedavg", "topology": "ring", "world": {}}
    assert "run.save_clients: must be false for peers" in refusal(digits(run__save_clients=True, **peers))
    assert "run.evaluate_clients: must be" in refusal(headed("fedper", run__evaluate_clients="some"))
