"""Runs with the parts of training switched on: each one changes something, its identity nothing, and all of them keep
the laws together."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import Raw, override

import raysim
from raysim.algorithms.aggregates import AGGREGATES
from raysim.algorithms.rules import RULES
from raysim.clients.behaviours import BEHAVIOURS
from raysim.laws.runs import PicklingPool, carried_out
from raysim.local.augment import AUGMENTATIONS
from raysim.local.gradients import GRADIENTS
from raysim.local.loss import TRAINING_LOSSES
from raysim.local.optimizers import OPTIMIZERS
from raysim.parts.part import names_of
from raysim.schedules import SCHEDULES
from raysim.world.policies import POLICIES

BASE: Raw = {
    "name": "parts",
    "data": {
        "name": "digits",
        "clients": 8,
        "partition": {"name": "dirichlet_clients", "alpha": 0.5},
        "train_samples": 160,
        "test_samples": 40,
    },
    "model": {"name": "mlp", "hidden": [8]},
    "algorithm": {"name": "fedavg"},
    "local": {"lr": 0.1, "batch_size": 8},
    "world": {"dispatch": {"per_round": 7}},
    "run": {"rounds": 3, "evaluate_every": 3},
    "resources": {"chunk": 2},
}
CNN = {"name": "cnn", "channels": [2], "kernel": 3, "hidden": 8}
SECONDS = {"name": "log_normal", "median": 3.0, "sigma": 1.0, "unit": "seconds"}


def on(key: str, block: Any, **more: Any) -> Raw:
    """The base with a part at a key. A behaviour has a group of half of the clients."""
    if key == "clients":
        block = [{"name": "half", "share": 0.5, "behaviour": block}]
    elif key in LISTS:
        block = [block]
    return override(BASE, **{key.replace(".", "__"): block}, **more)


def model_of(raw: Raw) -> str:
    return made_once(json.dumps(raw))


@cache
def made_once(raw: str) -> str:
    digest: str = carried_out(json.loads(raw)).info["digest"]["model"]
    return digest


LISTS = ("local.gradients", "local.augment")
# By key, every part that it can name, each with keys that make it differ from the base and from all others. Some have
# settings with which nothing may change, and parts that others are at first have no other ones.
PARTS: dict[str, dict[str, Raw]] = {
    "local.optimizer": {"sgd": {"momentum": 0.9}, "adam": {}, "adamw": {}, "adagrad": {}, "rmsprop": {}},
    "local.gradients": {
        "clip_norm": {"max": 0.5},
        "clip_value": {"max": 0.01},
        "accumulate": {"micro_batch": 3},
        "noise": {"std": 0.01},
        "sam": {},
        "per_sample": {"clip": 0.5, "noise": 0.1},
    },
    "local.augment": {
        "crop": {"padding": 1},
        "flip": {},
        "color_jitter": {},
        "cutout": {},
        "rand_augment": {},
        "mixup": {},
        "function": {"function": "test_parts_on:negative"},
    },
    "local.lr": {
        "constant": {"value": 0.1, "warmup": 2},
        "step": {"start": 0.1, "milestones": [1]},
        "exponential": {"start": 0.1, "factor": 0.9},
        "polynomial": {"start": 0.1, "length": 9},
        "cosine": {"start": 0.1, "length": 9},
        "one_cycle": {"peak": 0.1, "length": 3},
    },
    "run.loss": {
        "cross_entropy": {"label_smoothing": 0.1},
        "focal": {},
        "mse": {},
        "function": {"function": "test_parts_on:doubled"},
    },
    "algorithm.server": {"sgd": {"momentum": 0.5}, "adagrad": {}, "adam": {}, "yogi": {}, "amsgrad": {}},
    "algorithm.aggregate": {
        "clip_norm": {"max": 0.1},
        "median": {},
        "trimmed_mean": {"trim": 0.2},
        "krum": {"byzantine": 1},
        "bulyan": {"byzantine": 1},
        "majority": {},
    },
    "world.dispatch.policy": {
        "by_samples": {},
        "weighted": {"weights": [float(n + 1) for n in range(8)]},
        "round_robin": {},
        "stratified": {"by": "label"},
        "power_of_choice": {"candidates": 7},
        "oort": {},
        "pisces": {"beta": 2.0},
    },
    "clients": {"sign_flip": {}, "noise": {}, "zero": {}, "flip_labels": {}, "random_labels": {}},
}
KINDS = {
    "local.optimizer": OPTIMIZERS,
    "local.gradients": GRADIENTS,
    "local.augment": AUGMENTATIONS,
    "local.lr": SCHEDULES,
    "run.loss": TRAINING_LOSSES,
    "algorithm.server": RULES,
    "algorithm.aggregate": AGGREGATES,
    "world.dispatch.policy": POLICIES,
    "clients": BEHAVIOURS,
}
# What the base has already, and losses of targets and of several labels.
PLAIN = {"mean", "uniform", "honest", "huber", "binary_cross_entropy"}
IDENTITIES: dict[str, list[Raw]] = {
    "local.optimizer": [{"name": "sgd"}],
    "local.gradients": [
        {"name": "clip_norm", "max": 1e9},
        {"name": "clip_value", "max": 1e9},
        {"name": "accumulate", "micro_batch": 8},
    ],
    "local.lr": [
        {"name": "constant", "value": 0.1},
        {"name": "step", "start": 0.1, "milestones": [9]},
        {"name": "exponential", "start": 0.1, "factor": 1.0},
        {"name": "polynomial", "start": 0.1, "end": 0.1, "length": 9},
        {"name": "cosine", "start": 0.1, "end": 0.1, "length": 9},
    ],
    "run.loss": [{"name": "cross_entropy", "label_smoothing": 0.0}],
    "algorithm.server": [{"name": "sgd", "lr": 1.0}],
    "algorithm.aggregate": [{"name": "mean"}],
    "world.dispatch.policy": [{"name": "uniform"}],
    "clients": [{"name": "honest"}],
}


def negative(x: Any) -> Any:
    return -x


def doubled(outputs: Any, labels: Any) -> Any:
    from torch.nn.functional import cross_entropy

    return 2 * cross_entropy(outputs, labels, reduction="none")


@pytest.mark.parametrize("key", PARTS)
def test_each_part_that_is_switched_on_changes_the_model_in_a_way_of_its_own(key: str) -> None:
    """So none is skipped on a faster path, or taken for another; and a new one must be listed here."""
    assert {name for part in KINDS[key] for name in names_of(part)} - PLAIN == set(PARTS[key])
    blocks = [{"name": name, **keys} for name, keys in PARTS[key].items()] + IDENTITIES.get(key, [])[:1]
    decay = {"local__weight_decay": 0.01} if key == "local.optimizer" else {}  # without which AdamW is Adam
    found = {repr(block): model_of(on(key, block, **decay)) for block in blocks}
    assert len(set(found.values())) == len(blocks), found


@pytest.mark.parametrize("key", IDENTITIES)
def test_a_part_with_settings_that_do_nothing_changes_no_bit(key: str) -> None:
    """The network has a convolution, because plain steps of linear layers are fused, and round otherwise."""
    base = model_of(override(BASE, model=CNN))
    found = {repr(block): model_of(on(key, block, model=CNN)) == base for block in IDENTITIES[key]}
    assert all(found.values()), found


# --- all parts at once ------------------------------------------------------------------------------------------------

NORMED = {"name": "module", "module": "own_modules:Net", "args": {"hidden": 4}}
GROUPS = [
    {"name": "contrary", "number": 1, "behaviour": {"name": "sign_flip"}},
    {"name": "noisy", "number": 1, "behaviour": {"name": "noise", "deviation": 0.01}, "local": {"lr": 0.02}},
    {"name": "wrong", "number": 1, "behaviour": "random_labels", "local": {"steps": 1, "gradients": []}},
]
GRADIENTS_ON = [{"name": "accumulate", "micro_batch": 3}, "sam", {"name": "clip_norm", "max": 1.0}]
GRADIENTS_ON += [{"name": "clip_value", "max": 0.5}, {"name": "noise", "std": 0.01}]
IMAGES_ON = [{"name": "crop", "padding": 1}, "flip", "color_jitter", "cutout", "rand_augment", "mixup"]
OWN: Raw = {"data__local_test": 0.2, "run__evaluate_clients": "all"}


def all_on(algorithm: Any, optimizer: str, lr: Raw, **more: Any) -> Raw:
    """An algorithm with all parts of local training, and groups of clients."""
    keys = {"name": optimizer, "keep": True, **({"momentum": 0.9} if optimizer == "sgd" else {})}
    local = {
        "optimizer": keys,
        "lr": lr,
        "weight_decay": 0.01,
        "groups": [{"parameters": ["*.bias"], "lr_factor": 2.0, "weight_decay": 0.0}],
        "gradients": GRADIENTS_ON,
        "augment": IMAGES_ON,
        "precision": "bfloat16",
        "batch_size": 8,
    }
    return override({**BASE, "local": local, "clients": GROUPS}, algorithm=algorithm, data__train_samples=100, **more)


ALL_ON: dict[str, Raw] = {
    "synchronous": all_on(
        {"name": "fedavg", "server": {"name": "yogi"}, "aggregate": "trimmed_mean"},
        "adamw",
        {"name": "exponential", "start": 0.01, "factor": 0.9, "warmup": 2},
        world__dispatch__policy={"name": "stratified", "by": "label"},
    ),
    "asynchronous": all_on(
        {"name": "fedbuff", "buffer": 3, "server": {"name": "amsgrad"}, "aggregate": {"name": "clip_norm", "max": 1.0}},
        "adam",
        {"name": "cosine", "start": 0.01, "length": 9, "over": "versions"},
        world={"dispatch": {"concurrency": 5, "policy": "pisces"}, "delay": SECONDS},
    ),
    "personalised, with norms of their own": all_on(
        {"name": "fedper", "server": {"name": "adagrad"}, "aggregate": "median"},
        "sgd",
        {"name": "step", "start": 0.05, "every": 2},
        model={**NORMED, "norm": "local", "personal": ["head"]},
        world__dispatch__policy="round_robin",
        **OWN,
    ),
    "hybrid": all_on(
        {"name": "feddle", "server_optimizer": "adamw", "server_epochs": 1},
        "adagrad",
        {"name": "polynomial", "start": 0.05, "length": 9},
        server_data={"name": "in_domain", "samples": 20},
        world__dispatch__policy="by_samples",
        model={**NORMED, "norm": "frozen"},
    ),
    "tiers": all_on(
        {"name": "fedat", "lam": {"name": "one_cycle", "peak": 0.4, "length": 9, "over": "time"}},
        "adamw",
        {"name": "constant", "value": 0.01, "over": "versions", "warmup": 2},
        world={"dispatch": {"per_tier": 2, "tiers": 2}, "delay": SECONDS},
        model=NORMED,
    ),
    "peers": all_on(
        {"name": "decfedprox", "alpha": {"name": "constant", "value": 0.1}},
        "rmsprop",
        {"name": "one_cycle", "peak": 0.01, "length": 5, "over": "steps"},
        topology="ring",
        world={},
    ),
}


@pytest.mark.parametrize("name", ALL_ON)
def test_all_parts_together_give_the_same_bits_pickled_and_when_they_go_on(name: str) -> None:
    """Pickled as between processes, and interrupted in the third round."""
    whole = carried_out(ALL_ON[name])
    again = carried_out(ALL_ON[name], PicklingPool(), stop_after=2)
    assert (whole.status, again.digest) == ("finished", whole.digest)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("name", ["synchronous", "asynchronous", "peers"])
def test_all_parts_together_give_the_same_bits_on_ray(name: str, tmp_path: Path) -> None:
    inline = carried_out(ALL_ON[name]).info["digest"]
    for actors in (1, 2):
        raw = override(ALL_ON[name], resources__client_actors=actors)
        assert raysim.run(raw, out=tmp_path).info["digest"] == inline
