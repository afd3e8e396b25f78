"""Tuning with Optuna: its sampler suggests values of keys, its pruner stops trials that lag behind.

Trials are suggested in batches whose size the scenario file fixes, and reported in their order; a trial's seeds run one
after another. So a search is a function of its file: how many runs are carried out side by side changes neither
suggestions nor pruning. An interrupted search that is started again suggests the same values. Its finished runs are not
run again, and the others continue from their checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from raysim.engine.checkpoint import Checkpoint
from raysim.observers.observer import Callback, Watcher
from raysim.parts.errors import DamagedCheckpoint, Problem, ScenarioError, StopRun
from raysim.runs.observing import observers_of
from raysim.runs.previous import EarlierRuns, OutOfDate
from raysim.scenario import Scenario
from raysim.sweep.batch import RunOutcome, attempt
from raysim.sweep.expand import Plan
from raysim.sweep.pruner import Pruner
from raysim.sweep.settings import Range, Search
from raysim.sweep.slots import Slots, open_slots
from results import NotARun, open_run
from results.location import location
from results.readings import MOMENT, WHAT, over_members

if TYPE_CHECKING:
    import optuna

STARTUP = 5  # first trials of a group, which are drawn at random and not pruned


class Trial(NamedTuple):
    """A suggestion that was tried, and its outcome."""

    group: int  # place of the group of scenarios, which differ only in their seeds
    number: int
    values: dict[str, Any]  # values of the tuned keys
    status: str  # finished, pruned, diverged or failed
    score: float | None  # mean over seeds; infinitely bad if it diverged; None if it was pruned or failed
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
    with open_slots(chosen, inline=inline, address=address, parallel=parallel) as slots:
        for group in range(groups):
            study = _study(plan, group)
            trier = _Trier(plan, settings, group, out, slots, earlier, observers)
            for first in range(0, settings.trials, settings.batch):
                number = min(settings.batch, settings.trials - first)
                asked = [study.ask(_distributions(settings.over)) for _ in range(number)]
                tried = {trial.number: trial for _, trial in slots.each(trier, asked)}
                for suggestion in asked:
                    _tell(study, suggestion, tried[suggestion.number])
                    yield tried[suggestion.number]


def best(trials: Sequence[Trial], plan: Plan) -> list[Trial]:
    """Returns the best finished trial of each group that has one."""
    finished = [trial for trial in trials if trial.score is not None and trial.status != "diverged"]
    groups = sorted({trial.group for trial in finished})
    return [_best_of((trial for trial in finished if trial.group == group), plan) for group in groups]


def _best_of(finished: Iterable[Trial], plan: Plan) -> Trial:
    """Returns the first of the best trials, which have scores."""
    return (max if plan.direction == "maximize" else min)(finished, key=lambda trial: trial.score or 0.0)


@dataclass(frozen=True)
class _Trier:
    """Tries suggestions for one group: runs its seeds one after another, unless one lags behind."""

    plan: Plan
    settings: Search
    group: int
    out: Path
    slots: Slots
    earlier: EarlierRuns
    observers: Sequence[Watcher]

    def __call__(self, suggestion: optuna.Trial) -> Trial:
        outcomes: list[RunOutcome] = []
        again: list[str] = []
        scores: list[float] = []
        rounds = 0  # values of this trial's earlier seeds
        for scenario in self.plan.groups(dict(suggestion.params))[self.group]:
            found = self.earlier.find(scenario)
            if isinstance(found, OutOfDate):
                again.append(found.why)
            folder = None if isinstance(found, OutOfDate) else found
            outcome = self._run(scenario, folder, suggestion, rounds)
            outcomes.append(outcome)
            if outcome.status in ("stopped", "diverged", "failed"):
                break
            assert outcome.folder is not None
            over, score_of_seed = _history(outcome.folder, self.settings.metric, scenario.evaluated_splits[0])[-1]
            scores.append(score_of_seed)
            rounds += scenario.run.rounds or over
        last = outcomes[-1].status
        status = {"stopped": "pruned", "diverged": "diverged", "failed": "failed"}.get(last, "finished")
        score = sum(scores) / len(scores) if status == "finished" else None
        if status == "diverged" or (score is not None and math.isnan(score)):
            status, score = "diverged", math.inf if self.plan.direction == "minimize" else -math.inf
        values = dict(suggestion.params)
        return Trial(self.group, suggestion.number, values, status, score, tuple(outcomes), tuple(again))

    def _run(self, scenario: Scenario, folder: Path | None, suggestion: optuna.Trial, rounds: int) -> RunOutcome:
        """Runs a scenario, or takes the results of an earlier run.

        folder: where the scenario has been run to its end before, or None. A run that ended early is resumed, after its
        evaluations so far have been reported to Optuna again. rounds: the sum over the trial's earlier runs.
        """
        early = None if folder else self.earlier.to_resume(scenario)
        of_run = self.settings.metric, scenario.evaluated_splits[0]
        pruner = Pruner(suggestion, self.settings, rounds)
        try:
            past = _history(folder, *of_run) if folder else _until_checkpoint(early, *of_run) if early else []
            for round, value in past:
                pruner.report(round, value)
        except StopRun as stop:
            return RunOutcome("stopped", folder or early, str(stop))
        except (DamagedCheckpoint, NotARun) as error:
            return RunOutcome("failed", early, str(error))
        if folder:
            run = open_run(folder)
            return RunOutcome("diverged" if run.status == "diverged" else "done before", folder, run.diverged)
        values = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in suggestion.params.items())
        label = f"{scenario.name}  trial {suggestion.number}: {values}, seed={scenario.seed}"
        observers = [Callback(pruner), *observers_of(scenario, self.observers, one_of_several=True)]
        outcome = attempt(self.slots, scenario, self.out, observers, early, label)
        if pruner.measured:
            raise _unmeasured(self.settings.metric, pruner.measured)
        return outcome


def _study(plan: Plan, seed: int) -> optuna.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage, name = plan.search.storage if plan.search else None, f"{plan.name}-{seed}"
    if storage and name in optuna.get_all_study_names(storage):
        optuna.delete_study(study_name=name, storage=storage)  # all trials are told again, earlier ones too
    return optuna.create_study(
        storage=storage,
        study_name=name,
        direction=plan.direction,
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP),
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

    if trial.status == "pruned":
        study.tell(suggestion, state=TrialState.PRUNED)
    elif trial.score is None:  # failed
        study.tell(suggestion, state=TrialState.FAIL)
    else:
        study.tell(suggestion, trial.score)


def _history(folder: Path, metric: str, split: str) -> list[tuple[int, float]]:
    """Returns (rounds over, value) of each evaluation of a run that is over.

    Raises ScenarioError if there is none, unless the run diverged.
    """
    found = _evaluated(folder, metric, split)
    if not found and (run := open_run(folder)).status != "diverged":
        raise _unmeasured(metric, run.table("evaluations", ["metric"])["metric"].unique().to_pylist())
    return found


def _until_checkpoint(folder: Path, metric: str, split: str) -> list[tuple[int, float]]:
    """Returns (rounds over, value) of each evaluation of a run that ended early, up to its checkpoint, if any."""
    checkpoint = Checkpoint.read(folder)
    return _evaluated(folder, metric, split, checkpoint.rows["evaluations"]) if checkpoint else []


def _evaluated(folder: Path, metric: str, split: str, rows: int | None = None) -> list[tuple[int, float]]:
    """Returns (rounds over, value) of evaluations on a split: those that `Progress` showed during the run.

    Values are means over the clients whose own models were evaluated or, if none was, those of the global model or
    means over peers.

    rows: how many rows of the table count; None: all.
    """
    run = open_run(folder)
    wanted = (pc.field("metric") == metric) & (pc.field("split") == split)
    found = over_members(run.table("evaluations", [*WHAT, *MOMENT, "value"]).slice(0, rows).filter(wanted))
    by_subject = {of: found.filter(pc.field("subject") == of) for of in ("client", "global", "peers")}
    shown: list[Any] = next((of_subject.to_pylist() for of_subject in by_subject.values() if len(of_subject)), [])
    over = run.info.get("totals", {}).get("rounds", math.inf)  # a run may end within a round, which is then not over
    diverged = run.info["diverged"]["round"] if run.status == "diverged" else math.inf  # it was not shown
    shown = [row for row in shown if row["round"] < diverged]
    values = [math.nan if row["value"] is None else row["value"] for row in shown]
    settings = run.info["scenario"]
    within = isinstance(settings["run"]["evaluate_every"], dict) and not settings.get("topology")
    # By virtual time, a server's model is evaluated within rounds, except for the last one.
    last = len(shown) - 1 if within and run.status == "finished" else -1 if within else None
    rounds = [row["round"] + (last is None or place == last) for place, row in enumerate(shown)]
    return [(min(round, over), value) for round, value in zip(rounds, values, strict=True)]


def _unmeasured(metric: str, measured: Iterable[str]) -> ScenarioError:
    text = f"must be one of {', '.join(measured)}, which these runs measure, got {metric!r}"
    return ScenarioError("sweep", [Problem("search.metric", text)])
