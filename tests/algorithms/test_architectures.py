"""Clients whose models are of several architectures: FedMD, FedProto, FedDF and kNN-Per, by hand and as they were."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, override
from pytest import approx
from safetensors.torch import save_file
from same_bits import same_on_ray
from witness import WitnessPool, execute

import raysim
from raysim import RunFailed, ScenarioError, parse_scenario
from raysim.algorithms.fedmd import distance
from raysim.laws.runs import PicklingPool, carried_out
from raysim.laws.subject import SMALL as TRIED
from raysim.models import Torchvision
from raysim.models.build import initialise
from raysim.models.language_models import GPT

# --- by hand ----------------------------------------------------------------------------------------------------------


def constant(*logits: float) -> Raw:
    return {"name": "module", "module": "toys_mixed:Constant", "args": {"logits": list(logits)}}


def held(x: list[tuple[float, float]], rows: list[list[int]], **more: Any) -> Raw:
    """Clients with some rows of x, which all have the label 0; samples of the server and public ones are zero."""
    train = np.array([*x, *[(0.0, 0.0)] * 4], np.float32)
    y = np.zeros(len(train), np.int64)
    y[-1] = 1  # which is nobody's
    arrays = {"x_train": train, "y_train": y, "x_test": np.zeros((6, 2), np.float32), "y_test": np.arange(6) % 2}
    data = {"name": "arrays", "arrays": arrays, "clients": len(rows), "partition": {"name": "indices", "rows": rows}}
    raw = {
        "name": "mixed",
        "data": {**data, "scale": "unit"},
        "local": {"lr": 1e-9, "batch_size": None},
        "world": {"dispatch": {"picks": [list(range(len(rows)))]}},
        "run": {"rounds": 1},
    }
    return override(raw, **more)


LOGITS = [(0.0, 2.0), (0.0, 4.0), (1.0, 0.0)]


def three(algorithm: Any, **more: Any) -> Raw:
    """Three clients, each with other logits for all inputs: the first has the server's architecture, which begins with
    logits of its own."""
    groups = [{"name": f"g{n}", "members": [n], "model": constant(*one)} for n, one in enumerate(LOGITS)]
    rows = [[0], [1], [2]]
    return held([(0.0, 0.0)] * 3, rows, algorithm=algorithm, model=constant(0.0, 0.0), clients=groups, **more)


def test_the_consensus_is_the_mean_of_logits(tmp_path: Path) -> None:
    """And a client that digests it moves each logit by half of the rate towards it: the gradient of a mean of two."""
    algorithm = {"name": "fedmd", "digest_lr": 0.1}
    more: Raw = {"world__dispatch__picks": [[0, 1, 2], [1]], "run__rounds": 2, "run__save_clients": True}
    raw, pool = three(algorithm, public__samples=2, **more), WitnessPool()
    result = execute(raw, tmp_path, pool)
    (first, *_) = (request.message.content for request, _ in pool.seen if getattr(request, "version", 0) == 2)
    assert first["consensus"].tolist() == [approx([1 / 3, 2])] * 2
    assert distance(torch.tensor([LOGITS[0]]), torch.tensor([[1 / 3, 2.0]])).item() == approx(1 / 6)
    with torch.no_grad():
        assert result.module(client=1)(torch.zeros(1, 2))[0].tolist() == approx([0.05, 3.95], abs=1e-6)
        assert result.module(client=2)(torch.zeros(1, 2))[0].tolist() == approx([1.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(("ensemble", "expected"), [("logits", 0.841131), ("probabilities", 0.710584)])
def test_each_student_learns_what_the_models_of_all_clients_predict(
    simulate: Simulate, ensemble: str, expected: float
) -> None:
    """That of the server's own architecture, too, which no client has."""
    fit = {"server_optimizer": "sgd", "server_lr": 2.0, "server_epochs": 200, "server_batch_size": None}
    algorithm = {"name": "feddf", "ensemble": ensemble, **fit}
    result = simulate(three(algorithm, server_data={"name": "in_domain", "samples": 2}))
    for group in (None, "g0", "g1", "g2"):
        with torch.no_grad():
            found = result.module(group=group)(torch.zeros(1, 2)).softmax(1)
        assert found[0, 1].item() == approx(expected, abs=1e-5)
    assert result.predict(np.zeros((1, 2), np.float32), group="g2").tolist() == [1]


