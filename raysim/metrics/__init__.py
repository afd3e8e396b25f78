"""Metrics of evaluations in addition to accuracy and loss. To add one, put it into `METRICS`."""

from raysim.metrics.classification import (
    AUROC,
    ECE,
    F1,
    MCC,
    AveragePrecision,
    BalancedAccuracy,
    Dice,
    ExactMatch,
    IoU,
    Macro,
    Perplexity,
    TopK,
)
from raysim.metrics.metric import MAE, R2, RMSE, FunctionMetric, Metric

METRICS: tuple[type[Metric], ...] = (
    *(Macro, BalancedAccuracy, TopK, AUROC, AveragePrecision, ECE, MCC),
    *(Perplexity, ExactMatch, F1, IoU, Dice, RMSE, MAE, R2, FunctionMetric),
)

__all__ = ["METRICS", "FunctionMetric", "Metric"]
