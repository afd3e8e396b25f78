"""Own metrics and losses: exact over shards, for every subject, the same on any number of workers."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import own_modules
import pytest
import torch
from command_line import write
from conftest import Raw, Simulate, digits, override
from sklearn import metrics as sk
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef, roc_auc_score

import raysim
from raysim.data import Arrays, divided, federate, loaded
from raysim.engine.server import evaluation
from raysim.local.loss import BinaryCrossEntropy
from raysim.local.samples import Loader
from raysim.metrics import METRICS, FunctionMetric
from raysim.metrics.classification import ECE
from raysim.metrics.metric import R2
from raysim.parts.part import as_tuples, names_of
from raysim.sweep.expand import load_sweep
from raysim.sweep.search import best, search
from results import load

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torchmetrics.*")
ALL = ["macro_f1", "balanced_accuracy", "top3", "auroc", "average_precision", "ece", "mcc", "own_modules:hits"]
SHORT: Raw = {"run__rounds": 4, "run__evaluate_every": 2}


def values(result: raysim.Result, subject: str = "global") -> dict[str, float]:
    table = result.pandas("evaluations")
    last = table[(table["subject"] == subject) & (table["step"] == table["step"].max())]
    return dict(zip(last["metric"], last["value"], strict=True))


def outputs_of(result: raysim.Result) -> tuple[np.ndarray, np.ndarray]:
    """The outputs of the final model on all test samples, and their labels."""
    scenario = raysim.parse_scenario(result.info["scenario"])
    federation = federate(scenario.data, scenario.server_data, scenario.seed)
    x, y = Loader(federation.mean, federation.std, torch.device("cpu"))(federation.test, federation.evaluation_rows)
    with torch.no_grad():
        return result.module()(x).softmax(-1).numpy(), y.numpy()


def test_metrics_are_those_of_all_outputs_however_they_are_cut(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = digits(run__metrics=ALL, **SHORT)
    whole = simulate(raw)
    monkeypatch.setattr(evaluation, "EVALUATION_SHARD", 250)
    cut = simulate(raw)
    found = values(cut)
    assert found["hits"] == found["accuracy"]
    assert {name: found[name] for name in found if name != "loss"} == {
        name: value for name, value in values(whole).items() if name != "loss"
    }
    predicted, labels = outputs_of(cut)
    expected = {
        "macro_f1": f1_score(labels, predicted.argmax(1), average="macro"),
        "balanced_accuracy": balanced_accuracy_score(labels, predicted.argmax(1)),
        "mcc": matthews_corrcoef(labels, predicted.argmax(1)),
        "auroc": roc_auc_score(labels, predicted, multi_class="ovr", average="macro"),
        "top3": float((np.argsort(-predicted)[:, :3] == labels[:, None]).any(1).mean()),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-5)
    assert cut.pandas("tasks")["task"].value_counts()["metrics"] == 2


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_r2_does_not_depend_on_the_unit_of_targets(unit: float) -> None:
    """Deviations (-1, 1) from the mean, errors (2, -2): 1 - 8 / 2. Targets that are all alike have none."""
    targets = torch.tensor([-1.0, 1.0]) * unit
    assert R2().value(-targets, targets) == pytest.approx(-3)
    assert R2().value(targets, targets) == 1
    assert R2().value(torch.zeros(7), torch.full((7,), 0.1 * unit)) is None
    assert R2().value(targets[:1], targets[:1]) is None


DRAW = np.random.default_rng(0)
LOGITS, SEVERAL = DRAW.normal(size=(200, 4)).astype(np.float32), (DRAW.random((200, 4)) < 0.3).astype(np.float32)
ONE = DRAW.integers(4, size=200)
PAIR = np.stack([DRAW.normal(5, 1, 200), DRAW.normal(0, 30, 200)], 1).astype(np.float32)
NEAR = (PAIR + DRAW.normal(size=(200, 2))).astype(np.float32)
HARD, CHOSEN = LOGITS > 0, LOGITS.argmax(1)
macro = {"average": "macro"}
EQUAL = [  # a metric, outputs and labels, and what scikit-learn gives
    ({"name": "macro_f1"}, LOGITS, SEVERAL, sk.f1_score(SEVERAL, HARD, **macro)),
    ({"name": "macro_precision"}, LOGITS, SEVERAL, sk.precision_score(SEVERAL, HARD, **macro)),
    ({"name": "macro_recall"}, LOGITS, SEVERAL, sk.recall_score(SEVERAL, HARD, **macro)),
    ({"name": "auroc"}, LOGITS, SEVERAL, sk.roc_auc_score(SEVERAL, LOGITS)),
    ({"name": "average_precision"}, LOGITS, SEVERAL, sk.average_precision_score(SEVERAL, LOGITS)),
    ({"name": "exact_match"}, LOGITS, SEVERAL, sk.accuracy_score(SEVERAL, HARD)),
    ({"name": "iou"}, LOGITS, SEVERAL, sk.jaccard_score(SEVERAL, HARD, **macro)),
    ({"name": "dice"}, LOGITS, SEVERAL, sk.f1_score(SEVERAL, HARD, **macro)),
    ({"name": "iou"}, LOGITS, SEVERAL * [1, 1, 1, 0], sk.jaccard_score(SEVERAL * [1, 1, 1, 0], HARD, **macro)),
    ({"name": "macro_f1"}, LOGITS, ONE, sk.f1_score(ONE, CHOSEN, **macro)),
    ({"name": "macro_precision"}, LOGITS, ONE, sk.precision_score(ONE, CHOSEN, **macro)),
    ({"name": "macro_recall"}, LOGITS, ONE, sk.recall_score(ONE, CHOSEN, **macro)),
    ({"name": "f1", "positive": 2}, LOGITS, ONE, sk.f1_score(ONE, CHOSEN, labels=[2], average=None)[0]),
    ({"name": "iou"}, LOGITS, ONE, sk.jaccard_score(ONE, CHOSEN, **macro)),
    ({"name": "dice"}, LOGITS, ONE, sk.f1_score(ONE, CHOSEN, **macro)),
    ({"name": "iou", "ignore": [0]}, LOGITS, ONE, sk.jaccard_score(ONE, CHOSEN, labels=[1, 2, 3], **macro)),
    ({"name": "iou"}, LOGITS[:, :3], ONE // 2 * 2, sk.jaccard_score(ONE // 2 * 2, LOGITS[:, :3].argmax(1), **macro)),
    ({"name": "r2"}, NEAR, PAIR, sk.r2_score(PAIR, NEAR)),
    ({"name": "r2"}, NEAR[:, 0], PAIR[:, 0], sk.r2_score(PAIR[:, 0], NEAR[:, 0])),
    ({"name": "rmse"}, NEAR, PAIR, sk.root_mean_squared_error(PAIR, NEAR)),
    ({"name": "mae"}, NEAR, PAIR, sk.mean_absolute_error(PAIR, NEAR)),
]


@pytest.mark.parametrize(("key", "outputs", "labels", "expected"), EQUAL, ids=[str(case[0]) for case in EQUAL])
def test_metrics_of_each_task_are_those_of_scikit_learn(
    key: Raw, outputs: np.ndarray, labels: np.ndarray, expected: float
) -> None:
    metric = next(kind for kind in METRICS if key["name"] in names_of(kind))(**as_tuples(key))
    target = torch.from_numpy(labels).float() if labels.dtype.kind == "f" else torch.from_numpy(labels)
    assert metric.value(*metric.reduced(torch.from_numpy(outputs), target)) == pytest.approx(expected, abs=1e-6)


def test_r2_of_several_targets_is_the_mean_of_that_of_each(simulate: Simulate) -> None:
    """A predictor of each target's mean has 0, however far the means are apart."""
    means = torch.from_numpy(PAIR.mean(0)).expand(200, 2)
    assert R2().value(means, torch.from_numpy(PAIR)) == pytest.approx(0, abs=1e-6)
    data = Arrays.of({"x": DRAW.normal(size=(400, 3)), "y": np.tile(PAIR, (2, 1))}, task="regression")
    raw = digits(model="linear", run={"rounds": 2, "metrics": ["r2", "rmse"]}, local__lr=0.01)
    result = simulate(raw | {"data": divided(data, clients=6, partition="iid")})
    test = loaded.load(data).test
    with torch.no_grad():
        predicted = result.module()(torch.from_numpy(test.x)).numpy()
    expected = {"r2": sk.r2_score(test.y, predicted), "rmse": sk.root_mean_squared_error(test.y, predicted)}
    assert {name: values(result)[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_positive_weights_are_those_of_torch() -> None:
    loss = BinaryCrossEntropy(positive_weights=(1.0, 2.0, 3.0, 4.0))
    weights, outputs, labels = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.from_numpy(LOGITS), torch.from_numpy(SEVERAL)
    expected = torch.nn.BCEWithLogitsLoss(pos_weight=weights)(outputs, labels)
    assert float(loss(outputs, labels)) == pytest.approx(float(expected), rel=1e-6)
    with pytest.raises(ValueError, match="one for each of 4 labels, got 1"):
        BinaryCrossEntropy(positive_weights=(1.0,)).each(outputs, labels)


def test_a_prediction_that_is_certain_shares_the_last_bin_of_the_calibration_error() -> None:
    """Two samples at 1, whose label is another one, and two at 0.97, all in one bin: |0.985 - 0.5|."""
    probabilities = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.97, 0.03], [0.97, 0.03]])
    found = ECE().value(probabilities.log().clamp_min(-1e3), torch.tensor([1, 1, 0, 0]))
    assert found == pytest.approx(0.485, abs=1e-6)


