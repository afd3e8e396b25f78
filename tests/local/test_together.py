"""Clients that are trained together get what they would have got one by one."""

from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, digits
from safetensors.numpy import load_file

import raysim
from raysim.algorithms import ALGORITHMS, Central

ALONE = {"center", "fedadmm_in", "fedadmm_insa"}  # they train nothing, or to a tolerance
NAMES = [a.model_fields["name"].default for a in ALGORITHMS if issubclass(a, Central)]
TABLE = ["client", "local_steps", "loss_before", "loss_after", "penalty", "up_bytes", "down_bytes"]
CNN = {"name": "cnn", "channels": [4, 6], "kernel": 3, "padding": "same", "hidden": 16}
SERVER = {"name": "in_domain", "samples": 50}


def small(**more: Any) -> Raw:
    """Two rounds on clients of 8 to 120 samples, in which every update is used, and clients' own models are kept."""
    usual: Raw = {"algorithm": "fedavg", "run__rounds": 2, "world__delay": "none", "run__save_clients": True}
    return digits(**{**usual, "local__epochs": 2, **more})


def both(simulate: Simulate, raw: Raw) -> tuple[raysim.Result, raysim.Result]:
    """The run one by one, and the run with clients trained together."""
    return simulate(raw), simulate(raw, "--set", "resources.vectorize=true")


def assert_equal(alone: raysim.Result, together: raysim.Result) -> None:
    for path in alone.folder.glob("*.safetensors"):
        right, found = load_file(path), load_file(together.folder / path.name)
        for key, value in right.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-5)
    for column in TABLE:
        right, found = alone.pandas("updates")[column], together.pandas("updates")[column]
        np.testing.assert_allclose(found.astype(float), right.astype(float), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", [name for name in NAMES if name not in ALONE])
def test_every_algorithm(algorithm: str, simulate: Simulate) -> None:
    head = {"name": "mlp", "hidden": [16], "personal": ["head"]}
    keeps = algorithm != "knn_per"  # whose clients do not predict with a model alone
    raw = small(algorithm=algorithm, model=head, server_data=SERVER, run__save_clients=keeps)
    alone, together = both(simulate, raw)
    assert_equal(alone, together)
    assert not [note for note in together.info["notes"] if "vectorize" in note]
    assert alone.info["digest"] != together.info["digest"]  # bits differ, so it was done


@pytest.mark.parametrize(
    "more",
    [
        {"model": CNN},
        {"model": {"name": "module", "module": "toys_together:Attentive"}},
        {"model": {"name": "module", "module": "toys_together:dropping", "args": {"rate": 0.0}}},
        {"local": {"optimizer": "adam", "lr": 0.01, "batch_size": 16, "epochs": 3, "weight_decay": 0.01}},
        {"local": {"momentum": 0.9, "lr": 0.05, "batch_size": 16, "weight_decay": 0.01}},
        {"local": {"sam": 0.05, "batch_size": 16}, "algorithm": {"name": "fedprox", "mu": 0.1}},
        {"local": {"batch_size": None, "epochs": 3}},
        {"local": {"batch_size": 16, "steps": 5, "drop_last": True}},
        {"run__loss": "focal"},
        {"algorithm": "toys_together:Noisy"},
        {"algorithm": "toys_together:TrainsTwice"},
    ],
    ids=str,
)
def test_models_and_settings(more: Raw, simulate: Simulate) -> None:
    alone, together = both(simulate, small(**more))
    assert_equal(alone, together)
    assert alone.info["digest"] != together.info["digest"]


def test_dispatches_of_several_versions_and_any_chunk(simulate: Simulate) -> None:
    """Clients in a chunk start from different versions, and who is in a chunk with whom does not matter."""
    raw = digits(algorithm="ca2fl", model=CNN, run__save_clients=True)
    alone = simulate(raw)
    assert alone.pandas("updates").staleness.max() > 0
    for chunk in (2, 5, 50):
        assert_equal(alone, simulate(raw, "--set", f"resources={{chunk: {chunk}, vectorize: true}}"))


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_bits_do_not_depend_on_the_number_of_workers(tmp_path: Any) -> None:
    raw = digits(algorithm="scaffold", model=CNN, resources={"chunk": 4, "vectorize": True})
    digests = [
        raysim.run({**raw, "resources": {**raw["resources"], "client_actors": actors}}, out=tmp_path).info["digest"]
        for actors in (1, 2)
    ]
    digests.append(raysim.run(raw, out=tmp_path, inline=True).info["digest"])
    assert digests[0] == digests[1] == digests[2]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"model": {"name": "module", "module": "own_modules:Net"}}, "the model has buffers, such as BatchNorm's"),
        ({"model": {"name": "module", "module": "toys_together:Centred"}}, "depend on other samples of the batch"),
        ({"model": {"name": "module", "module": "toys_together:Counting"}}, "the model changes a buffer in training"),
        ({"model": {"name": "module", "module": "toys_together:dropping"}}, "random operation"),
        ({"model": {"name": "deq_mlp", "width": 8, "hidden": 8}}, "weights with a bound"),
        ({"model": {"name": "deq_mlp", "width": 8, "hidden": 8, "kappa": None}}, "torch.func.vmap cannot do the model"),
        ({"algorithm": "fedadmm_in"}, "fedadmm_in trains to a tolerance, with a loss of its own, or not at all"),
        ({"algorithm": "toys_together:OwnLoss"}, "with a loss of its own"),
        ({"resources__chunk": 1}, "a chunk holds one client only"),
        ({"algorithm": "decfedavg", "topology": "ring", "world": {}, "run__save_clients": False}, "peers always are"),
    ],
    ids=str,
)
def test_what_cannot_be_done_together_is_done_one_by_one_and_told(more: Raw, why: str, simulate: Simulate) -> None:
    alone, together = both(simulate, small(**more))
    (note,) = together.info["notes"]
    assert note.startswith("resources.vectorize: clients are trained one by one: ")
    assert why in note
    assert alone.info["digest"] == together.info["digest"]


def test_a_correction_must_not_draw_from_what_all_clients_share(tmp_path: Any) -> None:
    raw = small(algorithm={"name": "toys_together:Noisy", "own": False}, resources__vectorize=True)
    with pytest.raises(raysim.RunFailed, match=r"a correction must draw from task\.generator"):
        raysim.run(raw, out=tmp_path, inline=True)


def test_only_training_together_changes_the_hash_of_a_scenario() -> None:
    alone, auto, together = (raysim.parse_scenario(small(resources__vectorize=v)).hash for v in (False, "auto", True))
    assert alone == auto != together
