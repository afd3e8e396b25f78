"""Measures what an attacker learns of who was in the training data, with and without noise on clients' gradients.

The attacker sees the final model, and takes samples for members whose loss is below a threshold (Yeom, Giacomelli,
Fredrikson, Jha, Privacy risk in machine learning, CSF 2018). Members are the samples of ten clients that are picked in
each round, the others those of thirty clients that never are. A third of all labels is wrong, so that a model can learn
members by heart. Guessing gives an area under the curve of 0.5, and an advantage of 0.

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

NOISE = (None, 0.0, 0.25, 0.5, 1.0, 2.0)
MEMBERS, ROUNDS = 10, 40


def scenario(noise: float | None, seed: int) -> raysim.Scenario:
    """Ten of forty clients learn. noise: the multiplier of DP-SGD; None: plain SGD."""
    local: dict[str, Any] = {"lr": 0.3, "batch_size": 12, "epochs": 2}
    if noise is not None:
        local |= {"batches": "poisson", "gradients": [{"name": "per_sample", "clip": 4.0, "noise": noise}]}
    return raysim.parse_scenario(
        {
            "name": "membership",
            "seed": seed,
            "data": {"name": "digits", "clients": 40, "partition": "iid", "label_noise": 0.33},
            "model": {"name": "mlp", "hidden": [128]},
            "algorithm": {"name": "fedavg", "weights": "uniform"},
            "local": local,
            "world": {"dispatch": {"picks": [list(range(MEMBERS))] * ROUNDS}},
            "run": {"rounds": ROUNDS, "evaluate_every": ROUNDS},
        }
    )


def attacked(of: raysim.Scenario, folder: str) -> tuple[float, float, float]:
    """Returns the accuracy on the test set, the attack's area under the curve, and its advantage."""
    result = raysim.run(of, out=folder, inline=True, progress=False)
    evaluations = result.pandas("evaluations")
    accuracy = float(evaluations[evaluations.metric == "accuracy"].value.iloc[-1])
    bench = Workbench(of, federate(of.data, of.server_data, of.seed, of.public), torch.device("cpu"))
    module, losses = result.module().eval(), []
    for clients in (range(MEMBERS), range(MEMBERS, bench.federation.clients)):
        x, y = bench.loader(bench.federation.train, np.concatenate([bench.federation.held[one] for one in clients]))
        with torch.no_grad():
            losses.append(np.sort(cross_entropy(module(x), y, reduction="none").numpy()))
    members, others = losses
    true, false = (np.searchsorted(one, np.concatenate(losses), "right") / len(one) for one in losses)
    below = [np.searchsorted(others, members, side).mean() / len(others) for side in ("left", "right")]
    area = 1 - float(sum(below)) / 2  # the probability that a member's loss is lower; of equal ones, half
    return accuracy, area, float((true - false).max())


def main(seeds: int) -> None:
    print(f"mean over {seeds} seeds\nnoise      accuracy   area   advantage")
    with tempfile.TemporaryDirectory() as folder:
        for noise in NOISE:
            found = np.array([attacked(scenario(noise, seed), folder) for seed in range(seeds)]).mean(0)
            name = "plain SGD" if noise is None else f"{noise:g}"
            print(f"{name:10} {found[0]:8.3f} {found[1]:6.3f} {found[2]:11.3f}", flush=True)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
