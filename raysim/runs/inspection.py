"""Examines a scenario before a run by loading its data and model, and finds what is wrong."""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

from actors.fault import frames_of
from raysim.algorithms import ALGORITHMS
from raysim.data import Dataset, Federation, federate
from raysim.data.federation.federation import divide
from raysim.data.federation.server import NO_PUBLIC, NoServerData
from raysim.data.loaded import load
from raysim.engine.families import family_of
from raysim.parts.errors import BadInput, BadValue, Problem, located
from raysim.parts.process import isolated
from raysim.runs.room import States, states_of
from raysim.scenario import Scenario
from raysim.terms import Shapes
from results import Writer
from results.location import is_local, location
from results.rows import Row
from results.summary import guarantee_of
from results.texts import count

_HAPPENINGS = 20  # how many happenings of a timeline a check follows
_SMALL = 2**28  # bytes of files that are read without being asked for


class Nowhere(Writer):
    """Takes rows, and writes none."""

    def __init__(self) -> None: ...

    def add(self, row: Row, own: Mapping[str, float | None] | None = None) -> None: ...

    def add_columns(
        self, table: str, columns: Mapping[str, list[Any]], own: Sequence[Mapping[str, float | None]] = ()
    ) -> None: ...

    def flush(self) -> None: ...


class Inspected(NamedTuple):
    """The findings of an inspection."""

    problems: list[Problem]  # what is missing, damaged or does not fit
    notes: tuple[str, ...] = ()  # warnings: settings that are seldom meant, and requests that cannot be met
    meaning: tuple[str, ...] = ()  # what inputs and labels were taken for
    privacy: tuple[str, ...] = ()  # what the run would guarantee
    states: States | None = None  # of clients; None if they keep none


def unfit(scenario: Scenario) -> list[Problem]:
    """Returns why the data do not load or cannot be divided, or why noise cannot be as `release` says in the timeline
    that follows; none where they are not on this machine, or are more than 256 MB of files: they are then not read."""
    data, found = scenario.data, list[Problem]()
    paths = [location(path).expanduser() for path in data.reads()]
    named = data.name in ("digits", "quadratic", "linear_regression") or getattr(data, "frame", None) or paths
    if not named or data.name == "torch" or not all(is_local(path) and path.is_file() for path in paths):
        return []
    if sum(path.stat().st_size for path in paths) > _SMALL:
        return []
    with isolated():
        with _noting(found, "data"):
            dataset = load(data)
        federation = None if found else _divided(scenario, dataset, found)
        if federation is not None and scenario.release is not None and scenario.has_server and not found:
            with _noting(found, "release", "fit the timeline"):
                family = family_of(scenario)
                steps = family.dry(family.recorder(Nowhere()), federation, lambda: family.worker(federation).cost())
                next(steps, None)
    return found


@isolated(torch=True)
def inspect(scenario: Scenario) -> Inspected:
    """Loads the data and the model of a scenario as a run would, and returns what is wrong with them.

    If something is wrong, nothing that depends on it is examined. One client or peer is trained for one step.
    """
    found: list[Problem] = []
    with _noting(found, "data"):
        dataset = load(scenario.data)
    if found:
        return Inspected([*found, *_name_problems(scenario)])
    federation = _divided(scenario, dataset, found)
    notes, states = ((), None) if federation is None else _try_model(scenario, federation, found)
    told: tuple[str, ...] = ()
    if federation is not None and not found:
        with _noting(found, "privacy", "be accounted for"):
            told = _guarantee(scenario, federation)
    meaning = dataset.meaning.lines if dataset.meaning else ()
    return Inspected(list(dict.fromkeys(found)), notes, meaning, told, states)


def _guarantee(scenario: Scenario, federation: Federation) -> tuple[str, ...]:
    """Returns what a run of the scenario would guarantee, by its whole timeline; () without `privacy`."""
    if scenario.privacy is None:
        return ()
    family = family_of(scenario)
    recorder: Any = family.recorder(Nowhere())
    deque(family.dry(recorder, federation, lambda: family.worker(federation).cost()), maxlen=0)
    outcome = recorder.outcome()
    told = [guarantee_of(outcome["privacy"])]
    if outcome["ended_by"] == "epsilon":
        steps = count(outcome["totals"]["steps"], "server step")
        told.append(f"the run ends after {steps}, because one more would take more than privacy.epsilon")
    return tuple(filter(None, told))


def guarantee(scenario: Scenario) -> tuple[str, ...]:
    """Returns what a run of the scenario would guarantee; () without `privacy`. It loads the data."""
    if scenario.privacy is None:
        return ()
    with isolated():
        return _guarantee(scenario, federate(scenario.data, scenario.server_data, scenario.seed, scenario.public))


