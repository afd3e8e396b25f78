"""The jobs as a plain PyTorch loop, which takes the least time that a simulator can hope for.

Every process runs the same loop on its part of the cohort. The global model and a sum for each process are in shared
memory.
"""

import time
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

import numpy as np
import torch
import torch.multiprocessing as mp
from jobs import EVALUATION_BATCH, SEED, Job, load, network, normalize, parser, report, selected, split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

State = dict[str, Tensor]


class Shared(NamedTuple):
    """What is in shared memory. Each process writes its own row of `sums` and `correct`; the first writes `weights`."""

    images: Tensor  # (clients, samples, 1, 28, 28)
    labels: Tensor  # (clients, samples)
    test_images: Tensor  # (n, 1, 28, 28)
    test_labels: Tensor  # (n,)
    weights: State  # the global model
    sums: list[State]  # of the models trained in a round, by process
    correct: Tensor  # (processes,) test images classified correctly


def share(job: Job, processes: int, data: tuple[np.ndarray, ...]) -> Shared:
    """Puts data and model into shared memory. data: images and labels for training, then for testing, as stored."""
    train_images, train_labels, test_images, test_labels = data
    indices = split(job)
    weights = network(job).state_dict()
    shared = Shared(
        torch.from_numpy(normalize(train_images)[indices]),
        torch.from_numpy(train_labels.astype(np.int64)[indices]),
        torch.from_numpy(normalize(test_images)),
        torch.from_numpy(test_labels.astype(np.int64)),
        weights,
        [{name: torch.zeros_like(value) for name, value in weights.items()} for _ in range(processes)],
        torch.zeros(processes, dtype=torch.int64),
    )
    for tensor in (
        *shared[:4],
        shared.correct,
        *(value for state in (weights, *shared.sums) for value in state.values()),
    ):
        tensor.share_memory_()
    return shared


def train(
    model: nn.Module,
    optimizer: torch.optim.SGD,
    job: Job,
    images: Tensor,
    labels: Tensor,
    generator: np.random.Generator,
) -> None:
    for _ in range(job.epochs):
        for batch in torch.from_numpy(generator.permutation(len(labels))).split(job.batch_size):
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()


@torch.inference_mode()
def count_correct(model: nn.Module, images: Tensor, labels: Tensor) -> int:
    batches = zip(images.split(EVALUATION_BATCH), labels.split(EVALUATION_BATCH), strict=True)
    return sum(int((model(x).argmax(1) == y).sum()) for x, y in batches)


def train_part(
    rank: int,
    processes: int,
    round_: int,
    job: Job,
    model: nn.Module,
    optimizer: torch.optim.SGD,
    shared: Shared,
) -> None:
    """Trains every `processes`-th client of the round's cohort and leaves the sum of the models in `sums[rank]`."""
    cohort = np.random.default_rng((SEED, round_)).choice(job.clients, job.cohort, replace=False)
    total = shared.sums[rank]
    for value in total.values():
        value.zero_()
    for client in cohort[rank::processes].tolist():
        model.load_state_dict(shared.weights)
        generator = np.random.default_rng((SEED, round_, client))
        train(model, optimizer, job, shared.images[client], shared.labels[client], generator)
        for name, value in model.state_dict().items():
            total[name] += value


def average(job: Job, shared: Shared) -> None:
    """Sets the global model to the mean of the trained models."""
    for name, value in shared.weights.items():  # all clients hold equally many samples, so all weigh the same
        value.copy_(torch.stack([total[name] for total in shared.sums]).sum(0) / job.cohort)


def loop(rank: int, processes: int, threads: int, job: Job, shared: Shared, barrier: Barrier) -> None:
    torch.set_num_threads(threads)
    model = network(job)
    optimizer = torch.optim.SGD(model.parameters(), lr=job.lr)  # it has no state, so clients can share it
    test_images = shared.test_images.tensor_split(processes)[rank]
    test_labels = shared.test_labels.tensor_split(processes)[rank]
    laps = []
    barrier.wait()
    for round_ in range(job.rounds):
        start = time.perf_counter()
        train_part(rank, processes, round_, job, model, optimizer, shared)
        barrier.wait()
        if rank == 0:
            average(job, shared)
        barrier.wait()
        if (round_ + 1) % job.evaluate_every == 0:
            model.load_state_dict(shared.weights)
            shared.correct[rank] = count_correct(model, test_images, test_labels)
            barrier.wait()
        laps.append(time.perf_counter() - start)
    if rank == 0:
        report("raw", job, processes, laps, int(shared.correct.sum()) / len(shared.test_labels))


def main() -> None:
    arguments = parser("Runs a job as a plain PyTorch loop and prints its times as one line of JSON.")
    arguments.add_argument("--processes", type=int, default=1)
    arguments.add_argument("--threads", type=int, default=1, help="threads of each process")
    options = arguments.parse_args()
    if min(options.processes, options.threads) < 1:
        arguments.error(f"must be at least 1: --processes {options.processes} --threads {options.threads}")
    job = selected(options)
    shared = share(job, options.processes, load(options.root))
    barrier = mp.get_context("spawn").Barrier(options.processes)
    mp.spawn(loop, (options.processes, options.threads, job, shared, barrier), nprocs=options.processes)


if __name__ == "__main__":
    main()
