"""Personalised algorithms: by hand, by identities, on clients that never took part.

Bilinear: clients predict h b from the input 1, where b is the body and h the head, both 1 at first, and minimise
(h b - y)^2 / 2; client 0 has y = 2, client 1 has y = sqrt(2).
"""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, quadratic
from torch import Tensor, nn

from raysim import Result, RunFailed, ScenarioError, load, parse_scenario, run
from raysim.algorithms import Central, FedAvg, KNNPer, Population, Record
from raysim.data import Dataset, Split
from raysim.data.linear_regression import LinearRegression
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.models import MLP, Vector
from raysim.workers.server import ServerWorker

PERSONAL = ["local_only", "fedavg_ft", "ditto", "fedper", "fedrep", "knn_per", "fedeq"]
WITH_HEADS = ["fedper", "fedrep", "fedeq"]
HEADED: Raw = {"name": "mlp", "hidden": [16], "personal": ["head"]}
CPU = torch.device("cpu")


def headed(algorithm: Any, **more: Any) -> Raw:
    """Digits, of whose model the head is each client's own; all clients' own models are evaluated."""
    world = {"dispatch": {"per_round": 6}}
    own: Raw = {"model": HEADED, "world": world, "data__local_test": 0.3, "run__evaluate_clients": "all"}
    return digits(algorithm=algorithm, **own | more)


def own_models(result: Result) -> np.ndarray:
    """(clients, size)"""
    saved: np.ndarray = result.clients()["w"]
    return saved


def scores(result: Result, subject: str = "client") -> Any:
    """The last accuracy of each client's own model."""
    rows = result.pandas("evaluations").query("subject == @subject and metric == 'accuracy'")
    last = rows[rows["round"] == rows["round"].max()]
    return last.set_index(last.member.astype(int)).value


# --- by hand ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("start", "own"), [("own", 1.0), ("global", 0.375)])
def test_ditto_pulls_towards_the_received_model(start: str, own: float) -> None:
    """f = x^2 / 2, w = 1, v = 3, lambda = 0.5, a step of 0.5; the update is 0.5 - 1."""
    algorithm = {"name": "ditto", "lam": 0.5, "start": start}
    raw = quadratic([0.0], algorithm, {"dispatch": {"per_round": 1}}, 1, start=1.0, local__lr=0.5)
    worker = worker_of(raw, ServerWorker)
    message = worker.message(worker.first_state())
    state = {"w": torch.tensor([3.0]), "buffers": worker.start.buffers}
    sent, after = worker.algorithm.update(worker.client_task(0, 0, message), message, state)
    assert float(sent["delta"]) == pytest.approx(-0.5)
    assert float(after["w"]) == pytest.approx(own)


def with_head(body: nn.Module, head: Any) -> nn.Module:
    return nn.Sequential(OrderedDict(body=body, head=head))