@contextmanager
def _noting(found: list[Problem], key: str, must: str = "load") -> Iterator[None]:
    """Adds an error within the block to the problems, under this key unless the error has a more exact one.

    must: what the part must be able to do, for errors that do not say so.
    """
    try:
        with located(key):
            yield
    except BadInput as bad:
        found.append(bad.problem)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of a user's own class, or of a library that it calls
        text = " - ".join(" ".join(line.split()) for line in (str(error), *getattr(error, "__notes__", ())))
        where = "".join(f", raised in {frame.function}, {frame.place}" for frame in frames_of(error)[-1:])
        text = f"must {must}, got {type(error).__name__}: {text}{where}; run it to see the traceback"
        found.append(Problem(key, text))


def _divided(scenario: Scenario, dataset: Dataset, found: list[Problem]) -> Federation | None:
    """Divides the data. Server data and public samples are tried separately, so that the problems of both are found."""
    data, server_data, public, seed = scenario.data, scenario.server_data, scenario.public, scenario.seed
    with _noting(found, "data.partition", "divide the samples"):
        federation = divide(dataset, data, NoServerData(), seed, NO_PUBLIC)
    if found:
        return None
    with _noting(found, "server_data", "draw samples"):
        divide(dataset, data, server_data, seed, NO_PUBLIC)
    with _noting(found, "public", "draw samples"):
        divide(dataset, data, NoServerData(), seed, public)
    if not found:
        with _noting(found, "data"):
            return divide(dataset, data, server_data, seed, public)
    return federation


def _try_model(
    scenario: Scenario, federation: Federation, found: list[Problem]
) -> tuple[tuple[str, ...], States | None]:
    """Builds the model for the data, tries it on two samples, trains a client for one step, or a peer of an algorithm
    from outside, and follows the timeline: where it is scripted, to its end.

    Returns what is seldom meant, or done otherwise than asked, and what states of clients take.
    """
    from raysim.workers.peers import PeersWorker
    from raysim.workers.preflight import transformed, try_architectures, try_metrics, try_model
    from raysim.workers.server import ServerWorker
    from raysim.workers.workbench import Workbench

    workers: list[Workbench] = []
    with _noting(found, "model"):
        workers.append(family_of(scenario).worker(federation))
    if not workers:
        return (), None
    (worker,) = workers
    with _noting(found, "model", "predict and train on two samples"):
        if not math.isfinite(loss := try_model(worker)):
            must = "must have a finite loss before any training"
            raise BadValue(f"{must}, got {loss} on two samples; look for a division by zero, or large inputs")
        with _noting(found, "clients", "have models that predict and train on two samples"):
            try_architectures(worker)
        with _noting(found, "run.metrics", "give numbers for some samples"):
            try_metrics(worker)
    if isinstance(worker, ServerWorker) and not found:
        travels = dict[tuple[str, ...], Shapes]()
        with _noting(found, "algorithm", "update a client"):
            travels |= worker.cost().up  # this trains a client for one step, and a second one if it predicts
        with _noting(found, "algorithm", "do a step"):
            if not found and type(scenario.algorithm) not in ALGORITHMS and not scenario.apart:
                worker.filled()
        with _noting(found, "uplink", "transform an update"):
            transformed("uplink", worker.uplink, travels)
    elif isinstance(worker, PeersWorker) and not found and type(scenario.algorithm) not in ALGORITHMS:
        # Only a user's algorithm, because some of raysim's train long on public samples whenever they mix.
        with _noting(found, "algorithm", "train and mix a peer"):
            worker.tried(worker.federation.smallest, scenario.local.model_copy(update={"steps": 1}))
    if not scenario.follows_training and "algorithm" not in {problem.path for problem in found}:
        with _noting(found, "world", "give a timeline"):
            _try_timeline(scenario, federation, worker)
    return ((), None) if found else (worker.notes, states_of(scenario, federation, worker))


def _try_timeline(scenario: Scenario, federation: Federation, worker: Any) -> None:
    """Follows the beginning of the timeline, or all of it where it is scripted."""
    family = family_of(scenario)
    happenings = family.dry(family.recorder(Nowhere()), federation, worker.cost)
    limit = None if scenario.world.dispatch.picks is not None else _HAPPENINGS
    deque(islice(happenings, limit if scenario.has_server else 1), maxlen=0)


def _name_problems(scenario: Scenario) -> list[Problem]:
    """Returns what is wrong with names and files of the model, which can be told without data."""
    found: list[Problem] = []
    with _noting(found, "model"):
        scenario.model.build((3, 224, 224), scenario.data.classes or 10)
    return [problem for problem in found if problem.path in ("model.model", "model.weights")]
