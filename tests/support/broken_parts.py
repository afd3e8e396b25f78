"""Parts of which each breaks one law, for the tests of `raysim test`."""

import itertools
import os
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from toys_parts import ByDay, Even, Letters, Wheel

from raysim.algorithms import SGP, Buffer, Central, FedRolex, Inbox, Peer
from raysim.algorithms.staleness import StalenessFunction
from raysim.data import Dataset, Source, Split, Tokens
from raysim.data.federation.partition import Partitioner
from raysim.engine.progress import Progress
from raysim.local.optimizers import Optimizer
from raysim.models import ModelPart
from raysim.observers import Observer
from raysim.parts.errors import Problem
from raysim.parts.rng import generator
from raysim.privacy import Exposure, Release
from raysim.schedules import Schedule
from raysim.uplink import Decoded, Uplink
from raysim.world import Candidates, Policy
from raysim.world.delay import Delay
from raysim.world.mixing import Weighting

# --- algorithms -------------------------------------------------------------------------------------------------------


class Right(Central):
    """Breaks no law."""

    name: str = "right"

    @property
    def trigger(self) -> Any:
        return Buffer(2)

    def weigh(self, arrivals: Any, population: Any) -> Any:
        return [1 / len(arrivals)] * len(arrivals)

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        return {"w": state["w"] + updates["delta"]}


class Overwrites(Right):
    def update(self, task: Any, message: Any, state: Any) -> Any:
        message["w"].mul_(0.5)
        return super().update(task, message, state)


class OverwritesUnseen(Right):
    """Changes values in a way that torch does not count."""

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        w = state["w"].numpy()
        w += updates["delta"].numpy()
        return {"w": state["w"]}


class SetsAttribute(Right):
    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        self.last = updates["delta"]
        return super().step(state, arrivals, updates, task)


class SumsNothing(Right):
    """Takes a stack of updates for their sum."""

    def weigh(self, arrivals: Any, population: Any) -> Any:
        return None


class StepsFar(Right):
    """Breaks no law: its steps have a length of their own, which is more than the way to the optimum."""

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        return {"w": state["w"] + 10 * updates["delta"].sign()}


class Magnifies(Right):
    """Breaks no law: it goes with small local steps."""

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        return {"w": state["w"] + 30 * updates["delta"]}


class Draws(Right):
    """Draws without a key."""

    def update(self, task: Any, message: Any, state: Any) -> Any:
        update, state = super().update(task, message, state)
        return {**update, "delta": update["delta"] * (1 + os.urandom(1)[0] / 2560)}, state


class DrawsSlices(FedRolex):
    """Has another slice at the server than at the client."""

    name: str = "draws_slices"

    def first_unit(self, version: int) -> int:
        return next(COUNT)


class Remembers(Right):
    """Keeps something outside of the states."""

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        return {"w": state["w"] + updates["delta"] / (1 + next(COUNT))}


COUNT = itertools.count()


class KeepsOnItself(Right):
    """Keeps something on itself, which no checkpoint has."""

    _first: Any = None

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        self._first = state["w"].clone() if self._first is None else self._first
        return {"w": state["w"] + updates["delta"] - 0.01 * self._first}


class GoesPast(Right):
    """Breaks no law: its momentum carries it past the optimum and back, for many rounds."""

    def init(self, model: Any, population: Any) -> Any:
        return {"w": model.w, "momentum": model.w * 0}

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        momentum = 0.95 * state["momentum"] + updates["delta"]
        return {"w": state["w"] + momentum, "momentum": momentum}


class Diverges(Right):
    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        return {"w": state["w"] * float("inf")}


class Stays(Right):
    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        return {"w": state["w"]}


class SendsInTurns(Right):
    """Sends the model in every other version only."""

    def init(self, model: Any, population: Any) -> Any:
        return {"w": model.w, "steps": model.w.new_zeros(())}

    def message(self, state: Any) -> Any:
        return {"w": state["w"]} if int(state["steps"]) % 2 == 0 else {}

    def step(self, state: Any, arrivals: Any, updates: Any, task: Any) -> Any:
        return {**super().step(state, arrivals, updates, task), "steps": state["steps"] + 1}


class TrainsTwice(Right):
    """Takes longer than computed delays know."""

    def update(self, task: Any, message: Any, state: Any) -> Any:
        task.gradient(task.received)
        return super().update(task, message, state)