def test_a_student_of_nobody_who_reported_begins_where_it_was(simulate: Simulate) -> None:
    algorithm = {"name": "feddf", "server_epochs": 0}
    more: Raw = {"world__dispatch__picks": [[0, 1]], "server_data": {"name": "in_domain", "samples": 2}}
    result = simulate(three(algorithm, **more))
    with torch.no_grad():
        assert result.module(group="g2")(torch.zeros(1, 2)).tolist() == [[1.0, 0.0]]


def test_prototypes_count_samples_of_all_architectures(tmp_path: Path) -> None:
    """(1, 0) of three samples and (0, 2) of one: (0.75, 0.5). From it, (1, 1) is 0.15625 away."""
    picks = [[0, 1], [2]]
    bare = {"name": "bare", "members": [1, 2], "model": {"name": "module", "module": "toys_mixed:as_it_is"}}
    bare["model"] = {**bare["model"], "args": {"bias": False}}
    model = {"name": "module", "module": "toys_mixed:as_it_is"}
    x, rows = [(1.0, 0.0)] * 3 + [(0.0, 2.0), (1.0, 1.0)], [[0, 1, 2], [3], [4]]
    more: Raw = {"world__dispatch__picks": picks, "run__rounds": 2, "run__save_clients": True}
    algorithm = {"name": "fedproto", "lam": 1.0, "predict": "model"}
    raw, pool = held(x, rows, algorithm=algorithm, model=model, clients=[bare], **more), WitnessPool()
    result = execute(raw, tmp_path, pool)
    (first, *_) = (request.message.content for request, _ in pool.seen if getattr(request, "version", 0) == 2)
    assert first["prototypes"][0].tolist() == approx([0.75, 0.5])
    losses = result.pandas("updates").set_index("client").loss_before
    assert losses[0] == approx(np.log(2)) and losses[2] == approx(np.log(2) + 0.15625)


# --- identities -------------------------------------------------------------------------------------------------------

SMALL: Raw = {"name": "mlp", "hidden": [8, 16]}
CONV: Raw = {"name": "module", "module": "toys_mixed:Normed"}
SERVER: Raw = {"name": "in_domain", "samples": 60}
ALGORITHMS: dict[str, tuple[Any, Raw]] = {
    "fedmd": ({"name": "fedmd", "digest_lr": 0.01}, {"public__samples": 20}),
    "fedproto": ({"name": "fedproto", "predict": "model"}, {}),
    "local_only": ("local_only", {}),
    "knn_per": ("knn_per", {}),
    "feddf": ({"name": "feddf", "server_epochs": 1}, {"server_data": SERVER}),
}
EACH = pytest.mark.parametrize("name", ALGORITHMS)


def mixed(name: str, small: Any = SMALL, conv: Any = CONV, **more: Any) -> Raw:
    """Thirty clients of three architectures, one of which two groups share."""
    algorithm, needs = ALGORITHMS[name]
    groups = [
        {"name": "small", "number": 8, "model": small},
        {"name": "conv", "number": 8, "model": conv},
        {"name": "late", "number": 6, "model": SMALL, "local": {"epochs": 2}},
    ]
    raw = digits(algorithm=algorithm, clients=groups, data__local_test=0.2, **needs)
    return override(raw, **{"run__evaluate_clients": "all", "data__unseen": 0.1, **more})


@EACH
def test_groups_of_one_architecture_have_the_bits_of_none(simulate: Simulate, name: str) -> None:
    """Groups may have the server's architecture, or all clients another one, so that no client has the server's."""
    members = {"name": "all", "share": 1.0}
    plain = simulate(mixed(name, clients=[members], run__rounds=3))
    same = simulate(mixed(name, clients=[{**members, "model": {"name": "mlp", "hidden": [16]}}], run__rounds=3))
    assert plain.digest == same.digest and "models" not in same.info
    others = [{**members, "model": SMALL}]
    raw = mixed(name, clients=others, run__rounds=3)
    apart, whole = simulate(raw), simulate({**raw, "clients": [members], "model": SMALL})
    columns = ["client", "up_bytes", "loss_before", "loss_after", "samples_seen"]
    assert apart.pandas("updates")[columns].equals(whole.pandas("updates")[columns])
    own = [found.pandas("evaluations").query("subject in ['client', 'unseen']") for found in (apart, whole)]
    assert own[0].value.tolist() == own[1].value.tolist() and len(own[0])
    if name == "knn_per":  # whose student in feddf learns from nobody
        assert np.array_equal(apart.vectors()["w of all"], whole.vectors()["w"])


