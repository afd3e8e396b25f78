"""Which laws hold for which kind of part, and how all of them are tried; and the laws of data sets and partitions: any
run checks what they load, and who holds which samples."""

import inspect
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from actors.fault import describe, frames_of
from raysim.algorithms import Central
from raysim.data.dataset import Split
from raysim.data.loaded import load
from raysim.laws import algorithm, model, release, runs, training, world
from raysim.laws.runs import RUNS, the_same_bits_on_ray
from raysim.laws.subject import Broken, Groups, Law, NotTried, Subject

SAMPLES, LABELS, USERS = 600, 10, 12


def _samples(subject: Subject) -> Split:
    """Returns new copies of samples to be divided: labelled ones of several users, or those of the user's own file."""
    if subject.file is not None:
        found = _loaded(subject)
        return found.take(np.arange(len(found)))
    draw = np.random.default_rng(0)
    label = draw.integers(LABELS, size=SAMPLES)
    x = draw.standard_normal((SAMPLES, 2)).astype(np.float32)
    return Split(x, label, {"user": draw.integers(USERS, size=SAMPLES)})


@lru_cache(maxsize=1)
def _loaded(subject: Subject) -> Split:
    return load(subject.scenario.data).train


def divided(subject: Subject, seed: int = 0) -> list[np.ndarray]:
    """Returns the rows of each client under a seed."""
    generator = np.random.default_rng(seed)
    rows: list[np.ndarray] = subject.made.split(_samples(subject), subject.clients, generator)
    return rows


def another_seed_divides_otherwise(subject: Subject) -> None:
    """Another seed divides otherwise, if it draws at all."""
    generator = np.random.default_rng(0)
    before = str(generator.bit_generator.state)
    first = subject.made.split(_samples(subject), subject.clients, generator)
    if str(generator.bit_generator.state) == before:
        raise NotTried("it draws nothing: the data alone say who holds what")
    if all(np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(first, divided(subject, 1), strict=True)):
        raise Broken("split: another seed must divide otherwise, got the same rows for every client")


LAWS: dict[str, Groups] = {
    "data": (*RUNS, (the_same_bits_on_ray,)),
    "data.partition": ((another_seed_divides_otherwise,), *RUNS),
    "model": model.LAWS,
    "algorithm.staleness": world.STALENESS,
    "topology": world.TOPOLOGY,
    "topology.weights": world.WEIGHTS,
    "world.delay": world.DELAY,
    "world.delay.flops_per_s": world.DISTRIBUTION,
    "world.availability": world.AVAILABILITY,
    "world.edge_delay": world.EDGE_DELAY,
    "world.links": world.LINKS,
    "local.optimizer": training.OPTIMIZER,
    "local.lr": training.SCHEDULE,
    "uplink": training.UPLINK,
    "downlink": training.UPLINK,
    "release": release.RELEASE,
    "run.metrics": training.METRIC,
    "run.loss": training.LOSS,
    "run.observers": runs.OBSERVER,
    "run.log": runs.OBSERVER,
}


class Judgement(NamedTuple):
    """What became of a law."""

    law: str
    state: Literal["ok", "failed", "not tried"]
    text: str = ""  # what was got, or why it was not tried


def judge(groups: Groups, subject: Any) -> Iterator[Judgement]:
    """Tries all laws on a subject, group after group.

    A group is tried only if no law of an earlier group failed: its laws build on those.
    """
    failed = ""
    for group in groups:
        outcomes = [Judgement(_text(law), "not tried", failed) if failed else _tried(law, subject) for law in group]
        yield from outcomes
        failed = failed or ("a law above it failed" if any(o.state == "failed" for o in outcomes) else "")


def _tried(law: Law, subject: Any) -> Judgement:
    try:
        law(subject)
    except NotTried as reason:
        return Judgement(_text(law), "not tried", str(reason))
    except (Exception, SystemExit) as error:  # what a user's class raises
        where = "".join(f" - raised in {', '.join(frame)}" for frame in frames_of(error)[-1:])
        return Judgement(_text(law), "failed", str(error) if isinstance(error, Broken) else describe(error) + where)
    return Judgement(_text(law), "ok")


def _text(law: Law) -> str:
    return (inspect.getdoc(law) or "").partition("\n")[0].rstrip(".")


def check(subject: Subject, *, ray: bool = True) -> Iterator[Judgement]:
    """Tries all laws of the part's kind, and yields what became of each. ray: whether to try those that need Ray."""
    yield from judge(laws_of(subject, ray=ray), subject)


def laws_of(subject: Subject, *, ray: bool) -> Groups:
    """Returns the laws of the part's kind, in groups that build on each other. ray: with those that need Ray."""
    left_out = () if ray else (runs.the_same_bits_on_ray,)
    groups = ((runs.its_keys_are_right,), *_groups(subject))
    return [[law for law in group if law not in left_out] for group in groups]


def _groups(subject: Subject) -> Groups:
    if subject.kind.key == "algorithm":
        if issubclass(subject.part, Central):
            return algorithm.SERVER
        return algorithm.PUSHING if getattr(subject.part, "mixes", "pull") == "push" else algorithm.PEERS
    return LAWS.get(subject.kind.key, runs.RUNS)  # of a kind without laws of its own