@pytest.fixture
def bilinear(monkeypatch: pytest.MonkeyPatch) -> Raw:
    """A scenario of the bilinear clients, whose steps are 0.5, without its algorithm."""

    def build(model: MLP, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        body, head = (nn.Linear(1, 1, bias=False) for _ in range(2))
        for layer in (body, head):
            nn.init.ones_(layer.weight)
        return with_head(body, head)

    split = Split(np.ones((2, 1), dtype=np.float32), np.array([2.0, 2**0.5], dtype=np.float32))
    dataset = Dataset(train=split, test=split, num_classes=1, loss="squared_error")
    monkeypatch.setattr(MLP, "build", build)
    monkeypatch.setattr(LinearRegression, "load", lambda data: dataset)
    monkeypatch.setattr(LinearRegression, "divide", lambda data, train, generator: [np.array([0]), np.array([1])])
    return {
        "name": "bilinear",
        "data": {"name": "linear_regression", "clients": 2},
        "model": {"name": "mlp", "personal": ["head"]},
        "local": {"lr": 0.5, "batch_size": None},
    }


def after_rounds(raw: Raw, algorithm: Any, picks: list[list[int]], folder: Path) -> tuple[Record, list[Record]]:
    """The last state of the server, and of each client."""
    run = {"world": {"dispatch": {"picks": picks}}, "run": {"rounds": len(picks)}, "algorithm": algorithm}
    pool = WitnessPool()
    execute(override(raw | run, run__save_clients=True), folder, pool)
    return pool.server_state, [state for _, state in sorted(pool.client_states.items())]


@pytest.mark.parametrize(
    ("algorithm", "body", "head"),
    [
        ({"name": "fedper"}, 1.5, 1.5),
        ({"name": "fedper", "head_epochs": 1}, 1.375, 1.75),
        ({"name": "fedrep", "head_epochs": 1}, 1.375, 1.5),
        ({"name": "fedrep", "head_epochs": 0}, 1.5, 1.0),
    ],
)
def test_head_and_body_together_or_in_turn(
    bilinear: Raw, tmp_path: Path, algorithm: Raw, body: float, head: float
) -> None:
    server, (client, other) = after_rounds(bilinear, algorithm, [[0]], tmp_path)
    assert server["w"][0] == pytest.approx(body, abs=1e-6)
    assert client["head"] == pytest.approx([head], abs=1e-6)
    assert other["head"] == pytest.approx([1.0], abs=1e-6)


@pytest.mark.parametrize(
    ("choice", "head", "theta", "dual"),
    [
        ({}, 1.578125, 1.115921, 0.120461),
        ({"reset_local_theta": True}, 1.578125, 1.177826, None),
        ({"head_on_global": False}, 1.45703125, None, None),
    ],
)
def test_fedeq_by_hand(
    bilinear: Raw, tmp_path: Path, choice: Raw, head: float, theta: float | None, dual: float | None
) -> None:
    """A step for the head, one for theta_i: (1.375, 1.125), so theta = 1.25; then client 0 alone."""
    algorithm = {"name": "fedeq", "rho": 0.5, "head_epochs": 1, **choice}
    server, clients = after_rounds(bilinear, algorithm, [[0, 1]], tmp_path / "first")
    assert [float(client["w"][0]) for client in clients] == pytest.approx([1.375, 1.125], abs=1e-6)
    assert float(clients[0]["w"][-1]) == pytest.approx(1.5, abs=1e-6)
    assert float(clients[0]["dual"][0]) == pytest.approx(0.1875, abs=1e-6)
    assert float(server["w"][0]) == pytest.approx(1.25, abs=1e-6)
    _, (client, other) = after_rounds(bilinear, algorithm, [[0, 1], [0]], tmp_path / "second")
    assert float(client["w"][-1]) == pytest.approx(head, abs=1e-6)
    assert theta is None or float(client["w"][0]) == pytest.approx(theta, abs=1e-6)
    assert dual is None or float(client["dual"][0]) == pytest.approx(dual, abs=1e-6)
    assert float(other["w"][0]) == pytest.approx(1.125, abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "rounds", "theta", "own"),
    [
        ("mean", 1, 1.0, [0.5, 1.5]),
        ("mean", 2, 1.0, [0.75, 1.25]),
        ("mean", 12, 1.0, [1.0, 1.0]),  # (2 + rho * 0) / (1 + rho)
        ("admm", 1, 2.0, [0.5, 1.5]),
        ("admm", 12, 2.0, [2.0, 2.0]),  # the optimum
    ],
)
def test_fedeq_averages_with_or_without_duals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rule: str, rounds: int, theta: float, own: list[float]
) -> None:
    """f_i = (theta - a_i)^2 / 2, a = (1, 3), rho = 1: a step of 0.5 is an exact solve. The head is of no matter."""
    build = Vector.build
    monkeypatch.setattr(Vector, "build", lambda *given: with_head(build(*given), _Bystander()))
    raw = quadratic([1.0, 3.0], "", {}, 1, model__personal=["head"], local__lr=0.5)
    algorithm = {"name": "fedeq", "rho": 1.0, "server_rule": rule}
    server, clients = after_rounds(raw, algorithm, [[0, 1]] * rounds, tmp_path)
    assert float(server["w"][0]) == pytest.approx(theta, abs=2e-3)
    assert [float(client["w"][0]) for client in clients] == pytest.approx(own, abs=2e-3)