@EACH
def test_the_same_bits_when_a_run_goes_on(name: str) -> None:
    raw = mixed(name, run__rounds=4, resources={"chunk": 3, "shards": 2})
    found = carried_out(raw)
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == found.digest
    assert carried_out({**raw, "resources": {"chunk": 3, "shards": 2, "aggregators": 2}}).digest == found.digest


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("name", ["feddf", "fedmd", "fedproto"])
def test_the_same_bits_on_ray(name: str, tmp_path: Path) -> None:
    same_on_ray(mixed(name, run__rounds=3), tmp_path)


def test_without_digestion_clients_learn_alone(simulate: Simulate) -> None:
    saved: Raw = {"run__save_clients": True, "clients": []}
    alone = {"name": "fedmd", "digest_epochs": 0}
    one, other = (
        simulate(mixed("fedmd", algorithm=alone, world__delay="none", **saved)),
        simulate(mixed("local_only", world__delay="none", **saved)),
    )
    assert all(np.array_equal(one.clients()[key], other.clients()[key]) for key in ("client", "w"))


# --- what is known, evaluated and left --------------------------------------------------------------------------------


@EACH
def test_costs_are_known_before_training(simulate: Simulate, name: str) -> None:
    rates = {f"{key}_per_s": {"name": "log_normal", "median": 1e6, "sigma": 1.0} for key in ("flops", "up_bytes")}
    delay = {"name": "compute", **rates, "down_bytes_per_s": {"name": "constant", "value": 1e5}}
    raw = mixed(name, world__delay=delay, run__rounds=4)
    result, dry = simulate(raw), simulate(raw, "--dry")
    assert dry.info["models"] == result.info["models"]
    assert dry.pandas("updates").arrived_at.tolist() == result.pandas("updates").arrived_at.tolist()
    facts = result.info["models"]
    assert {key: one["clients"] for key, one in facts.items()} == {"server": 8, "small": 14, "conv": 8}
    sizes = {"server": 65 * 16 + 170, "small": 65 * 8 + 9 * 16 + 170, "conv": 40 + 8 + 170}
    assert {key: one["parameters"] for key, one in facts.items()} == sizes
    assert len({one["forward_flops"] for one in facts.values()}) == len({one["memory_bytes"] for one in facts.values()})
    names = {0: "small", 1: "conv", 2: "small"}
    used = result.pandas("updates").query("status == 'used' and version > 0")
    for row in used.itertuples():
        of = facts[names.get(row.group, "server")]
        assert (row.up_bytes, row.down_bytes) == (of["up_bytes"], of["down_bytes"])
    if name == "feddf":
        assert facts["conv"]["up_bytes"] == 4 * (sizes["conv"] + 8)  # with statistics


@pytest.mark.parametrize("name", ["feddf", "knn_per"])
def test_the_servers_models_are_evaluated_and_left(simulate: Simulate, name: str, tmp_path: Path) -> None:
    result = simulate(mixed(name))
    rows = result.pandas("evaluations").query("metric == 'accuracy'")
    last = rows[rows.step == rows.step.max()]
    assert last[last.subject == "group"].member.tolist() == [0, 1]
    scenario = parse_scenario(mixed(name))
    worker = execute_worker(scenario)
    x, y = worker.loader(*worker.evaluator.splits["test"])
    for group, at in ((None, None), ("small", 0), ("conv", 1), ("late", 0)):
        module = result.module(group=group)
        with torch.no_grad():
            found = float((module(x).argmax(1) == y).float().mean())
        expected = last[(last.subject == "global") if at is None else (last.member == at) & (last.subject == "group")]
        assert found == approx(expected.value.item())
    assert not torch.equal(result.module(group="conv")[1].running_mean, torch.zeros(4))
    own = last[last.subject == "client"]
    places = {client: n for n, of in enumerate(result.info["groups"].values()) for client in of}
    assert own.group.fillna(-1).tolist() == [places.get(member, -1) for member in own.member]
    assert (result.export("safetensors", tmp_path / "left", group="conv") / "model.safetensors").is_file()
    with pytest.raises(ValueError, match="group: must be in `clients`, whose are small, conv, late, got 'none'"):
        result.module(group="none")


