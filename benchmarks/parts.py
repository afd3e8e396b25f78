"""Measures how many updates a second FedAvg makes with and without each part of a training recipe, in process.

    python benchmarks/parts.py
    python benchmarks/parts.py --model mlp --repetitions 7
    python benchmarks/parts.py --job ROOT --only uplink

`--job` takes the job `mlp` of pair.py instead, whose data are in ROOT/FashionMNIST/raw.

Runs with and without a part take turns, because the speed of a machine changes with time; printed is a Markdown table
with the median rate without and with it, and the median of the ratios within a repetition with their extremes. What is
counted is the CPU time of this process from the first round to the last evaluation, which other processes change least.
"""

import argparse
import logging
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import raysim
from raysim.scenario.load import assign

MODELS: dict[str, dict[str, Any]] = {
    "cnn": {"name": "cnn", "channels": [16, 32], "kernel": 3, "padding": "same", "hidden": 64},
    "mlp": {"name": "mlp", "hidden": [200]},
}
PARTS: dict[str, dict[str, Any]] = {
    "SGD with momentum": {"local.optimizer": {"name": "sgd", "momentum": 0.9}},
    "Adam": {"local.optimizer": "adam"},
    "AdamW, decay 0.01": {"local.optimizer": "adamw", "local.weight_decay": 0.01},
    "AdamW, decay 0.01, kept": {"local.optimizer": {"name": "adamw", "keep": True}, "local.weight_decay": 0.01},
    "Adagrad": {"local.optimizer": "adagrad"},
    "RMSprop": {"local.optimizer": "rmsprop"},
    "another rate for biases": {"local.groups": [{"parameters": ["*.bias"], "lr_factor": 2.0}]},
    "cosine rate": {"local.lr": {"name": "cosine", "start": 0.05, "length": 20}},
    "clipping by norm": {"local.gradients": [{"name": "clip_norm", "max": 1.0}]},
    "clipping by value": {"local.gradients": [{"name": "clip_value", "max": 0.1}]},
    "accumulation, two pieces": {"local.gradients": [{"name": "accumulate", "micro_batch": 10}]},
    "noise": {"local.gradients": [{"name": "noise", "std": 0.001}]},
    "sharpness-aware steps": {"local.gradients": ["sam"]},
    "crop": {"local.augment": [{"name": "crop", "padding": 1}]},
    "flip": {"local.augment": ["flip"]},
    "mixup": {"local.augment": ["mixup"]},
    "RandAugment": {"local.augment": ["rand_augment"]},
    "label smoothing": {"run.loss": {"name": "cross_entropy", "label_smoothing": 0.1}},
    "focal loss": {"run.loss": "focal"},
    "uplink: top 1 %": {"uplink": [{"name": "top_k", "share": 0.01}]},
    "uplink: top 1 %, ef14": {"uplink": [{"name": "top_k", "share": 0.01, "memory": "ef14"}]},
    "uplink: 8 bits": {"uplink": [{"name": "quantise", "bits": 8}]},
    "bfloat16": {"local.precision": "bfloat16"},
    "server Adam": {"algorithm.server": "adam"},
    "median": {"algorithm.aggregate": "median"},
    "multi-Krum": {"algorithm.aggregate": {"name": "krum", "byzantine": 2, "keep": 5}},
    "picked in turn": {"world.dispatch.policy": "round_robin"},
    "power of choice": {"world.dispatch.policy": {"name": "power_of_choice", "candidates": 20}},
    "a group of clients": {"clients": [{"name": "a", "share": 0.5, "behaviour": "sign_flip", "local": {"lr": 0.01}}]},
}


def updates_per_second(model: str, rounds: int, changes: dict[str, Any], root: str | None = None) -> float:
    """Runs a scenario with other values for some keys. root: the job `mlp` of pair.py, with the data there."""
    raw: dict[str, Any] = {
        "name": "parts",
        "data": {"name": "digits", "clients": 30, "partition": "iid"},
        "model": MODELS[model],
        "algorithm": {"name": "fedavg"},
        "local": {"lr": 0.05, "epochs": 2, "batch_size": 20},
        "world": {"dispatch": {"per_round": 10}},
        "run": {"rounds": rounds, "evaluate_every": rounds},
    }
    if root is not None:
        raw = YAML(typ="safe").load(Path(__file__).with_name("mlp.yaml").read_text())
        raw["data"]["root"], raw["run"] = root, {"rounds": rounds, "evaluate_every": rounds}
    for key, value in changes.items():
        if problem := assign(raw, key, value, "parts.py"):
            raise ValueError(problem)
    marks: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        observe = [lambda _: marks.append(time.process_time())]
        raysim.run(raw, out=folder, inline=True, observers=observe)
    return float(raw["world"]["dispatch"]["per_round"] * rounds / (marks[-1] - marks[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="cnn")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--job", metavar="ROOT", help="folder that holds FashionMNIST/raw/*.gz")
    parser.add_argument("--only", default="", help="only parts whose names begin with this")
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # of rounds, a line each
    updates_per_second(given.model, 2, {"local.augment": ["flip"]})  # imports what is imported once
    print(
        "| part | without, updates a second | with | time for an update, without = 1 |\n|---|--:|--:|--:|", flush=True
    )
    for name, changes in ((name, changes) for name, changes in PARTS.items() if name.startswith(given.only)):
        pairs = [
            [updates_per_second(given.model, given.rounds, some, given.job) for some in ({}, changes)]
            for _ in range(given.repetitions)
        ]
        without, having = (statistics.median(rates) for rates in zip(*pairs, strict=True))
        ratios = sorted(one / other for one, other in pairs)
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"| {name} | {without:.0f} | {having:.0f} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