class NeedsImages(Right):
    """Trains on images, which quadratics are not."""

    def update(self, task: Any, message: Any, state: Any) -> Any:
        assert task.x.ndim == 4, "no images"
        return super().update(task, message, state)


class SaysItNeedsImages(NeedsImages):
    """Breaks no law: it refuses quadratics."""

    def problems(self, scenario: Any) -> Any:
        if scenario.data.name == "quadratic":
            yield Problem("data", "must have images")


class WaitsForNothing(Right):
    @property
    def trigger(self) -> Any:
        return 2


class NeedsSamples(Right):
    """Stops where a client has none."""

    def weigh(self, arrivals: Any, population: Any) -> Any:
        assert population.clients in (6, 4)
        return super().weigh(arrivals, population)


class RightPeer(Peer):
    """Breaks no law."""

    name: str = "right_peer"

    def local(self, task: Any, state: Any) -> Any:
        return {}, task.train(self.personal(task, state)).send(w=self.personal(task, state).w)

    def mix(self, task: Any, draft: Any, inbox: Inbox) -> Any:
        trained = task.train(task.received.replace(w=inbox.mixed("w"), buffers=inbox.mixed("buffers")))
        return {"w": trained.w, "buffers": trained.model.buffers}


class RightPush(SGP):
    """Breaks no law."""

    name: str = "right_push"


class KeepsSomeWeight(RightPush):
    """Mass appears where a weight is small."""

    def mix(self, task: Any, draft: Any, inbox: Inbox) -> Any:
        mixed = super().mix(task, draft, inbox)
        return {**mixed, "weight": mixed["weight"].clamp(min=0.5)}


class PushesTheNewest(RightPush):
    """Where peers do not wait, a message may count twice, and another one never."""

    consumes: ClassVar[bool] = False


class PeerTrainsTwice(RightPeer):
    """Takes longer than computed delays know."""

    def local(self, task: Any, state: Any) -> Any:
        task.gradient(task.received)
        return super().local(task, state)


class SaysThatItTrainsTwice(PeerTrainsTwice):
    """Breaks no law."""

    def samples_seen(self, local: Any, samples: int) -> int:
        return super().samples_seen(local, samples) + samples


class NeedsNeighbours(RightPeer):
    def mix(self, task: Any, draft: Any, inbox: Inbox) -> Any:
        assert inbox.messages
        return super().mix(task, draft, inbox)


# --- data -------------------------------------------------------------------------------------------------------------


class RightData(Source):
    """Breaks no law."""

    name: str = "right_data"

    def load(self) -> Dataset:
        return Dataset(train=self.split(200, 0), test=self.split(50, 1), num_classes=3)

    def split(self, samples: int, which: int) -> Split:
        draw = generator(0, "blobs", which)
        label = draw.integers(3, size=samples)
        return Split((label[:, None] + 0.1 * draw.standard_normal((samples, 2))).astype(np.float32), label)


class TooManyLabels(RightData):
    def load(self) -> Dataset:
        return Dataset(train=self.split(200, 0), test=self.split(50, 1), num_classes=2)


class WrongData(RightData):
    """Loads what does not fit together."""

    name: str = "wrong_data"
    wrong: str

    @property
    def classes(self) -> int | None:
        return 5 if self.wrong == "classes" else super().classes

    def load(self) -> Any:
        train, test = self.split(200, 0), self.split(50, 1)
        if self.wrong == "tuple":
            return train, test
        loss: Any = "hinge" if self.wrong == "loss" else "cross_entropy"
        return Dataset(train, test, num_classes=train.y.max() + 1 if self.wrong == "numpy" else 3, loss=loss)

    def split(self, samples: int, which: int) -> Split:
        x, y = super().split(samples, which).x, super().split(samples, which).y
        if self.wrong == "nan":
            x[3, 0] = np.nan
        kinds: Any = {"lists": x.tolist(), "double": x.astype(float), "shape": x[:, : 2 - which]}
        kinds["type"] = x.astype(np.int16) if which and self.wrong == "type" else x
        users: Any = {"user": [0] * samples} if self.wrong == "users" else {}
        return Split(kinds.get(self.wrong, x), y, users)


class DrawsData(RightData):
    def split(self, samples: int, which: int) -> Split:
        split = super().split(samples, which)
        return Split(split.x + np.random.rand(samples, 2).astype(np.float32), split.y)


class RightPartition(Partitioner):
    """Breaks no law."""

    name: str = "right_partition"

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        return np.array_split(generator.permutation(len(split)), clients)