def test_without_metrics_nothing_is_kept(simulate: Simulate) -> None:
    plain = simulate(digits(**SHORT))
    assert "metrics" not in set(plain.pandas("tasks")["task"])
    assert "larger_is_better" not in plain.info
    measured = simulate(digits(run__metrics=["macro_f1"], **SHORT))
    assert measured.info["digest"]["model"] == plain.info["digest"]["model"]


def test_clients_and_unseen_clients_have_them_and_null_where_they_are_undefined(simulate: Simulate) -> None:
    raw = digits(
        data={"name": "digits", "clients": 10, "partition": {"name": "shards", "per_client": 1}, "unseen": 0.2},
        data__local_test=0.3,
        run__metrics=["auroc", "own_modules:hits", {"name": "own_modules:above", "threshold": 0.5, "label": "large"}],
        run__evaluate_clients="all",
        **SHORT,
    )
    result = simulate(raw)
    table = result.table("evaluations").to_pandas()
    of_clients = table[table["subject"].isin(["client", "unseen"])]
    assert set(of_clients["subject"]) == {"client", "unseen"}
    assert set(of_clients["metric"]) == {"loss", "accuracy", "auroc", "hits", "large"}
    areas = of_clients["value"][of_clients["metric"] == "auroc"]
    assert areas.isna().any()  # a client with one label
    assert result.table("evaluations")["value"].null_count == areas.isna().sum()
    assert result.info["larger_is_better"] == {"auroc": True, "hits": None, "large": False}
    comparison = load(result.folder).compare(metric=["auroc", "hits", "large"], subject="client", over="p10")
    assert comparison.set_index("metric")["mean"].notna()[["hits", "large"]].all()


