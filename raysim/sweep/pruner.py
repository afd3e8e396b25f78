"""Optuna's pruning of a trial's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.engine.progress import Progress
from raysim.parts.errors import StopRun
from raysim.sweep.settings import Search

if TYPE_CHECKING:
    import optuna


class Pruner:
    """Watches a run: reports its evaluations to Optuna, and stops it if it lags behind those of other trials.

    measured: the metrics that the run has instead, if it does not have that of the search.
    """

    def __init__(self, suggestion: optuna.Trial, settings: Search, before: int) -> None:
        """before: the number of rounds of the trial's earlier runs."""
        self._suggestion, self._settings, self._before = suggestion, settings, before
        self._reported = -1
        self.measured: tuple[str, ...] = ()

    def __call__(self, progress: Progress) -> None:
        if progress.evaluated is None:
            return
        metric = self._settings.metric
        if metric not in progress.metrics:
            self.measured = tuple(progress.metrics)
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