class _Bystander(nn.Module):
    """A parameter that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return x


# --- neighbours -------------------------------------------------------------------------------------------------------


def task_of(module: nn.Module, x: Tensor, y: Tensor, personal: tuple[str, ...] = ()) -> Task:
    net = Net(module, personal, "cross_entropy", CPU)
    return Task(net, net.model(), Samples.of(x, y), Local(), Population(1, len(y)), (0, 0, 0))


def constant(probabilities: list[float], features: int = 1) -> nn.Linear:
    """Gives these, whatever the features."""
    layer = nn.Linear(features, len(probabilities))
    nn.init.zeros_(layer.weight)
    layer.bias.data = torch.tensor(probabilities).log()
    return layer


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"distance": "euclidean"}, (13 / 30, 17 / 30)),
        ({}, (0.408927, 0.591073)),
        ({"distance": "euclidean", "k": 1}, (0.6, 0.4)),
        ({"mix": 0.0}, (0.2, 0.8)),
        ({"distance": "euclidean", "mix": 1.0, "scale": 0.5}, (0.8, 0.2)),
    ],
)
def test_neighbours_vote_by_distance(choice: Raw, expected: tuple[float, float]) -> None:
    """A neighbour of label 0 at distance 0, one of label 1 at ln 2; the global model says (0.2, 0.8)."""
    x = torch.tensor([[0.0], [np.log(2)]], dtype=torch.float32)
    task = task_of(nn.Sequential(constant([0.2, 0.8])), x, torch.tensor([0, 1]))
    predict = KNNPer(**choice).personal(task, {}, {})
    assert predict(torch.zeros(1, 1)).exp()[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_squared_distances_are_divided_by_the_dimension() -> None:
    """A neighbour of label 0 at distance 0, one of label 1 where d^2 / 2 = ln 2."""
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0]]) * np.log(2) ** 0.5
    task = task_of(nn.Sequential(constant([0.5, 0.5], features=2)), x, torch.tensor([0, 1]))
    predict = KNNPer(mix=1.0).personal(task, {}, {})
    assert predict(torch.zeros(1, 2)).exp()[0].tolist() == pytest.approx([2 / 3, 1 / 3], abs=1e-6)


def test_far_neighbours_vote_too() -> None:
    """Where exp(-d^2) is 0 in float32, the nearest still counts most."""
    x = torch.tensor([[100.0], [101.0]])
    task = task_of(nn.Sequential(constant([0.5, 0.5])), x, torch.tensor([0, 1]))
    predict = KNNPer(mix=1.0).personal(task, {}, {})
    assert predict(torch.zeros(1, 1)).exp()[0].tolist() == pytest.approx([1.0, 0.0])


def test_an_embedding_is_what_enters_the_personal_part_or_the_last_linear_layer() -> None:
    layers = OrderedDict(first=nn.Linear(4, 3), act=nn.ReLU(), second=nn.Linear(3, 3), out=nn.Linear(3, 2))
    x = torch.randn(600, 4)
    for personal, depth in (((), 3), (("out",), 3), (("out", "second"), 2), (("out.bias",), 3), (("first",), 0)):
        module = nn.Sequential(layers)
        task = task_of(module, x, torch.zeros(600, dtype=torch.int64), personal)
        with torch.no_grad():
            assert task.embed(task.received, x).equal(module[:depth](x)), personal


def test_sequences_have_a_neighbourhood_at_each_place() -> None:
    """Inputs (n, 5, 1), labels (n, 5): as if each place were a sample."""
    x, y = torch.randn(8, 5, 1), torch.randint(0, 2, (8, 5))
    whole = task_of(nn.Sequential(constant([0.3, 0.7])), x, y)
    flat = task_of(nn.Sequential(constant([0.3, 0.7])), x.reshape(-1, 1), y.flatten())
    of_whole, of_flat = (KNNPer().personal(task, {}, {}) for task in (whole, flat))
    assert of_whole(x[:3]).reshape(-1, 2).equal(of_flat(x[:3].reshape(-1, 1)))


# --- identities -------------------------------------------------------------------------------------------------------


def saved(simulate: Simulate, algorithm: Any, **more: Any) -> Result:
    return simulate(headed(algorithm, run__save_clients=True, **more))


def test_ditto_without_pull_is_training_alone(simulate: Simulate) -> None:
    """On the same batches, bit for bit; and its global model is that of FedAvg."""
    ditto = saved(simulate, {"name": "ditto", "lam": 0.0})
    alone = saved(simulate, "local_only")
    assert np.array_equal(own_models(ditto), own_models(alone))
    assert not np.array_equal(own_models(saved(simulate, "ditto")), own_models(alone))
    fedavg = simulate(headed({"name": "fedavg", "weights": "uniform"}))
    assert ditto.info["digest"]["model"] == fedavg.info["digest"]["model"]


class Bodies(FedAvg):
    """FedAvg of whole models, of which only the shared part is trained."""

    name: str = "bodies"

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received, part="shared")
        return trained.send(delta=trained.w - message["w"]), state


def test_fedrep_without_head_epochs_averages_bodies(simulate: Simulate) -> None:
    rep, bodies = (
        simulate(headed(algorithm)).info["digest"]["model"]
        for algorithm in ({"name": "fedrep", "head_epochs": 0}, "test_personal:Bodies")
    )
    assert rep == bodies


def test_fedper_with_one_client_is_fedavg(simulate: Simulate) -> None:
    """Whose head nobody else trains."""
    one: Raw = {"data__clients": 1, "world__dispatch": {"per_round": 1}}
    per = saved(simulate, "fedper", **one)
    fedavg = simulate(headed("fedavg", **one))
    assert own_models(per)[0] == pytest.approx(fedavg.vectors()["w"], abs=1e-6)


@pytest.mark.parametrize("head_on_global", [True, False])
def test_fedeq_without_penalty_that_starts_at_theta_is_fedrep(simulate: Simulate, head_on_global: bool) -> None:
    """Bit for bit: duals stay 0."""
    choice = {"rho": 0.0, "reset_local_theta": True, "head_on_global": head_on_global}
    eq = saved(simulate, {"name": "fedeq", "head_epochs": 2, **choice})
    rep = saved(simulate, {"name": "fedrep", "head_epochs": 2, "weights": "uniform"})
    assert eq.info["digest"]["model"] == rep.info["digest"]["model"]
    other = saved(simulate, {"name": "fedeq", "head_epochs": 2, **choice, "rho": 0.1})
    assert eq.info["digest"]["model"] != other.info["digest"]["model"]


def test_without_neighbours_knn_per_predicts_as_fedavg_does(simulate: Simulate) -> None:
    knn, fedavg, mixed = (
        simulate(headed(algorithm)) for algorithm in ({"name": "knn_per", "mix": 0.0}, "fedavg", "knn_per")
    )
    assert knn.info["digest"]["model"] == mixed.info["digest"]["model"] == fedavg.info["digest"]["model"]
    assert scores(knn).equals(scores(fedavg))
    assert not scores(mixed).equals(scores(fedavg))
    own = knn.pandas("evaluations").query("subject == 'client' and metric == 'loss'").value
    of_fedavg = fedavg.pandas("evaluations").query("subject == 'client' and metric == 'loss'").value
    assert own.to_numpy() == pytest.approx(of_fedavg.to_numpy(), rel=1e-4)


# --- the engine's part ------------------------------------------------------------------------------------------------


def algorithm_of(name: str) -> Central:
    algorithm = parse_scenario(headed(name)).algorithm
    assert isinstance(algorithm, Central)
    return algorithm


@pytest.mark.parametrize("name", PERSONAL)
def test_own_models_are_better_at_their_own_samples(simulate: Simulate, name: str) -> None:
    """Of clients that hold few labels: than the global model of FedAvg is, on average and after few rounds."""
    labels = {"name": "digits", "clients": 20, "partition": {"name": "classes", "per_client": 2}, "local_test": 0.3}
    raw = headed(name, data=labels, run={"rounds": 10, "evaluate_every": 10, "evaluate_clients": "all"})
    own, of_fedavg = (scores(simulate(raw, *options)) for options in ((), ("--set", "algorithm=fedavg")))
    assert len(own) == 20
    assert own.mean() > of_fedavg.mean() + 0.1


@pytest.mark.parametrize("name", PERSONAL)
def test_computed_delays_follow_all_trainings_of_an_update(simulate: Simulate, name: str) -> None:
    """The samples whose gradients are taken are those foreseen; steps are those of all trainings."""
    local = {"lr": 0.1, "batch_size": 16, "epochs": 2}
    used = simulate(headed(name, local=local)).pandas("updates").query("status == 'used'")
    algorithm = algorithm_of(name)
    foreseen = [algorithm.samples_seen(Local(**local), samples) for samples in used.samples]
    assert used.samples_seen.tolist() == foreseen
    batches = -(-used.samples // 16)
    epochs = {"ditto": 4, "fedrep": 12, "fedeq": 5}.get(name, 2)
    assert (used.local_steps == epochs * batches).all()


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
    """Of an MLP 64-16-10, the head of which is each client's own."""
    size = {0: 0, "body": 4 * (64 * 16 + 16), "whole": 4 * (64 * 16 + 16 + 16 * 10 + 10)}
    used = simulate(headed(name)).pandas("updates").query("status == 'used'")
    assert set(used.up_bytes) == {size[up]}
    assert set(used.down_bytes) == {size[down]}


