"""Measures what small runs, augmentation, optimisers and dry runs cost, beside plain PyTorch, in turns.

    python benchmarks/costs.py --root ROOT [--only small augment adamw dry]

ROOT holds FashionMNIST/raw/*.gz, for `augment`. Printed are medians of CPU time of this process, and of the pairs'
ratios with their extremes.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

import raysim
from raysim.local.optimizers import AdamW
from raysim.parts.rng import Stream

ROUNDS, COHORT, RATE, BATCH = 10, 10, 0.05, 20
UPDATES = 300_000  # of a dry run

Pair = tuple[str, Callable[[int], object], str, Callable[[int], object]]  # what takes turns; both get the turn's number


RUNS = tempfile.TemporaryDirectory()  # to delete a run's folder is not part of what it costs


def run(scenario: dict[str, Any], **how: Any) -> None:
    raysim.run(scenario, out=tempfile.mkdtemp(dir=RUNS.name), progress=False, **how)


def small(root: str) -> Iterator[Pair]:
    """A run of ten rounds of ten clients on digits, as a sweep makes many of them, and a loop that does as much."""
    scenario = {
        "name": "small",
        "data": {"name": "digits", "clients": 30, "partition": "iid"},
        "model": {"name": "mlp", "hidden": [64]},
        "algorithm": "fedavg",
        "local": {"lr": RATE, "epochs": 1, "batch_size": BATCH},
        "world": {"dispatch": {"per_round": COHORT}},
        "run": {"rounds": ROUNDS, "evaluate_every": ROUNDS},
    }
    x, y = torch.rand(1797, 64), torch.randint(0, 10, (1797,))

    def plain(turn: int) -> None:
        generator = np.random.default_rng(turn)
        order = generator.permutation(len(x))
        test, parts = order[:360], np.array_split(order[360:], 30)
        network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        model = {name: value.clone() for name, value in network.state_dict().items()}
        for _ in range(ROUNDS):
            mean = {name: torch.zeros_like(value) for name, value in model.items()}
            for client in generator.choice(30, COHORT, replace=False):
                network.load_state_dict(model)
                optimizer, rows = torch.optim.SGD(network.parameters(), lr=RATE), generator.permutation(parts[client])
                for batch in np.split(rows, range(BATCH, len(rows), BATCH)):
                    optimizer.zero_grad()
                    nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
                    optimizer.step()
                for name, value in network.state_dict().items():
                    mean[name] += value / COHORT
            model = mean
        network.load_state_dict(model)
        with torch.no_grad():
            (network(x[test]).argmax(1) == y[test]).float().mean().item()

    yield "a small run", lambda turn: run({**scenario, "seed": turn}, inline=True), "plain loop", plain


def augment(root: str) -> Iterator[Pair]:
    """Ten clients of a small convolutional network, with and without crop and flip."""
    scenario = {
        "name": "augment",
        "data": {"name": "fashion_mnist", "root": root, "clients": 500, "partition": "iid"},
        "model": {"name": "cnn", "channels": [16, 32], "kernel": 3, "hidden": 64},
        "algorithm": "fedavg",
        "local": {"lr": RATE, "epochs": 5, "batch_size": BATCH},
        "world": {"dispatch": {"per_round": COHORT}},
        "run": {"rounds": 2, "evaluate_every": 2},
    }
    local = {**scenario["local"], "augment": [{"name": "crop", "padding": 4}, "flip"]}
    augmented = {**scenario, "local": local}
    yield "crop and flip", lambda _: run(augmented, inline=True), "without", lambda _: run(scenario, inline=True)


def adamw(root: str) -> Iterator[Pair]:
    """Clipping and AdamW on 11 million parameters, on a flat vector and by PyTorch."""
    shapes = [(3300, 3300), (110_000,)]
    parameters = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    for one in parameters:
        one.grad = torch.randn_like(one) * 1e-3
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, fused=True)
    w = torch.cat([one.detach().flatten() for one in parameters])
    vector, ours = torch.empty_like(w), AdamW()
    views = [piece.view(shape) for piece, shape in zip(vector.split([3300**2, 110_000]), shapes, strict=True)]
    gradients, state = [one.grad for one in parameters], ours.init(w)

    def flat(turn: int) -> None:
        torch._foreach_copy_(views, gradients)
        vector.mul_((1.0 / (vector.norm() + 1e-6)).clamp_max(1.0))
        ours.move(w, vector, state, 1e-3, turn, 0.01)

    def plain(turn: int) -> None:
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    yield "a step of clipping and AdamW", flat, "PyTorch, fused", plain


def dry(root: str) -> Iterator[Pair]:
    """A dry run of FedBuff with 1,000 clients at work, and drawing as many delays by key alone."""
    scenario = {
        "name": "dry",
        "data": {"name": "linear_regression", "clients": 131_072, "samples": 131_072, "features": 8},
        "model": {"name": "linear"},
        "algorithm": {"name": "fedbuff", "buffer": 100},
        "local": {"lr": 0.001},
        "world": {
            "dispatch": {"concurrency": 1000},
            "delay": {"name": "log_normal", "median": 60, "sigma": 1.0, "unit": "seconds"},
        },
        "run": {"rounds": UPDATES // 100, "evaluate_every": UPDATES // 100},
    }

    def draws(turn: int) -> None:
        stream = Stream(turn, "delay")
        for number in range(UPDATES):
            stream(number, 0).standard_normal()

    yield f"a dry run of {UPDATES:,} updates", lambda _: run(scenario, dry=True), "draws of delays alone", draws


JOBS = {job.__name__: job for job in (small, augment, adamw, dry)}


def seconds(call: Callable[[int], object], turn: int) -> float:
    began = time.process_time()
    call(turn)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--only", nargs="+", choices=JOBS, default=[*JOBS])
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.only:
        for label, ours, other_label, other in JOBS[name](given.root):
            ours(0), other(0)  # what is done once
            pairs = [(seconds(ours, turn), seconds(other, turn)) for turn in range(1, given.repeat + 1)]
            ratios = sorted(one / beside for one, beside in pairs)
            one, beside = (statistics.median(times) for times in zip(*pairs, strict=True))
            print(f"{label}: {one:.4f} s, {other_label}: {beside:.4f} s, ", end="")
            print(f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


main()