def test_peers_have_them_with_their_spread(simulate: Simulate) -> None:
    raw = digits(
        algorithm="decfedavg",
        topology="ring",
        world={},
        run__metrics=["auroc", "own_modules:hits"],
        data={"name": "digits", "clients": 6, "partition": "iid"},
        **SHORT,
    )
    found = values(simulate(raw), "peers")
    for end in ("", "_min", "_max", "_gap"):
        assert found[f"hits{end}"] == found[f"accuracy{end}"]
        assert not math.isnan(found[f"auroc{end}"])


def test_results_know_their_direction(simulate: Simulate) -> None:
    raw = digits(run__metrics=["ece", "mcc", "own_modules:hits"], run__rounds=6, run__evaluate_every=1)
    result = simulate(raw)
    runs = load(result.folder)
    table = result.pandas("evaluations").groupby("metric", observed=True)["value"]
    best = runs.compare(metric=["ece", "mcc"], reduce="best").set_index("metric")["mean"]
    assert best["ece"] == table.min()["ece"]
    assert best["mcc"] == table.max()["mcc"]
    with pytest.raises(ValueError, match="it is not known whether larger is better"):
        runs.compare(metric="hits", reduce="best")


@pytest.mark.usefixtures("here")
def test_a_search_goes_the_metrics_way(tmp_path: Path) -> None:
    for metric, better in (("ece", min), ("mcc", max)):
        tuned = {"over": {"local.lr": {"choices": [0.01, 0.3]}}, "metric": metric, "trials": 3}
        raw = {**digits(run__metrics=["ece", "mcc"], **SHORT), "sweep": {"search": tuned}}
        plan = load_sweep(write(tmp_path, raw, metric))
        trials = list(search(plan, out=tmp_path / metric, inline=True))
        scores = [trial.score for trial in trials if trial.score is not None]
        assert [trial.score for trial in best(trials, plan)] == [better(scores)]
        assert len(set(scores)) == 2


# --- losses -----------------------------------------------------------------------------------------------------------