def test_the_scenarios_steps_are_those_of_the_shared_part(simulate: Simulate) -> None:
    """Epochs of the head stay epochs."""
    local = {"lr": 0.1, "batch_size": 16, "steps": 3}
    algorithm = {"name": "fedrep", "head_epochs": 2}
    used = simulate(headed(algorithm, local=local)).pandas("updates").query("status == 'used'")
    assert (used.local_steps == 2 * -(-used.samples // 16) + 3).all()


@pytest.mark.parametrize("name", [name for name in PERSONAL if name != "knn_per"])
def test_saved_models_are_those_that_were_evaluated(simulate: Simulate, name: str) -> None:
    result = saved(simulate, name, data__clients=10)
    accuracy, evaluations = scores(result), result.pandas("evaluations")
    scenario = parse_scenario(headed(name, data__clients=10))
    worker = ServerWorker(scenario, 0.0)
    worker.load()
    for client in accuracy.index:
        with torch.no_grad():
            sums = worker._measure(result.client_module(client), *worker.federation.local_test(client))
        assert sums["accuracy"] / sums["samples"] == pytest.approx(accuracy[client])
    assert set(evaluations.subject) == {"global", "client"}


def test_clients_that_were_never_picked_are_saved_too(simulate: Simulate) -> None:
    result = saved(simulate, "fedper", run__rounds=1)
    assert result.clients()["client"].tolist() == list(range(30))
    heads = own_models(result)[:, -170:]
    assert len(np.unique(heads, axis=0)) == 7  # six that took part, and the initial one


# --- clients that never took part -------------------------------------------------------------------------------------


def unseen(algorithm: Any, **more: Any) -> Raw:
    """Of 24 clients with two labels each, the last six never take part."""
    labels: Raw = {"clients": 24, "partition": {"name": "classes", "per_client": 2}, "local_test": 0.3, "unseen": 0.25}
    run = {"rounds": 8, "evaluate_every": 4, "evaluate_clients": "all"}
    return headed(algorithm, **{"data": {"name": "digits", **labels}, "run": run} | more)


@pytest.mark.parametrize("name", [*PERSONAL, "fedavg"])
def test_unseen_clients_adapt_once_training_is_over(simulate: Simulate, name: str) -> None:
    result = simulate(unseen(name))
    own, evaluations = scores(result, "unseen"), result.pandas("evaluations")
    assert own.index.tolist() == list(range(18, 24))
    assert set(scores(result).index) == set(range(18))
    assert evaluations.query("subject == 'unseen'")["round"].unique().tolist() == [7]
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
    "algorithm",
    [
        {"name": "fedper", "adapt_epochs": 2},
        {"name": "fedrep", "head_epochs": 1, "adapt_epochs": 2},
        {"name": "fedeq", "head_epochs": 2},
    ],
)
def test_unseen_clients_fit_the_first_head_to_the_last_body(simulate: Simulate, bilinear: Raw, algorithm: Raw) -> None:
    """Client 0 changes the body b; client 1's heads: h <- h - (b h - sqrt(2)) b / 2, from 1."""
    data = {**bilinear["data"], "unseen": 0.5, "local_test": 0.5}
    raw = {
        **bilinear,
        "data": data,
        "world": {"dispatch": {"per_round": 1}},
        "run": {"rounds": 1, "save_clients": True},
    }
    result = simulate({**raw, "algorithm": algorithm})
    body, head = result.vectors()["w"][0], 1.0
    assert abs(body - 1) > 0.05
    if algorithm["name"] == "fedper":
        assert body == pytest.approx(1.5, abs=1e-6)  # in one joint step
    for _ in range(2):
        head -= 0.5 * (body * head - 2**0.5) * body
    assert result.clients()["client"].tolist() == [0, 1]
    assert own_models(result)[1, [0, -1]] == pytest.approx([body, head], abs=1e-6)


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

    def build(model: MLP, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        body = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 8), nn.ReLU())
        return with_head(body, nn.Linear(8, num_classes))

    monkeypatch.setattr(MLP, "build", build)
    result = simulate(unseen(name, world={"dispatch": {"per_round": 18}}), "--set", "run.save_clients=true")
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
    with pytest.raises(RunFailed, match=r"model.personal: must leave parameters to share, got all, by \[hidden1, h"):
        run(scenario, out=tmp_path, inline=True)


