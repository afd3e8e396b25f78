"""What is spelled otherwise is found, and advice of refusals that can be followed leads to a scenario that is right."""

import re
from typing import Any

import pytest
from command_line import QUICKSTART
from conftest import Raw, digits
from refusals import problems, told
from ruamel.yaml import YAML

from raysim import ScenarioError, load_scenario, parse_scenario
from raysim.scenario.load import assign

# --- advice that can be followed --------------------------------------------------------------------------------------


STEPS = 5  # pieces of advice that may follow each other


def follow(raw: Raw, path: str, text: str) -> bool:
    """Does what a refusal says, and tells whether it could."""
    if found := re.search(r"set (\w+\.\w+)(?:, for example to| to a share, such as) ([\w.]+)", text):
        return put(raw, path, found[1], found[2])
    if found := re.search(r"(?:for example|try) `?(\{[^`}]+\})", text):
        return put(raw, "", path, found[1])
    if found := re.search(r"`([\w.]+): ([^`]+)`", text) or re.search(r"set ([\w.]+): (\w+)", text):
        return put(raw, path, found[1], found[2])
    if found := re.search(r"must (?:be|give a step) (?:at most|at least|[a-z ]+ or equal to) .*?(\d+)", text):
        return put(raw, "", path, found[1])
    *blocks, last = path.split(".")
    block: Any = raw
    for key in blocks:
        block = block[key]
    if "leave it out" in text:
        return block.pop(last, path) is not path
    if (found := re.search(r"did you mean '(\w+)'", text)) and "unknown key" in text:
        block[found[1]] = block.pop(last)
        return True
    if found := found or re.search(r"must be (\w+) for", text):
        return put(raw, "", path.removesuffix(".name"), found[1])
    found = re.search(r"for example (\[\w+\])$", text)
    return found is not None and put(raw, "", path, found[1])


def put(raw: Raw, path: str, key: str, value: str) -> bool:
    """Sets a key, which is that of a part of what the refusal is about, or a whole one."""
    block: Any = raw
    for step in path.split("."):
        block = block.get(step) if isinstance(block, dict) else None
    whole = f"{path}.{key}" if isinstance(block, dict) and key not in (path, *raw) and "." not in key else key
    return assign(raw, whole, YAML(typ="safe").load(value), "advice") is None


REFUSED: dict[str, Raw] = {
    "a key": {"algorithm": {"name": "fedbuff", "bufer": 5}},
    "a name": {"algorithm": "fedbuf"},
    "more than there are": {"world__dispatch__per_round": 600},
    "less than nothing": {"world__delay__sigma": -5},
    "personal parameters": {"algorithm": "fedrep"},
    "samples of the server": {"algorithm": "feddle"},
    "no server": {"algorithm": "decfedavg"},
    "an optimizer": {"algorithm": "scaffold", "local__optimizer": "adam"},
    "own test samples": {"run__evaluate_clients": "all"},
    "enough updates": {"algorithm": {"name": "fedbuff", "buffer": 10, "aggregate": {"name": "krum", "byzantine": 5}}},
    "a single step": {"algorithm": "d_psgd"},
    "public samples": {"algorithm": "fedf_admm"},
    "tiers": {"algorithm": "fedat"},
    "adapters": {"algorithm": "flora"},
    "the best on validation": {"run__keep_best": "validation accuracy"},
    "a target": {"run__until": {"metric": "accuracy", "at_least": 0.9}},
    "enough for Bulyan": {
        "algorithm": {"name": "fedbuff", "buffer": 5, "aggregate": {"name": "bulyan", "byzantine": 2}}
    },
    "no peers": {"topology": "ring"},
    "equal rates": {"algorithm": "dsgt"},
    "labels at the server": {"algorithm": "hfcl"},
    "chunks": {"resources__chunk": 0},
}


@pytest.mark.parametrize("what", REFUSED)
def test_advice_that_is_followed_leads_to_a_scenario_that_is_right(what: str) -> None:
    raw = digits(**REFUSED[what])
    seen = []
    for _ in range(STEPS):
        found = problems(raw)
        seen.append(found)
        followed = [follow(raw, path, text) for path, text in found.items()]
        assert any(followed), found
        try:
            parse_scenario(raw)
            return
        except ScenarioError:
            continue
    raise AssertionError(seen)


# --- what is spelled otherwise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("FedAvg", "fedavg"),
        ("SCAFFOLD", "scaffold"),
        ("CA2FL", "ca2fl"),
        ("FeDEQ", "fedeq"),
        ("Fed+FT", "fed_ft"),
        ("FedAvg+FT", "fedavg_ft"),
        ("FedADMM-In", "fedadmm_in"),
        ("FedADMM-InSa", "fedadmm_insa"),
        ("kNN-Per", "knn_per"),
        ("Local", "local_only"),
        ("FedF-ADMM", "fedf_admm"),
        ("DFedADMM", "dfedadmm"),
        ("DFedAvgM", "dfedavgm"),
        ("dec_fed_avg", "decfedavg"),
        ("Dec-FedAvg", "decfedavg"),
        ("D-PSGD", "d_psgd"),
        ("DPSGD", "d_psgd"),
        ("CDSGD", "cdsgd"),
        ("fedbuf", "fedbuff"),
    ],
)
def test_an_algorithm_is_found_by_the_spelling_of_its_paper(written: str, meant: str) -> None:
    for given in (written, {"name": written}):
        assert f"got {written!r} (did you mean {meant!r}?)" in told(digits() | {"algorithm": given})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("batch_size", "'local.batch_size'"),
        ("rounds", "'run.rounds'"),
        ("world.sigma", "'world.delay.sigma' or 'world.edge_delay.sigma'"),
        ("data.alpha", "'data.partition.alpha'"),
        ("local.lrr", "'lr'"),
    ],
)
def test_a_key_in_another_place_is_found(written: str, meant: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(QUICKSTART, [f"{written}=1"])
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{written}: unknown key (did you mean {meant}?); known here: ")


@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        ({"data": {"name": "CIFAR-10", "clients": 4, "root": "data"}}, "cifar10"),
        ({"data": {"name": "Fashion-MNIST", "clients": 4, "root": "data"}}, "fashion_mnist"),
        ({"data": {"name": "digits", "clients": 4, "partition": "DirichletClients"}}, "dirichlet_clients"),
        ({"data": {"name": "digits", "clients": 4, "partition": "IID"}}, "iid"),
        ({"model": "ResNet-18"}, "resnet"),
        ({"model": "DEQ-MLP"}, "deq_mlp"),
        ({"world": {"delay": {"name": "HalfNormal", "sigma": 1.0}}}, "half_normal"),
        ({"topology": "Erdős-Rényi"}, "erdos_renyi"),
        ({"topology": "small-world"}, "small_world"),
        ({"local": {"batchSize": 10}}, "batch_size"),
        ({"local": {"optimizer": "Adam"}}, "adam"),
    ],
)
def test_so_are_other_parts_keys_and_values(changes: dict[str, Any], meant: str) -> None:
    assert f"(did you mean {meant!r}?)" in told(digits() | changes)


def test_what_is_like_nothing_is_not_guessed() -> None:
    assert "did you mean" not in told(digits() | {"model": "ViT"})
