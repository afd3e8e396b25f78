"""Which laws hold for which kind of part, and how all of them are tried."""

from collections.abc import Iterator

from raysim.algorithms import Central
from raysim.laws import (
    algorithm,
    data,
    local,
    metric,
    model,
    observer,
    partition,
    policy,
    runs,
    topology,
    uplink,
    world,
)
from raysim.laws.law import Groups, Judgement, judge
from raysim.laws.subject import Subject

LAWS: dict[str, Groups] = {
    "data": data.LAWS,
    "data.partition": partition.LAWS,
    "model": model.LAWS,
    "algorithm.staleness": world.STALENESS,
    "topology": topology.TOPOLOGY,
    "topology.weights": topology.WEIGHTS,
    "world.delay": world.DELAY,
    "world.delay.flops_per_s": world.DISTRIBUTION,
    "world.dispatch.policy": policy.LAWS,
    "world.availability": world.AVAILABILITY,
    "world.edge_delay": world.EDGE_DELAY,
    "local.optimizer": local.OPTIMIZER,
    "local.lr": local.SCHEDULE,
    "uplink": uplink.UPLINK,
    "run.metrics": metric.METRIC,
    "run.loss": metric.LOSS,
    "run.observers": observer.LAWS,
    "run.log": observer.LAWS,
}


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
        return algorithm.SERVER if issubclass(subject.part, Central) else algorithm.PEERS
    return LAWS.get(subject.kind.key, runs.RUNS)  # of a kind without laws of its own
