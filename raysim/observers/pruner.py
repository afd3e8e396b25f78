"""Optuna's pruning of a trial's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.engine.progress import Progress
from raysim.observers.observer import Observer
from raysim.parts.errors import StopRun

if TYPE_CHECKING:
    import optuna

    from raysim.sweep.settings import Search


class Pruner(Observer):
    """Reports a run's evaluations to Optuna, and stops the run if it lags behind those of other trials.

    measured: the metrics that the run has instead, if it does not have that of the search.
    """

    _suggestion: optuna.Trial
    _settings: Search
    _before: int
    _reported: int = -1
    _measured: tuple[str, ...] = ()

    def __init__(self, suggestion: optuna.Trial, settings: Search, before: int) -> None:
        """before: the number of rounds of the trial's earlier runs."""
        super().__init__()
        self._suggestion, self._settings, self._before = suggestion, settings, before

    @property
    def measured(self) -> tuple[str, ...]:
        return self._measured

    def progress(self, progress: Progress) -> None:
        if progress.evaluated is None:
            return
        metric = self._settings.metric
        if metric not in progress.metrics:
            self._measured = tuple(progress.metrics)
            raise StopRun(f"{metric} is not measured")
        self.report(progress.evaluated, progress.metrics[metric])

    def report(self, round: int, value: float) -> None:
        """Reports a value, unless one of this round was reported. Raises StopRun if the trial is to be pruned."""
        if round <= self._reported:
            return
        self._reported = round
        self._suggestion.report(value, self._before + round)
        if self._settings.prune and self._suggestion.should_prune():
            metric = self._settings.metric
            raise StopRun(f"pruned: {metric} {value:.4g} after round {round} is behind the median of other trials")