@pytest.mark.parametrize("name", WITH_HEADS)
def test_heads_must_be_named(name: str) -> None:
    text = f"model.personal: must name the parameters that stay a client's own, for {name} has some, got none"
    assert text in refusal(digits(algorithm=name))


def test_what_cannot_be_is_said() -> None:
    zero = {"name": "fedeq", "rho": 0.0, "server_rule": "admm"}
    assert "algorithm: rho must be greater than 0 with `server_rule: admm`" in refusal(headed(zero))
    text = refusal(quadratic([1.0], "knn_per", {"dispatch": {"per_round": 1}}, 1, run__save_clients=True))
    assert "algorithm.name: knn_per needs labels, and quadratic has none; take other data" in text
    assert "run.save_clients: must be false for knn_per" in text
    text = "`unseen` must be 0, or make one client of 30 unseen, got 0.001, which makes none; raise it to 0.0333333"
    assert text in refusal(headed("fedper", data__unseen=0.001))
    text = "data.unseen: clients that take no part are evaluated on samples of their own, got none"
    assert text in refusal(digits(data__unseen=0.1))
    peers: Raw = {"algorithm": "decfedavg", "topology": "ring", "world": {}}
    assert "run.save_clients: must be false for peers" in refusal(digits(run__save_clients=True, **peers))
    assert "run.evaluate_clients: must be" in refusal(headed("fedper", run__evaluate_clients="some"))
