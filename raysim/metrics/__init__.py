"""Metrics of evaluations beside accuracy and loss. To add one, put it into `METRICS`."""

from raysim.metrics.classification import (
    AUROC,
    ECE,
    MCC,
    AveragePrecision,
    BalancedAccuracy,
    MacroF1,
    MacroPrecision,
    MacroRecall,
    TopK,
)
from raysim.metrics.function import FunctionMetric
from raysim.metrics.metric import Metric
from raysim.metrics.regression import MAE, R2, RMSE
from raysim.metrics.text import F1, ExactMatch, Perplexity

METRICS: tuple[type[Metric], ...] = (
    *(MacroF1, MacroPrecision, MacroRecall, BalancedAccuracy, TopK, AUROC, AveragePrecision, ECE, MCC),
    *(Perplexity, ExactMatch, F1, RMSE, MAE, R2, FunctionMetric),
)

__all__ = ["METRICS", "FunctionMetric", "Metric"]