def execute_worker(scenario: Any) -> Any:
    from actors import Value
    from raysim.data import federate
    from raysim.workers.workshop import Become, Workshop

    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    return Become(Value(federation)).build(Workshop(scenario, 0.0))


def test_clients_own_models_are_left_by_architecture(simulate: Simulate) -> None:
    result = simulate(mixed("fedproto", run__save_clients=True, run__rounds=2))
    saved, groups = result.clients(), result.info["groups"]
    assert set(saved["client of conv"]) == set(groups["conv"])
    assert set(saved["client of small"]) == {*groups["small"], *groups["late"]}
    kinds = {"conv": torch.nn.Conv2d, "small": torch.nn.Flatten}
    for group, kind in kinds.items():
        assert isinstance(result.module(client=groups[group][0])[0], kind)
    with pytest.raises(ValueError, match=r"group: must be one for which the server of fedproto has a model, got"):
        result.module(group="conv")
    with pytest.raises(ValueError, match="client: must be one with a saved model, got 99"):
        result.module(client=99)


def test_a_student_begins_with_weights_from_a_file(simulate: Simulate, tmp_path: Path) -> None:
    """And keeps them, statistics included, where nobody of its group reports and it is not trained."""
    file, model = str(tmp_path / "weights.safetensors"), {"model": "mobilenet_v3_small", "image_size": 32}
    given = initialise(Torchvision(**model), (1, 8, 8), 10, seed=1).state_dict()
    save_file({key: value.contiguous() for key, value in given.items()}, file)
    vision = {"name": "torchvision", **model, "weights": file, "personal": ["classifier"]}
    more: Raw = {"server_data": {"name": "in_domain", "samples": 4}, "world": {"dispatch": {"picks": [[0, 1]]}}}
    algorithm, groups = {"name": "feddf", "server_epochs": 0}, [{"name": "vision", "members": [2], "model": vision}]
    result = simulate(digits(algorithm=algorithm, clients=groups, run={"rounds": 1}, **more))
    left = result.module(group="vision").state_dict()
    assert left.keys() == given.keys() and all(torch.equal(left[key], given[key]) for key in given)