class SomeToEach(RightPartition):
    """Breaks no law: it says how many samples each of five clients gets."""

    sizes: tuple[int, ...] = (5, 10, 20, 5, 10)

    def split(self, split: Split, clients: int, generator: Any) -> Any:
        if clients != len(self.sizes):
            raise ValueError(f"sizes: must have {clients} entries, got {len(self.sizes)}")
        return np.split(generator.permutation(len(split))[: sum(self.sizes)], np.cumsum(self.sizes)[:-1])


class GivesTwice(RightPartition):
    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        first, *others = super().split(split, clients, generator)
        return [first, *others[:-1], np.append(others[-1], first[0])]


class GivesNothing(RightPartition):
    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        first, *others = super().split(split, clients, generator)
        return [first[:0], *others]


class WrongPartition(RightPartition):
    """Does not divide the samples among all clients."""

    name: str = "wrong_partition"
    wrong: str

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> Any:
        parts = super().split(split, clients - (self.wrong == "few"), generator)
        parts[1] = np.append(parts[1], len(split)) if self.wrong == "beyond" else parts[1]
        given = [part.astype(float) for part in parts] if self.wrong == "floats" else parts
        return None if self.wrong == "nothing" else given


class MayGiveNothing(GivesNothing):
    @property
    def may_be_empty(self) -> bool:
        return True


class DrawsPartition(RightPartition):
    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        generator.random()
        return np.array_split(np.random.permutation(len(split)), clients)


class IgnoresSeed(RightPartition):
    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        generator.random()
        return np.array_split(np.arange(len(split)), clients)


# --- models -----------------------------------------------------------------------------------------------------------


class RightModel(ModelPart):
    """Breaks no law."""

    name: str = "right_model"

    def build(self, shape: tuple[int, ...], num_classes: int) -> Any:
        import torch

        class Net(torch.nn.Module):
            def __init__(own) -> None:
                super().__init__()
                own.x = torch.nn.Linear(64, num_classes)
                self.prepare(own)

            def forward(own, x: Any) -> Any:
                return self.predict(own, x.flatten(1))

        return Net()

    def prepare(self, net: Any) -> None:
        pass

    def predict(self, net: Any, x: Any) -> Any:
        return net.x(x)


class BeginsWithOnes(RightModel):
    """Breaks no law: at first its outputs are all 1, and the layer before them stays as it is."""

    def prepare(self, net: Any) -> None:
        import torch

        net.before = torch.nn.Linear(64, 64).requires_grad_(False)
        torch.nn.init.zeros_(net.x.weight)
        torch.nn.init.ones_(net.x.bias)

    def predict(self, net: Any, x: Any) -> Any:
        return net.x(net.before(x))


class OtherValues(RightModel):
    def prepare(self, net: Any) -> None:
        net.x.weight.data += next(COUNT)


class JoinsOtherUnits(RightModel):
    """Its narrower form has the first units of each of two layers, which are not the first of both together."""

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> Any:
        return self.of_units(round(4 * width), num_classes)

    def build(self, shape: tuple[int, ...], num_classes: int) -> Any:
        return self.of_units(4, num_classes)

    def of_units(self, units: int, num_classes: int) -> Any:
        import torch

        class Net(torch.nn.Module):
            def __init__(own) -> None:
                super().__init__()
                own.one, own.other = torch.nn.Linear(64, units), torch.nn.Linear(64, units)
                own.head = torch.nn.Linear(2 * units, num_classes)

            def forward(own, x: Any) -> Any:
                x = x.flatten(1)
                return own.head(torch.cat((own.one(x), own.other(x)), 1))

        return Net()


class GrowsWhereCut(JoinsOtherUnits):
    """Its narrower form has more units."""

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> Any:
        return self.of_units(8, num_classes)


class NarrowsAnew(RightModel):
    """Its narrower form has other units each time."""

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> Any:
        return self.of_units(4 + next(COUNT) % 2, num_classes)

    def build(self, shape: tuple[int, ...], num_classes: int) -> Any:
        return self.of_units(11, num_classes)

    def of_units(self, units: int, num_classes: int) -> Any:
        import torch

        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, units), torch.nn.Linear(units, num_classes))


class NarrowsLess(NarrowsAnew):
    """A quarter has more units than a half."""

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> Any:
        return self.of_units(round(8 - 8 * width), num_classes)


