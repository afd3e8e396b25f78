"""Tuning with Optuna, whose sampler suggests values of keys.

Trials are suggested in batches whose size the scenario file fixes, and their scores are given to Optuna in order; a
trial's seeds run one after another. So a search is a function of its file: how many runs are carried out side by side
does not change suggestions. An interrupted search that is started again suggests the same values. Its finished runs
are not run again, and the others continue from their checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from raysim.observers.observer import Watcher
from raysim.parts.errors import Problem, ScenarioError
from raysim.runs.continuing import EarlierRuns
from raysim.scenario import Scenario
from raysim.sweep.batch import RunOutcome, attempt
from raysim.sweep.expand import Plan
from raysim.sweep.settings import Range
from raysim.sweep.slots import open_slots
from results import open_run
from results.location import location
from results.readings import MOMENT, WHAT, over_members

if TYPE_CHECKING:
    import optuna

STARTUP = 5  # first trials of a group, which are drawn at random


class Trial(NamedTuple):
    """A suggestion that was tried, and its outcome."""

    group: int  # place of the group of scenarios, which differ only in their seeds
    number: int
    values: dict[str, Any]  # values of the tuned keys
    status: str  # finished, stopped, diverged or failed
    score: float | None  # mean over seeds; infinitely bad if it diverged; None if it was stopped or failed
    outcomes: tuple[RunOutcome, ...]  # the outcomes of its runs, by seed
    again: tuple[str, ...]  # why runs that had finished before are out of date, and were run again


def search(
    plan: Plan,
    *,
    out: str | Path = "runs",
    inline: bool = False,
    address: str | None = None,
    parallel: int | None = None,
    observers: Sequence[Watcher] = (),
) -> Iterator[Trial]:
    """Tunes each group of the plan's scenarios, and yields all trials when they are over, group by group.

    For the arguments, see `run_all`. Raises ScenarioError if a suggestion makes a wrong scenario.
    """
    settings = plan.search
    if settings is None:
        raise ValueError("the sweep must have a search")
    groups = len(plan.groups())
    chosen = plan.scenarios() * settings.batch
    out = location(out)
    earlier = EarlierRuns(out)
    with _quiet(), open_slots(chosen, inline=inline, address=address, parallel=parallel) as slots:
        run = partial(attempt, slots, out, observers, earlier)
        for group in range(groups):
            study = _study(plan, group)
            for first in range(0, settings.trials, settings.batch):
                number = min(settings.batch, settings.trials - first)
                asked = [study.ask(_distributions(settings.over)) for _ in range(number)]
                tried = {
                    trial.number: trial for _, trial in slots.each(partial(_tried, plan, group, earlier, run), asked)
                }
                for suggestion in asked:
                    _tell(study, suggestion, tried[suggestion.number])
                    yield tried[suggestion.number]


def best(trials: Sequence[Trial], plan: Plan) -> list[Trial]:
    """Returns the best finished trial of each group that has one."""
    finished = [trial for trial in trials if trial.score is not None and trial.status != "diverged"]
    groups = sorted({trial.group for trial in finished})
    of = max if plan.direction == "maximize" else min  # the first of equal ones
    by_group = ([trial for trial in finished if trial.group == group] for group in groups)
    return [of(trials, key=lambda trial: trial.score or 0.0) for trials in by_group]


def _tried(
    plan: Plan, group: int, earlier: EarlierRuns, run: Callable[[Scenario, str], RunOutcome], suggestion: optuna.Trial
) -> Trial:
    """Tries a suggestion for a group: runs its seeds one after another, or takes what they gave before.

    run: runs a scenario, which has this label, or continues an early run of it.
    """
    outcomes: list[RunOutcome] = []
    again: list[str] = []
    scores: list[float] = []
    values = dict(suggestion.params)
    brief = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in values.items())
    for scenario in plan.groups(values)[group]:
        found = earlier.find(scenario)
        if isinstance(found, Path):
            before = open_run(found)
            outcome = RunOutcome("diverged" if before.status == "diverged" else "done before", found, before.diverged)
        else:
            again += [found.why] if found else []
            outcome = run(scenario, f"{scenario.name}  trial {suggestion.number}: {brief}, seed={scenario.seed}")
        outcomes.append(outcome)
        if outcome.status in ("stopped", "diverged", "failed"):
            break
        assert outcome.folder is not None and plan.search is not None
        scores.append(_score(outcome.folder, plan.search.metric, scenario.evaluated_splits[0]))
    last = outcomes[-1].status
    status: str = last if last in ("stopped", "diverged", "failed") else "finished"
    score = sum(scores) / len(scores) if status == "finished" else None
    if status == "diverged" or (score is not None and math.isnan(score)):
        status, score = "diverged", math.inf if plan.direction == "minimize" else -math.inf
    return Trial(group, suggestion.number, values, status, score, tuple(outcomes), tuple(again))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Optuna from reporting each trial within the block."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _study(plan: Plan, seed: int) -> optuna.Study:
    import optuna

    storage, name = plan.search.storage if plan.search else None, f"{plan.name}-{seed}"
    if storage and name in optuna.get_all_study_names(storage):
        optuna.delete_study(study_name=name, storage=storage)  # all trials are told again, earlier ones too
    return optuna.create_study(
        storage=storage,
        study_name=name,
        direction=plan.direction,
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP),
    )


def importances(trials: Iterable[Trial], plan: Plan, group: int) -> dict[str, float]:
    """Returns how much of the variance of a group's scores each tuned key explains, the largest share first.

    It is fANOVA (Hutter, Hoos, Leyton-Brown, An efficient approach for assessing hyperparameter importance, ICML 2014),
    as Optuna has it. {} with fewer than two keys, or four finished trials that differ.
    """
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances
    from optuna.study import create_study
    from optuna.trial import create_trial

    kinds = _distributions(plan.search.over if plan.search else {})
    of_group = [one for one in trials if one.group == group and one.score is not None and math.isfinite(one.score)]
    if len(kinds) < 2 or len({one.score for one in of_group}) < 4:
        return {}
    with _quiet():
        study = create_study(direction=plan.direction)
    for one in of_group:
        study.add_trial(create_trial(params=one.values, distributions=kinds, value=one.score))
    return get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))


def _distributions(over: Mapping[str, Range]) -> dict[str, optuna.distributions.BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def distribution(range: Range) -> optuna.distributions.BaseDistribution:
        if range.choices is not None:
            return CategoricalDistribution(range.choices)
        assert range.low is not None and range.high is not None
        if isinstance(range.low, int) and isinstance(range.high, int):
            return IntDistribution(range.low, range.high, log=range.log)
        return FloatDistribution(range.low, range.high, log=range.log)

    return {key: distribution(range) for key, range in over.items()}


def _tell(study: optuna.Study, suggestion: optuna.Trial, trial: Trial) -> None:
    from optuna.trial import TrialState

    if trial.score is None:
        study.tell(suggestion, state=TrialState.FAIL)
    else:
        study.tell(suggestion, trial.score)


def _score(folder: Path, metric: str, split: str) -> float:
    """Returns a metric as a run last evaluated it on a split: the mean over the clients whose own models were evaluated
    or, if none was, that of the global model or the mean over peers.

    Raises ScenarioError if it was not evaluated.
    """
    table = open_run(folder).table("evaluations", [*WHAT, *MOMENT, "value"])
    found = over_members(table.filter((pc.field("metric") == metric) & (pc.field("split") == split)))
    by_subject = (found.filter(pc.field("subject") == of) for of in ("client", "global", "peers"))
    values: list[Any] = next((of["value"].to_pylist() for of in by_subject if len(of)), [])
    if not values:
        measured = ", ".join(table["metric"].unique().to_pylist())
        text = f"must be one of {measured}, which these runs measure, got {metric!r}"
        raise ScenarioError("sweep", [Problem("search.metric", text)])
    return math.nan if values[-1] is None else float(values[-1])