# --- beside other blocks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("fedmd", {"uplink": [{"name": "quantise", "bits": 8, "entries": ["logits"]}]}),
        ("fedproto", {"uplink": [{"name": "quantise", "bits": 8, "entries": ["sums"]}]}),
        ("feddf", {"uplink": [{"name": "top_k", "share": 0.1, "memory": "ef14"}, {"name": "clip_norm", "max": 1.0}]}),
        ("knn_per", {"uplink": [{"name": "quantise", "bits": 8}], "downlink": [{"name": "half"}]}),
        ("feddf", {"downlink": [{"name": "top_k", "share": 0.1, "memory": "shadow", "shadow": "client"}]}),
        ("fedmd", {"downlink": [{"name": "half", "entries": ["consensus"]}]}),
        ("knn_per", {"algorithm": {"name": "knn_per", "aggregate": "median"}, "world__dispatch__per_round": 24}),
        ("knn_per", {"algorithm": {"name": "knn_per", "server": {"name": "adam", "lr": 0.01}}}),
        ("knn_per", {"run__compare_updates": True}),
        ("fedproto", {"local__optimizer": {"name": "sgd", "momentum": 0.9, "keep": True}}),
        ("local_only", {"conv": {**CONV, "norm": "frozen"}, "small": {**SMALL, "frozen": ["hidden1"]}}),
        ("fedmd", {"small": {**SMALL, "lora": {"rank": 2}}}),
        ("feddf", {"data__validation": 0.1, "run__keep_best": "validation accuracy", "run__evaluate_every": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_it_goes_with_other_blocks(name: str, more: Raw) -> None:
    raw = mixed(name, **{"run__rounds": 4, **more})
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == carried_out(raw).digest


def test_compared_updates_are_in_their_rows(simulate: Simulate) -> None:
    """Each is compared with the mean of its own architecture's, with which one that is alone agrees."""
    rows = simulate(mixed("knn_per", run__compare_updates=True)).pandas("updates").query("status == 'used'")
    kinds = rows.group.map({0: "small", 1: "conv", 2: "small"}).fillna("server")
    alone = rows.groupby([rows.step, kinds]).client.transform("count") == 1
    assert (rows.update_norm > 0).all() and alone.any()
    assert rows.update_cosine[alone].tolist() == approx([1.0] * alone.sum()) and (rows.update_cosine[~alone] < 1).all()


MLP: Raw = {"name": "mlp", "hidden": [8]}
REFUSED: list[tuple[str, Raw, str, str]] = [
    ("knn_per", {"algorithm": "fedavg"}, "clients.0.model", "take one of .*feddf, fedmd, .*fedproto, knn_per,"),
    ("knn_per", {"algorithm": "heterofl"}, "clients.0.model", "must be left out for heterofl, whose clients all have"),
    ("knn_per", {"small": {"name": "mlp", "hiden": [8]}}, "clients.0.model.hiden", "did you mean 'hidden'"),
    ("knn_per", {"small": {"name": "mpl"}}, "clients.0.model.name", "must be one of"),
    ("knn_per", {"small": {"width": 0.5}}, "clients", "must be left out for knn_per, .* one size"),
    ("knn_per", {"small": {"width": 2}}, "clients.0.model.width", "less than or equal to 1"),
    ("knn_per", {"small": {**MLP, "norm": "local"}}, "clients.0.model.norm", "must be average, because mlp has"),
    ("knn_per", {"small": "transformer"}, "clients.0.model.name", "takes text"),
    ("knn_per", {"capacity": {"levels": [1.0, 0.5]}}, "capacity", "must be left out"),
    (
        "feddf",
        {"downlink": [{"name": "top_k", "share": 0.1, "memory": "shadow", "shadow": "all"}]},
        "downlink.0.shadow",
        "must be client where groups",
    ),
    ("feddf", {"uplink": [{"name": "clip_norm", "max": 1.0, "adapt": {}}]}, "uplink.0.adapt", "several architectures"),
    (
        "knn_per",
        {"algorithm": {"name": "knn_per", "weights": "scaled"}},
        "algorithm.weights",
        "must be samples or uniform",
    ),
    (
        "knn_per",
        {"release": {"name": "gaussian", "multiplier": 1.0}, "uplink": [{"name": "clip_norm", "max": 1.0}]},
        "clients",
        "must have no `model` with a release, whose noise is on one sum",
    ),
    ("fedmd", {"public__samples": 0}, "public.samples", "must be at least 1, because clients of fedmd"),
]


@pytest.mark.parametrize(("name", "more", "path", "text"), REFUSED, ids=[f"{n}-{path}" for n, _, path, _ in REFUSED])
def test_what_does_not_go_together_is_refused(name: str, more: Raw, path: str, text: str) -> None:
    with pytest.raises(ScenarioError, match=text) as error:
        parse_scenario(mixed(name, **more))
    assert path in [problem.path for problem in error.value.problems]


def language_model(rows: int) -> Raw:
    return {"name": "causal_lm", "config": {**GPT, "vocab_size": rows}}


TEXTS: Raw = {"data": TRIED["texts"]["data"], "model": language_model(300)}


@pytest.mark.parametrize(
    ("name", "model", "more", "text"),
    [
        ("fedmd", language_model(310), {**TEXTS, "public__samples": 4}, "logits of 300 numbers, .* fedmd, got 310"),
        ("feddf", language_model(310), {**TEXTS, "server_data__samples": 4}, "logits of 300 .* for feddf, got 310"),
        ("fedmd", constant(*[0.0] * 9), {}, "logits .* one for each of 10 labels, got shape .* 9"),
        ("fedproto", MLP, {}, "embeddings of 16 numbers, .* for fedproto, got 8"),
        ("fedproto", {**SMALL, "personal": ["hidden2", "head"]}, {}, "embeddings of 16 numbers, .* got 8"),
        ("knn_per", {**SMALL, "personal": ["none"]}, {}, "'none' must be a trainable parameter"),
    ],
    ids=["fedmd", "feddf", "labels", "fedproto", "personal", "unknown"],
)
def test_sizes_that_differ_are_refused_before_the_run(
    name: str, model: Raw, more: Raw, text: str, tmp_path: Path
) -> None:
    algorithm, needs = ALGORITHMS[name]
    raw = digits(algorithm=algorithm, clients=[{"name": "other", "members": [1], "model": model}], **needs)
    with pytest.raises(RunFailed, match=rf"clients\.0\.model.*{text}"):
        raysim.run(override(raw, **more), out=tmp_path, inline=True, progress=False)
