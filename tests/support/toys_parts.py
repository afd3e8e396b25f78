"""Parts of the tests' own, one of each kind, as users write them in files of theirs."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import PrivateAttr

from raysim.algorithms import Arrival, Central, Inbox, Peer, Population, Record, Round, StalenessFunction
from raysim.algorithms.aggregates import Aggregate
from raysim.algorithms.rules import ServerRule
from raysim.clients import Behaviour
from raysim.data import Dataset, FeatureSkew, Partitioner, ServerData, Sizes, Source, Split, Tokenizer, Tokens
from raysim.data.federation.server import NO_ROWS, Rows, ServerSamples
from raysim.engine.progress import Progress
from raysim.local import Augmentation, Gradient, Optimizer, TrainingLoss
from raysim.metrics import Metric
from raysim.models import ModelPart, Solver
from raysim.observers import Observer, RunBegin, RunEnd, Tracker
from raysim.observers.tracker import RoundPoint
from raysim.parts.part import Fraction, Positive
from raysim.parts.rng import Stream, generator
from raysim.privacy import Release
from raysim.schedules import Schedule
from raysim.uplink import Decoded, Uplink
from raysim.world import (
    Availability,
    Candidates,
    Cost,
    Delay,
    Distribution,
    EdgeDelay,
    Links,
    Policy,
    Topology,
    Weighting,
)
from raysim.world.delay import TimeUnit


class Letters(Tokenizer):
    """A token for each letter, by its place in the alphabet; 4 for all else."""

    name: str = "letters"

    def fitted(self, texts: Sequence[str]) -> Tokens:
        def encode(some: Sequence[str]) -> list[np.ndarray]:
            return [np.array([max(4, ord(x) - 92) if x.islower() else 4 for x in one], np.int32) for one in some]

        return Tokens(64, encode)


class Points(Source):
    """Two clouds of points."""

    name: str = "points"
    spread: Positive = 1.0
    """Standard deviation of a cloud."""

    @property
    def classes(self) -> int:
        return 2

    def load(self) -> Dataset:
        return Dataset(self._split(60, 0), self._split(20, 1), num_classes=2)

    def _split(self, samples: int, which: int) -> Split:
        draw = generator(0, "points", which)
        label = draw.integers(2, size=samples)
        x = 2.0 * label[:, None] + self.spread * draw.standard_normal((samples, 3))
        return Split(x.astype(np.float32), label)


class Turns(Partitioner):
    """Clients take the samples in turn."""

    name: str = "turns"

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        return [np.arange(client, len(split), clients) for client in range(clients)]


class FirstHasMore(Sizes):
    """The first client gets twice as much as any other."""

    name: str = "first_has_more"

    def shares(self, clients: int, generator: np.random.Generator) -> np.ndarray:
        return 1.0 + (np.arange(clients) == 0)


class Negative(FeatureSkew):
    """Every other client has negatives."""

    name: str = "negative"

    def change(
        self, x: np.ndarray, client: int, clients: int, draw: Callable[[int], np.random.Generator]
    ) -> np.ndarray:
        return 1 - x if client % 2 else x


class FirstRows(ServerData):
    """The server has the first test samples."""

    name: str = "first_rows"

    def draw(self, dataset: Dataset, available: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        rows = available["test"][:4]
        none = dataset.test.take(NO_ROWS["test"])
        samples = ServerSamples(dataset.test.take(rows), dataset.num_classes, dataset.mean, dataset.std, True, none)
        return samples, {**NO_ROWS, "test": rows}


class TwoLayers(ModelPart):
    """A small network."""

    name: str = "two_layers"
    width: int = 4

    def build(self, shape: tuple[int, ...], num_classes: int) -> Any:
        from torch import nn

        return nn.Sequential(nn.Linear(shape[0], self.width), nn.Tanh(), nn.Linear(self.width, num_classes))


class Halving(Solver):
    """Goes half of the way to the image."""

    name: str = "halving"
    tolerance: Positive = 1e-2

    def steps(self, start: Any) -> Callable[[Any, Any], Any]:
        return lambda point, image: (point + image) / 2


class Slow(Delay):
    """Some clients are slow."""

    name: str = "slow"
    unit: TimeUnit = "rounds"
    share: Fraction = 0.5

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        return 1.0 if stream(client).random() < self.share else 0.0


class Coin(Distribution):
    """One of two values."""

    name: str = "coin"
    high: Positive = 2.0

    @property
    def bounds(self) -> tuple[float, float]:
        return 1.0, self.high

    def draw(self, generator: np.random.Generator) -> float:
        return self.high if generator.random() < 0.5 else 1.0


class Message(EdgeDelay, Coin):
    """Messages take one of two times."""

    name: str = "message"


class ByDay(Links):
    """All edges are there in every other second."""

    name: str = "by_day"

    def up(self, graph: Any, time: float) -> Any:
        return np.full(len(graph.source), int(time) % 2 == 0)

    def next_change(self, time: float) -> float:
        return float(int(time) + 1)


class Lowest(Policy):
    """The idle clients with the lowest numbers."""

    name: str = "lowest"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> Sequence[int]:
        return list(candidates.idle[:wanted])


class Twice(Lowest):
    """Picks a client twice."""

    name: str = "twice"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> Sequence[int]:
        return [candidates.idle[0], candidates.idle[0]]


class Even(Availability):
    """In even rounds, even clients are there; in odd rounds, odd ones."""

    name: str = "even"

    def mask(self, seed: int, clients: int, time: float) -> np.ndarray:
        return np.arange(clients) % 2 == int(time) % 2

    def next_change(self, time: float) -> float:
        return int(time) + 1.0


class Wheel(Topology):
    """A ring with a hub."""

    name: str = "wheel"

    def graph(self, peers: int, generator: np.random.Generator) -> Any:
        import networkx as nx

        return nx.wheel_graph(peers)


class Tenth(Weighting):
    """A tenth of each message."""

    name: str = "tenth"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 0.1


class Squared(StalenessFunction):
    """S(s) = 1 / (1 + s)^2."""

    name: str = "squared"

    def __call__(self, staleness: float) -> float:
        return 1 / (1 + staleness) ** 2


class Cutoff(StalenessFunction):
    """Stale updates do not count."""

    name: str = "cutoff"

    def __call__(self, staleness: float) -> float:
        return float(staleness == 0)


class Mean(Central):
    """The mean of the updates."""

    name: str = "mean"

    @property
    def trigger(self) -> Round:
        return Round(late="keep")

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1 / len(arrivals)] * len(arrivals)

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {"w": state["w"] + updates["delta"]}


class Gossip(Peer):
    """Peers train and mix."""

    name: str = "gossip"

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received.replace(w=state["w"], buffers=state["buffers"]))
        record = {"w": trained.w, "buffers": state["buffers"]}
        return record, dict(record)

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}


class Halves(Uplink):
    name: str = "halves"
    factor: Positive = 0.5

    def first(self, length: int) -> Any:
        import torch

        return {"sent": torch.zeros(())}

    def send(self, vector: Any, kept: Any, at: Any) -> Decoded:
        return Decoded(vector * self.factor, {"sent": kept["sent"] + 1})


class Ones(Release):
    name: str = "ones"

    def draw(self, version: int, kept: Any, normal: Any) -> Any:
        return normal(version) * 0 + 1, {}


class Signs(Optimizer):
    """Parameters move by the signs of the gradient."""

    name: str = "signs"

    def move(self, w: Any, gradient: Any, state: Any, lr: float, taken: int) -> None:
        w.sub_(lr * gradient.sign())


class Shifted(Augmentation):
    """Every input grows by one."""

    images = False
    name: str = "shifted"

    def apply(self, x: Any, y: Any, classes: int) -> tuple[Any, Any]:
        return x + 1, y


class Doubled(Gradient):
    """Gradients are taken twice."""

    name: str = "doubled"

    def take(self, before: Any, at: Any, x: Any, y: Any) -> tuple[Any, Any]:
        loss, gradient = before(x, y)
        return loss, 2 * gradient


class Confidence(Metric):
    """The mean of a power of the largest probability."""

    name: str = "confidence"
    power: Positive = 1.0
    """The power."""

    def compute(self, outputs: Any, labels: Any) -> Any:
        return (outputs.softmax(-1).amax(-1) ** self.power).mean()


class Surprise(TrainingLoss):
    """One minus the probability of the label."""

    name: str = "surprise"

    def each(self, outputs: Any, labels: Any) -> Any:
        return 1 - outputs.softmax(-1).gather(1, labels[:, None])[:, 0]


class Counting(Observer):
    """Counts reports of progress, in a file beside the run."""

    name: str = "counting"
    file: str = "counted.txt"
    """Name of the file."""
    _seen: int = 0
    _folder: Any = None

    def begin(self, run: RunBegin) -> None:
        self._folder = run.folder

    def progress(self, progress: Progress) -> None:
        self._seen += 1

    def end(self, end: RunEnd) -> None:
        (self._folder / self.file).write_text(f"{self._seen} {end.status}")


class Kept(Tracker):
    """Keeps points, by the round in which they were sent, as a service would."""

    name: str = "kept"
    _kept: dict[int, RoundPoint] = PrivateAttr(default_factory=dict)
    _sent: list[int] = PrivateAttr(default_factory=list)

    @property
    def kept(self) -> dict[int, RoundPoint]:
        return self._kept

    @property
    def sent(self) -> list[int]:
        """The rounds of all points, in the order in which they were sent."""
        return self._sent

    def open(self, run: RunBegin) -> int | None:
        return max(self._kept, default=None)

    def log(self, point: RoundPoint) -> None:
        self._kept[point.round] = point
        self._sent.append(point.round)

    def close(self, end: RunEnd) -> None:
        pass


class Lacking(Kept):
    """Needs a package that there is not."""

    library: ClassVar[str | None] = "no_such_package"
    package: ClassVar[str] = "no-such-package"
    name: str = "lacking"


class Halfway(ServerRule):
    """The server moves half of the way."""

    name: str = "halfway"

    def move(self, kept: Record, w: Any, direction: Any, lr: float) -> tuple[Any, Record]:
        return w + direction / 2, {}


class OnlyFirst(Aggregate):
    """The first update is the only one that counts."""

    name: str = "only_first"

    def of(self, updates: Any, weights: Sequence[float]) -> Any:
        return sum(weights) * updates[0]


class Harmonic(Schedule):
    """start / (1 + t)."""

    name: str = "harmonic"
    start: float

    def curve(self, position: float) -> float:
        return self.start / (1 + position)

    @property
    def values(self) -> tuple[float, float]:
        return 1e-9, self.start


class Double(Behaviour):
    """Sends twice its update."""

    name: str = "double"

    def sent(self, value: Any, draw: Any) -> Any:
        return 2 * value
