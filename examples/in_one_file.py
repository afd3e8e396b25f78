"""raysim in one file: keyed draws, a virtual clock, local SGD, FedAvg and FedBuff.

    python examples/in_one_file.py fedbuff --rounds 100

It runs scenarios/quickstart.yaml without importing raysim: 500 clients hold a few handwritten digits each, most of
them are slow, and the server steps whenever ten updates have arrived. The clients picked, the times of arrival, the
staleness and the weights are exactly those of raysim, and the final model agrees to 1e-5. raysim adds everything else:
workers that run in parallel, other worlds and algorithms, tables, checkpoints.

Read it from top to bottom: draws, data, model, clock, algorithms, run.
"""

import argparse
import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

SEED = 0
CLIENTS, ALPHA = 500, 1.0  # alpha: how evenly labels are spread over the clients; smaller is less even
HIDDEN, LR, EPOCHS, BATCH = 64, 0.1, 5, 32
PER_ROUND, SIGMA = 10, 5.0  # clients picked in each round; spread of the delays, in rounds

# --- draws ------------------------------------------------------------------------------------------------------------
# Every random number has a key: the seed, a purpose, and ids such as the client and the number of its dispatch. Nothing
# is drawn from a shared generator, so no draw depends on what was drawn before, or on which worker draws first.


def generator(seed: int, purpose: str, *ids: int) -> np.random.Generator:
    """Returns the generator of a key, in its own state. ids: at most three.

    Philox computes its numbers from a key and a counter. The seed and the purpose are the key; the ids are the upper
    words of the counter, whose lowest word counts the numbers drawn.
    """
    digest = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
    counter = [0, *ids, *[0] * (3 - len(ids))]
    bits = np.random.Philox(key=0)
    bits.state = {**bits.state, "state": {"counter": counter, "key": [seed, digest ^ len(ids)]}}
    return np.random.Generator(bits)


# --- data -------------------------------------------------------------------------------------------------------------


@dataclass
class Data:
    """The digits, scaled, and who holds which of them."""

    x: Tensor  # (n, 64) training inputs
    y: Tensor  # (n,) labels
    test_x: Tensor
    test_y: Tensor
    rows: list[np.ndarray]  # the training rows of each client, ascending

    @property
    def samples(self) -> list[int]:
        """The number of samples of each client."""
        return [len(rows) for rows in self.rows]


def load() -> Data:
    """Loads the digits of scikit-learn, keeps a fifth for testing, and divides the others among the clients."""
    digits = load_digits()
    x = np.round(digits.data * (255 / 16)).astype(np.uint8)  # raysim stores images as bytes
    order = generator(0, "digits").permutation(len(x))  # the same test images under every seed
    test, train = np.sort(order[: len(x) // 5]), np.sort(order[len(x) // 5 :])
    mean, std = x[train].mean() / 255, x[train].std() / 255
    scaled = (torch.from_numpy(x).float() / 255 - mean) / std
    y = torch.from_numpy(digits.target)
    return Data(scaled[train], y[train], scaled[test], y[test], divide(digits.target[train]))


def divide(labels: np.ndarray) -> list[np.ndarray]:
    """Draws a mix of labels for each client from Dir(alpha times label frequencies), and deals samples accordingly.

    Returns the rows of each client, in equal numbers, none of them twice. Hsu, Qi and Brown (2019).
    """
    draw = generator(SEED, "partition")
    left = np.bincount(labels)
    mixes = draw.dirichlet(ALPHA * left / left.sum(), size=CLIENTS)
    sizes = len(labels) // CLIENTS + (np.arange(CLIENTS) < len(labels) % CLIENTS)
    counts = np.zeros((len(left), CLIENTS), dtype=int)  # how many samples of each label each client gets
    for client in range(CLIENTS):
        drawn = counts[:, client]
        while drawn.sum() < sizes[client]:  # again where a label has run out
            weights = np.where(left > drawn, mixes[client], 0.0)
            weights = weights if weights.any() else left - drawn
            drawn += np.minimum(draw.multinomial(sizes[client] - drawn.sum(), weights / weights.sum()), left - drawn)
        left = left - drawn
    dealt: list[list[np.ndarray]] = [[] for _ in range(CLIENTS)]
    for label, of_client in enumerate(counts):
        shuffled = draw.permutation(np.flatnonzero(labels == label))
        for client, piece in enumerate(np.split(shuffled, np.cumsum(of_client)[:-1])):
            dealt[client].append(piece[: of_client[client]])  # the last piece has the samples that are left
    return [np.sort(np.concatenate(pieces)) for pieces in dealt]


# --- model ------------------------------------------------------------------------------------------------------------
# A model is one flat vector of all parameters. Algorithms add, scale and subtract vectors, and never see layers.


def build() -> nn.Sequential:
    """Builds a perceptron whose first values depend on the seed alone."""
    torch.manual_seed(int(generator(SEED, "model").integers(2**63)))
    return nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))