class UnevenHeads(NarrowsAnew):
    """Its 11 units are of two heads, so that one is of none."""

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> Any:
        return self.of_units(2 * round(6 * width), num_classes)

    def of_units(self, units: int, num_classes: int) -> Any:
        import torch

        class Heads(torch.nn.Module):
            def __init__(own) -> None:
                super().__init__()
                own.num_heads = 2
                own.q, own.out = torch.nn.Linear(64, units), torch.nn.Linear(units, 64)

            def forward(own, x: Any) -> Any:
                return own.out(own.q(x))

        return torch.nn.Sequential(torch.nn.Flatten(), Heads(), torch.nn.Linear(64, num_classes))


class DropsAlways(RightModel):
    def predict(self, net: Any, x: Any) -> Any:
        import torch

        return torch.nn.functional.dropout(net.x(x), 0.5)


class SeesTheBatch(RightModel):
    def predict(self, net: Any, x: Any) -> Any:
        return net.x(x - x.mean(0))


class KeepsOutside(RightModel):
    def prepare(self, net: Any) -> None:
        import torch

        net.outside = torch.randn(64)

    def predict(self, net: Any, x: Any) -> Any:
        return net.x(x + net.outside)


class OtherOutputs(RightModel):
    def predict(self, net: Any, x: Any) -> Any:
        return net.x(x)[:, :3]


# --- the world --------------------------------------------------------------------------------------------------------


class RightDelay(Delay):
    """Breaks no law."""

    name: str = "right_delay"
    unit: Any = "rounds"

    def duration(self, stream: Any, client: int, number: int, cost: Any) -> float:
        return float(stream(client, number).random())


class RoundsDelays(RightDelay):
    """Breaks no law: a number of numpy is one."""

    def duration(self, stream: Any, client: int, number: int, cost: Any) -> Any:
        return np.float32(super().duration(stream, client, number, cost))


class Negative(RightDelay):
    def duration(self, stream: Any, client: int, number: int, cost: Any) -> float:
        return super().duration(stream, client, number, cost) - 0.5


class CountsDelays(RightDelay):
    def duration(self, stream: Any, client: int, number: int, cost: Any) -> float:
        return float(next(COUNT))


class PromisesMore(RightDelay):
    @property
    def least(self) -> float:
        return 2.0


class NeedsCost(RightDelay):
    def duration(self, stream: Any, client: int, number: int, cost: Any) -> float:
        return float(cost.flops / 1e9)


class ChangesUnforetold(Even):
    def next_change(self, time: float) -> float:
        return int(time) + 3.0


class NeverComes(Even):
    def mask(self, seed: int, clients: int, time: float) -> Any:
        return super().mask(seed, clients, time) & (np.arange(clients) != 3)


class LinksUnforetold(ByDay):
    def next_change(self, time: float) -> float:
        return int(time) + 3.0


class InParts(Wheel):
    def graph(self, peers: int, generator: np.random.Generator) -> Any:
        graph = nx.path_graph(peers)
        graph.remove_edge(2, 3)
        return graph


class DrawsTopology(Wheel):
    def graph(self, peers: int, generator: np.random.Generator) -> Any:
        return nx.relabel_nodes(nx.path_graph(peers), dict(enumerate(np.random.permutation(peers).tolist())))


class TooHeavy(Weighting):
    """Lets a peer give away more than all."""

    name: str = "too_heavy"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 0.6


class Rises(StalenessFunction):
    """Counts stale updates more."""

    name: str = "rises"

    def __call__(self, staleness: float) -> float:
        return min(1.0, 0.1 + staleness / 10)


class FailsToSee(Observer):
    """Cannot see the first progress."""

    name: str = "fails_to_see"

    def progress(self, progress: Progress) -> None:
        print(1 / (progress.round - progress.round))


def first(outputs: Any, labels: Any) -> Any:
    """A metric of the first sample alone."""
    return outputs[0, 0]


def right_at_first(outputs: Any, labels: Any) -> Any:
    """A metric of the first ten samples."""
    return (outputs.argmax(1)[:10] == labels[:10]).float().mean()


def centred(outputs: Any, labels: Any) -> Any:
    """A loss that depends on the whole batch."""
    return (outputs - outputs.mean(0)).square().sum(1)


def constant(outputs: Any, labels: Any) -> Any:
    """A loss without a gradient."""
    return outputs.detach().square().sum(1)


# --- policies ---------------------------------------------------------------------------------------------------------


class PicksMore(Policy):
    name: str = "picks_more"

    def pick(self, candidates: Candidates, wanted: int, generator: Any) -> Any:
        return candidates.idle.tolist()


