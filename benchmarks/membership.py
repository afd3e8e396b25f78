"""Measures what an attacker learns of who was in the training data, with and without noise on clients' gradients.

The attacker sees the final model, and takes samples for members whose loss is below a threshold (Yeom, Giacomelli,
Fredrikson, Jha, Privacy risk in machine learning, CSF 2018). Members are the samples that clients train on; the others
are held out by the same clients. Guessing gives an area under the curve of 0.5, and an advantage of 0.

python benchmarks/membership.py [seeds]
"""

import sys
import tempfile
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import raysim
from raysim.data import federate
from raysim.workers.workbench import Workbench

NOISE = (None, 0.0, 0.5, 1.0, 2.0)


def scenario(noise: float | None, seed: int) -> raysim.Scenario:
    """Ten clients that learn a few digits by heart. noise: the multiplier of DP-SGD; None: plain SGD."""
    local: dict[str, Any] = {"lr": 0.3, "batch_size": 8, "epochs": 2}
    if noise is not None:
        local |= {"batches": "poisson", "gradients": [{"name": "per_sample", "clip": 1.0, "noise": noise}]}
    return raysim.parse_scenario(
        {
            "name": "membership",
            "seed": seed,
            "data": {"name": "digits", "clients": 10, "partition": "iid", "local_test": 0.8, "label_noise": 0.3},
            "model": {"name": "mlp", "hidden": [128]},
            "algorithm": {"name": "fedavg", "weights": "uniform"},
            "local": local,
            "world": {"dispatch": {"per_round": 10}},
            "run": {"rounds": 60, "evaluate_every": 60},
        }
    )


def attacked(of: raysim.Scenario, folder: str) -> tuple[float, float, float]:
    """Returns the accuracy on samples that were held out, the attack's area under the curve, and its advantage."""
    result = raysim.run(of, out=folder, inline=True, progress=False)
    bench = Workbench(of, federate(of.data, of.server_data, of.seed, of.public), torch.device("cpu"))
    module, losses, hits = result.module().eval(), [], 0.0
    for holdings in (bench.federation.held, bench.federation.held_out):
        rows = np.concatenate([holdings[client] for client in range(10)])
        x, y = bench.loader(bench.federation.train, rows)
        with torch.no_grad():
            outputs = module(x)
        losses.append(cross_entropy(outputs, y, reduction="none").numpy())
        hits = float((outputs.argmax(1) == y).float().mean())
    members, others = losses
    thresholds = np.sort(np.concatenate(losses))
    true, false = (np.searchsorted(np.sort(one), thresholds, "right") / len(one) for one in (members, others))
    below = [np.searchsorted(np.sort(others), members, side).mean() / len(others) for side in ("left", "right")]
    area = 1 - float(sum(below)) / 2  # the probability that a member's loss is lower; of equal ones, half
    return hits, area, float((true - false).max())


def main(seeds: int) -> None:
    print(f"mean over {seeds} seeds\nnoise      accuracy   area   advantage")
    with tempfile.TemporaryDirectory() as folder:
        for noise in NOISE:
            found = np.array([attacked(scenario(noise, seed), folder) for seed in range(seeds)]).mean(0)
            name = "plain SGD" if noise is None else f"{noise:g}"
            print(f"{name:10} {found[0]:8.3f} {found[1]:6.3f} {found[2]:11.3f}", flush=True)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