def train(net: nn.Module, w: Tensor, x: Tensor, y: Tensor, order: np.random.Generator) -> Tensor:
    """Returns the vector after EPOCHS of mini-batch SGD from w. order: shuffles the samples of each epoch."""
    nn.utils.vector_to_parameters(w.clone(), net.parameters())
    order.integers(2**63)  # raysim draws the seed of dropout here
    for _ in range(EPOCHS):
        shuffled = order.permutation(len(x)) if len(x) > BATCH else np.arange(len(x))
        for batch in np.split(shuffled, range(BATCH, len(x), BATCH)):
            loss = F.cross_entropy(net(x[batch]), y[batch])
            gradients = torch.autograd.grad(loss, list(net.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(net.parameters(), gradients, strict=True):
                    parameter -= LR * gradient
    return nn.utils.parameters_to_vector(net.parameters()).detach()


@torch.no_grad()
def accuracy(net: nn.Module, w: Tensor, data: Data) -> float:
    """Returns the share of test images that the model w labels right."""
    nn.utils.vector_to_parameters(w, net.parameters())
    return (net(data.test_x).argmax(1) == data.test_y).float().mean().item()


# --- algorithms -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FedBuff:
    """Steps as soon as `buffer` updates have arrived; stale ones weigh less. Nguyen et al. (2022), Algorithm 1."""

    buffer: int = 10

    def weigh(self, updates: list["Update"], samples: list[int]) -> list[float]:
        """Returns (1 + staleness)^-0.5 / buffer for each update; their sum is below 1 if updates are stale."""
        return [(1 + update.staleness) ** -0.5 / self.buffer for update in updates]


@dataclass(frozen=True)
class FedAvg:
    """Steps at the end of each round with what it dispatched; late updates are discarded. McMahan et al. (2017)."""

    buffer: None = None

    def weigh(self, updates: list["Update"], samples: list[int]) -> list[float]:
        """Returns each client's share of the samples of all clients in the step."""
        total = sum(samples[update.client] for update in updates)
        return [samples[update.client] / total for update in updates]


# --- clock ------------------------------------------------------------------------------------------------------------
# Time comes from drawn delays, never from a stopwatch. So the whole timeline is known before anything is trained: who
# is picked, from which version of the model a client starts, when it arrives, and which step uses it.


@dataclass
class Update:
    """A client's update: when it was dispatched, and when it arrives."""

    serial: int  # its place among all dispatches
    client: int
    number: int  # how often the client was dispatched before
    version: int  # of the model that the client received: how many steps the server had taken
    dispatched: int  # round
    arrives: int  # round
    staleness: int = 0  # server steps from dispatch to arrival


CLOSE, OPEN, ARRIVE = range(3)  # what happens first at equal times


def timeline(algorithm: FedBuff | FedAvg, rounds: int) -> Iterator[tuple[int, list[Update]]]:
    """Yields the server's steps, in order: the round, and the updates that the step uses, in order of dispatch."""
    events: list[tuple[int, int, int, Update | None]] = []  # a heap of (time, kind, serial, update)
    idle, numbers = set(range(CLIENTS)), [0] * CLIENTS
    waiting: list[Update] = []  # arrived, and not used yet
    serial = version = 0
    heapq.heappush(events, (0, OPEN, 0, None))
    while events:
        now, kind, _, update = heapq.heappop(events)
        if kind == OPEN:
            picked = generator(SEED, "pick", serial).choice(len(idle), size=min(PER_ROUND, len(idle)), replace=False)
            for client in np.array(sorted(idle))[picked].tolist():
                normal = generator(SEED, "delay", client, numbers[client]).standard_normal()
                late = int(abs(normal) * SIGMA)  # in whole rounds
                sent = Update(serial, client, numbers[client], version, now, now + late)
                heapq.heappush(events, (sent.arrives, ARRIVE, serial, sent))
                idle.remove(client)
                numbers[client] += 1
                serial += 1
            heapq.heappush(events, (now + 1, CLOSE, 0, None))
        elif kind == ARRIVE and update is not None:
            idle.add(update.client)
            update.staleness = version - update.version
            if algorithm.buffer is None and now > update.dispatched:
                continue  # FedAvg discards it, so it is never trained
            waiting.append(update)
        elif kind == CLOSE and now < rounds:
            heapq.heappush(events, (now, OPEN, 0, None))
        if waiting and (kind == CLOSE if algorithm.buffer is None else len(waiting) == algorithm.buffer):
            yield now, sorted(waiting, key=lambda one: one.serial)
            version += 1
            waiting = []
        if kind == CLOSE and now == rounds:
            return


# --- run --------------------------------------------------------------------------------------------------------------


def run(algorithm: FedBuff | FedAvg, rounds: int) -> tuple[Tensor, list[tuple[Update, float]]]:
    """Runs the algorithm. Returns the final vector, and each update that was used with its weight, in order."""
    torch.set_num_threads(1)
    data, net = load(), build()
    w = nn.utils.parameters_to_vector(net.parameters()).detach()
    versions = [w]  # a client starts from the version that was the newest when it was dispatched
    used: list[tuple[Update, float]] = []
    for now, updates in timeline(algorithm, rounds):
        weights = algorithm.weigh(updates, data.samples)
        step = torch.zeros_like(w)
        for update, weight in zip(updates, weights, strict=True):
            rows, received = data.rows[update.client], versions[update.version]
            order = generator(SEED, "train 0", update.client, update.number)
            step += weight * (train(net, received, data.x[rows], data.y[rows], order) - received)
        versions.append(versions[-1] + step)
        used += zip(updates, weights, strict=True)
        if len(versions) % 20 == 1:
            print(f"round {now:3}, version {len(versions) - 1:3}: accuracy {accuracy(net, versions[-1], data):.4f}")
    return versions[-1], used


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithm", choices=["fedavg", "fedbuff"], nargs="?", default="fedbuff")
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    run({"fedavg": FedAvg(), "fedbuff": FedBuff()}[arguments.algorithm], arguments.rounds)