class DrawsPicks(PicksMore):
    """Draws without a key."""

    def pick(self, candidates: Candidates, wanted: int, generator: Any) -> Any:
        return np.random.default_rng().permutation(candidates.idle)[:wanted].tolist()


# --- local training ---------------------------------------------------------------------------------------------------


class MovesACopy(Optimizer):
    name: str = "moves_a_copy"

    def move(self, w: Any, gradient: Any, state: Any, lr: float, taken: int) -> None:
        w = w - lr * gradient


class Gathers(Optimizer):
    """Breaks no law: it moves with every fourth gradient."""

    name: str = "gathers"

    def init(self, w: Any) -> Any:
        return {"sum": w * 0}

    def move(self, w: Any, gradient: Any, state: Any, lr: float, taken: int) -> None:
        state["sum"] += gradient
        if taken % 4 == 3:
            w.sub_(lr * state["sum"])
            state["sum"].zero_()


class GrowsItsState(Optimizer):
    name: str = "grows_its_state"

    def move(self, w: Any, gradient: Any, state: Any, lr: float, taken: int) -> None:
        state[f"gradient {taken}"] = gradient.clone()
        w.add_(gradient, alpha=-lr)


class SmallState(MovesACopy):
    def init(self, w: Any) -> Any:
        return {"mean": w.new_zeros(1)}


class LeavesBounds(Schedule):
    """Rises beyond the values that it names."""

    name: str = "leaves_bounds"

    def curve(self, position: float) -> float:
        return 0.1 * 2**position

    @property
    def values(self) -> tuple[float, float]:
        return 0.05, 0.1


# --- tokenizers -------------------------------------------------------------------------------------------------------


class CountsTooFew(Letters):
    def fitted(self, texts: Any) -> Tokens:
        return super().fitted(texts)._replace(size=5)


# --- transforms of what clients send ----------------------------------------------------------------------------------


class Shortens(Uplink):
    name: str = "shortens"

    def send(self, vector: Any, kept: Any, at: Any) -> Decoded:
        return Decoded(vector[:-1])


class Normalises(Uplink):
    name: str = "normalises"

    def send(self, vector: Any, kept: Any, at: Any) -> Decoded:
        return Decoded(vector / vector.norm())


class DrawsAnew(Uplink):
    name: str = "draws_anew"

    def send(self, vector: Any, kept: Any, at: Any) -> Decoded:
        return Decoded(vector + float(np.random.default_rng().normal()))


class StretchesMore(Uplink):
    name: str = "stretches_more"

    def send(self, vector: Any, kept: Any, at: Any) -> Decoded:
        return Decoded(vector * 2.0)

    def stretch(self, length: int) -> float | None:
        return 1.5


class RoundsDown(Uplink):
    name: str = "rounds_down"

    def send(self, vector: Any, kept: Any, at: Any) -> Decoded:
        return Decoded((vector * 16 + vector.clone().uniform_(0, 0.9, generator=at.draw)).floor() / 16)

    @property
    def unbiased(self) -> bool:
        return True


class SaysLess(Uplink):
    name: str = "says_less"

    def send(self, vector: Any, kept: Any, at: Any) -> Decoded:
        return Decoded(vector)

    def size(self, before: Any) -> Any:
        return before._replace(values=3)


# --- noise on sums ----------------------------------------------------------------------------------------------------


class RightRelease(Release):
    """Breaks no law."""

    name: str = "right_release"

    def draw(self, version: int, kept: Any, normal: Any) -> Any:
        return normal(version), {}


class AddsMore(RightRelease):
    def add(self, of: Any, version: int, kept: Any, keyed: Any) -> Any:
        found, after = super().add(of, version, kept, keyed)
        return found + 0.001, after


class DrawsNoiseAnew(RightRelease):
    def draw(self, version: int, kept: Any, normal: Any) -> Any:
        return normal(next(COUNT)), {}


class DrawsOnce(RightRelease):
    def draw(self, version: int, kept: Any, normal: Any) -> Any:
        return normal(1), {}


class HalfNoise(RightRelease):
    def draw(self, version: int, kept: Any, normal: Any) -> Any:
        return 0.5 * normal(version), {}


class CountsHalf(RightRelease):
    def exposure(self) -> Exposure:
        found = Exposure()
        found.count = lambda shares: Exposure.count(found, {key: share / 2 for key, share in shares.items()})
        return found