def test_the_loss_is_trained_and_evaluated(simulate: Simulate) -> None:
    result = simulate(digits(run__loss={"name": "own_modules:hinge", "margin": 2.0}, **SHORT))
    scenario = raysim.parse_scenario(result.info["scenario"])
    federation = federate(scenario.data, scenario.server_data, scenario.seed)
    x, y = Loader(federation.mean, federation.std, torch.device("cpu"))(federation.test, federation.evaluation_rows)
    with torch.no_grad():
        expected = own_modules.hinge(result.module()(x), y, 2.0).mean()
    assert values(result)["loss"] == pytest.approx(float(expected), rel=1e-5)
    assert result.digest != simulate(digits(run__loss="own_modules:hinge", **SHORT)).digest


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("cross_entropy", lambda logits, y: -logits.log_softmax(1)[range(3), y]),
        (
            {"name": "cross_entropy", "label_smoothing": 0.3},
            lambda logits, y: -0.7 * logits.log_softmax(1)[range(3), y] - 0.3 * logits.log_softmax(1).mean(1),
        ),
        (
            {"name": "focal", "gamma": 3},
            lambda logits, y: -((1 - logits.softmax(1)[range(3), y]) ** 3) * logits.log_softmax(1)[range(3), y],
        ),
        ("mse", lambda logits, y: (logits - torch.eye(10)[y]).square().mean(1)),
    ],
)
def test_losses_are_their_formulas(loss: Any, expected: Any) -> None:
    part = raysim.parse_scenario(digits(run__loss=loss)).run.loss
    assert part is not None
    logits, labels = torch.randn(3, 10, generator=torch.Generator().manual_seed(1)), torch.tensor([3, 0, 9])
    torch.testing.assert_close(part.each(logits, labels), expected(logits, labels))
    torch.testing.assert_close(part(logits, labels, "sum"), expected(logits, labels).sum())


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"metrics": ["nope"]}, "run.metrics.0.name: must be one of 'macro_f1', "),
        ({"metrics": ["own_modules:nope"]}, "run.metrics.0.name: must be module:Class, which can be imported, got"),
        ({"metrics": ["own_modules:above"]}, "run.metrics.0.threshold: must be given, got nothing"),
        ({"metrics": [{"name": "own_modules:above", "threshhold": 1}]}, "run.metrics.0.threshhold: unknown argument"),
        ({"metrics": ["ece", {"name": "mcc", "nam": 1}]}, "run.metrics.1.nam: unknown key (did you mean 'name'?);"),
        ({"metrics": ["rmse"]}, "run.metrics.0: rmse needs targets, and digits has none; take another"),
        ({"metrics": ["ece", "ece"]}, "run.metrics.1: must have another name than all other metrics, got 'ece'"),
        (
            {"metrics": [{"name": "own_modules:hits", "label": "x_max"}]},
            "run.metrics.0: must have a name of letters, digits and _ that does not end in _min, _max or _gap, got",
        ),
        ({"loss": "huber"}, "run.loss: huber needs targets, and digits has none; take another"),
    ],
)
def test_what_is_wrong_with_metrics_and_losses_is_told_by_a_check(run: Raw, expected: str) -> None:
    with pytest.raises(raysim.ScenarioError) as refused:
        raysim.parse_scenario(digits(run={"rounds": 1, **run}))
    assert expected in str(refused.value)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raysim.scenario.checks.find_spec", lambda name: None)
    with pytest.raises(raysim.ScenarioError, match=r"macro_f1 needs the package torchmetrics, .* pip install"):
        raysim.parse_scenario(digits(run__metrics=["macro_f1"]))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"metrics": ["own_modules:shapes"]}, "shapes must give one number, got a tensor of shape ("),
        ({"metrics": ["own_modules:written"]}, "run.metrics: written must give one number, got '0.5' ("),
        ({"loss": "own_modules:mean_hinge"}, "run.loss: must give a loss for each sample, shape (2,), got shape ()"),
    ],
)
def test_what_a_function_gives_is_checked_before_the_first_round(run: Raw, expected: str, tmp_path: Path) -> None:
    scenario = raysim.parse_scenario(override(digits(), run={"rounds": 1, **run}))
    with pytest.raises(raysim.RunFailed) as failed:
        raysim.run(scenario, out=tmp_path, inline=True)
    assert expected in str(failed.value)
    assert not failed.value.traceback
    assert ("metrics" not in run) or re.search(r"own_modules\.py:\d+\)", str(failed.value))


def test_metrics_may_be_infinite() -> None:
    outputs, labels = torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64)
    assert FunctionMetric(function="own_modules:endless").value(outputs, labels) == math.inf


def test_metrics_of_texts_are_those_of_all_labels_that_count() -> None:
    from raysim.metrics.classification import F1, ExactMatch, Perplexity

    chances = torch.tensor([[[0.5, 0.5], [0.25, 0.75]], [[0.9, 0.1], [0.5, 0.5]]])  # (n, length, classes)
    labels = torch.tensor([[0, 1], [1, -100]])
    perplexity, match, f1 = Perplexity(), ExactMatch(), F1()
    found = perplexity.value(*perplexity.reduced(chances.log(), labels))
    assert found == pytest.approx((0.5 * 0.75 * 0.1) ** (-1 / 3))
    assert match.value(*match.reduced(chances.log(), labels)) == 0.5
    assert f1.value(torch.eye(2)[[0, 1, 1, 1]], torch.tensor([1, 1, 1, 0])) == pytest.approx(2 / 3)
    assert f1.value(torch.eye(2)[[0, 0]], torch.tensor([0, 0])) is None
