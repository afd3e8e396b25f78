"""The jobs that every engine runs: synchronous FedAvg on Fashion-MNIST, split equally and at random.

FedAvg: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017. The
convolutional network is that paper's, without padding. Data: Xiao et al., Fashion-MNIST, arXiv:1708.07747.
"""

import argparse
import dataclasses
import gzip
import json
import statistics
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import nn

SEED = 0
EVALUATION_BATCH = 500  # test images in one forward pass, for every engine


@dataclasses.dataclass(frozen=True)
class Job:
    """One simulation. Evaluation is on all test images, after every `evaluate_every` rounds."""

    name: str
    clients: int
    samples: int  # number of samples of each client
    cohort: int  # clients in a round
    rounds: int
    epochs: int  # of local training
    batch_size: int
    lr: float
    evaluate_every: int = 10

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.rounds % self.evaluate_every:
            raise ValueError(f"rounds must be a positive multiple of {self.evaluate_every}, got {self.rounds!r}")


JOBS = {
    "cnn": Job("cnn", clients=500, samples=120, cohort=10, rounds=30, epochs=2, batch_size=20, lr=0.05),
    "mlp": Job("mlp", clients=1000, samples=60, cohort=50, rounds=60, epochs=1, batch_size=20, lr=0.1),
}


class FashionMnist(NamedTuple):
    """Images as they are stored: uint8, (60000, 28, 28) and (10000, 28, 28), with labels in 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load(root: Path) -> FashionMnist:
    """Reads the four .gz files of Fashion-MNIST, as published, in `root`."""
    return FashionMnist(
        read_idx(root / "train-images-idx3-ubyte.gz"),
        read_idx(root / "train-labels-idx1-ubyte.gz"),
        read_idx(root / "t10k-images-idx3-ubyte.gz"),
        read_idx(root / "t10k-labels-idx1-ubyte.gz"),
    )


def read_idx(path: Path) -> np.ndarray:
    """Returns a gzipped IDX file of bytes as an array of uint8. Raises ValueError if it is something else."""
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\x00\x00\x08":  # two zeros, then 8 for unsigned bytes
        raise ValueError(f"{path}: must be an IDX file of unsigned bytes, but it starts with {content[:3]!r}")
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape.tolist())


def normalize(images: np.ndarray) -> np.ndarray:
    """Returns images (n, 28, 28) uint8 as (n, 1, 28, 28) float32, scaled to mean 0 and deviation 1 in training."""
    return ((images[:, None].astype(np.float32) / 255 - 0.2860) / 0.3530).astype(np.float32)


def split(job: Job) -> np.ndarray:
    """Returns which training images each client holds: indices (clients, samples), none of them twice."""
    return np.random.default_rng(SEED).permutation(job.clients * job.samples).reshape(job.clients, job.samples)


def network(job: Job) -> "nn.Module":
    """Returns the job's network, from (n, 1, 28, 28) to (n, 10) logits, with PyTorch's initial values for `SEED`."""
    import torch
    from torch import nn

    torch.manual_seed(SEED)
    if job.name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10))
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10)),
    )


def parser(description: str) -> argparse.ArgumentParser:
    """Returns the command line that all engines share; `selected` turns what it parses into a job."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("job", choices=JOBS)
    arguments.add_argument("--root", type=Path, required=True, help="folder of Fashion-MNIST's four .gz files")
    arguments.add_argument("--rounds", type=int, help="a multiple of 10; default: the job's own")
    return arguments


def selected(arguments: argparse.Namespace) -> Job:
    """Returns the job that the command line names."""
    job = JOBS[arguments.job]
    return job if arguments.rounds is None else dataclasses.replace(job, rounds=arguments.rounds)


def report(
    engine: str,
    job: Job,
    processes: int,
    laps: list[float],
    accuracy: float,
    packages: Sequence[str] = (),
    updates: int | None = None,
) -> None:
    """Prints what an engine measured as one line of JSON.

    laps: seconds of each round, with evaluation. The first round warms up, so it counts in `loop_seconds` only.
    packages: whose versions it names, beside PyTorch. updates: of clients, used; by default a cohort each round.
    """
    updates = job.cohort * len(laps) if updates is None else updates
    line = {
        "engine": engine,
        "job": job.name,
        "processes": processes,
        "rounds": len(laps),
        "seconds_per_round": {
            "median": round(statistics.median(laps[1:]), 4),
            "mean": round(statistics.mean(laps[1:]), 4),
        },
        "loop_seconds": round(sum(laps), 3),
        "updates_per_second": round(updates / sum(laps), 2),
        "accuracy": round(accuracy, 4),
        "versions": {name: version(name) for name in (*packages, "torch")},
    }
    print(json.dumps(line), flush=True)
