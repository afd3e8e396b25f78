"""What is not spelled as scenario files spell it is found by its letters and digits."""

from typing import Any

import pytest
from command_line import QUICKSTART

from raysim import ScenarioError, load_scenario, parse_scenario

RIGHT: dict[str, Any] = {
    "name": "spelled",
    "data": {"name": "digits", "clients": 4},
    "model": "mlp",
    "algorithm": "fedavg",
    "world": {"dispatch": {"per_round": 2}},
    "run": {"rounds": 1},
}


def problem(changes: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as error:
        parse_scenario({**RIGHT, **changes})
    return str(error.value)


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
        assert f"got {written!r} (did you mean {meant!r}?)" in problem({"algorithm": given})


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
    (told,) = problems_with(f"{written}=1")
    assert told.startswith(f"{written}: unknown key (did you mean {meant}?); known here: ")


def problems_with(override: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(QUICKSTART, [override])
    return [str(problem) for problem in caught.value.problems]


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
    assert f"(did you mean {meant!r}?)" in problem(changes)


def test_what_is_like_nothing_is_not_guessed() -> None:
    assert "did you mean" not in problem({"model": "ViT"})
