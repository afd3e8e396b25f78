"""Metrics of classification, by torchmetrics."""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Literal

from raysim.metrics.metric import Metric
from raysim.parts.part import Count
from raysim.terms import Tensor


class ClassificationMetric(Metric):
    """The base of metrics of predicted probabilities."""

    library: ClassVar[str | None] = "torchmetrics"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        from torchmetrics.functional import classification

        probabilities = outputs.softmax(-1)
        if probabilities.isnan().any():  # the model has diverged, and torchmetrics would give any number
            return float("nan")
        with warnings.catch_warnings():  # of labels that do not occur; subclasses leave these out
            warnings.simplefilter("ignore")
            return self.of(probabilities, labels, outputs.shape[1], classification)

    @abstractmethod
    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        """Returns the metric, 0-d. probabilities: (n, classes), without NaN. labels: (n,). by: its functions."""


class MacroF1(ClassificationMetric):
    """F1 score, the mean over labels that occur or are predicted."""

    name: str = "macro_f1"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        return by.multiclass_f1_score(probabilities, labels, classes, "macro")


class MacroPrecision(ClassificationMetric):
    """Precision, the mean over labels that occur or are predicted."""

    name: str = "macro_precision"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        return by.multiclass_precision(probabilities, labels, classes, "macro")


class MacroRecall(ClassificationMetric):
    """Recall, the mean over labels that occur or are predicted."""

    name: str = "macro_recall"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        return by.multiclass_recall(probabilities, labels, classes, "macro")


class BalancedAccuracy(ClassificationMetric):
    """Recall, the mean over labels that occur."""

    name: str = "balanced_accuracy"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        recalls: Tensor = by.multiclass_recall(probabilities, labels, classes, "none")
        return recalls[labels.bincount(minlength=classes) > 0].mean()


class TopK(ClassificationMetric):
    """The fraction of samples whose label is among the two, three, five or ten most probable ones."""

    name: Literal["top2", "top3", "top5", "top10"] = "top5"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        most = min(int(self.name.removeprefix("top")), classes)
        return by.multiclass_accuracy(probabilities, labels, classes, "micro", most)


class AUROC(ClassificationMetric):
    """Area under the ROC curve of each label against the rest, the mean over labels that occur, but not alone."""

    name: str = "auroc"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        counts = labels.bincount(minlength=classes)
        areas: Tensor = by.multiclass_auroc(probabilities, labels, classes, "none")
        return areas[(counts > 0) & (counts < len(labels))].mean()  # NaN if there is none


class AveragePrecision(ClassificationMetric):
    """Average precision of each label against the rest, the mean over labels that occur."""

    name: str = "average_precision"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        precisions: Tensor = by.multiclass_average_precision(probabilities, labels, classes, "none")
        return precisions[labels.bincount(minlength=classes) > 0].mean()


class ECE(ClassificationMetric):
    """Expected calibration error: how far the probability of the predicted label is from the accuracy, on average."""

    larger: ClassVar[bool] = False

    name: str = "ece"
    bins: Count = 15
    """Number of bins of equal width, into which samples are sorted by that probability."""

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        below_one = 1 - 2**-24  # the last float32: torchmetrics gives probabilities of 1 a bin of their own
        bounded = probabilities.clamp_max(below_one)
        return by.multiclass_calibration_error(bounded, labels, classes, self.bins, "l1")


class MCC(ClassificationMetric):
    """Matthews' correlation coefficient of labels and predicted labels."""

    name: str = "mcc"

    def of(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        return by.multiclass_matthews_corrcoef(probabilities, labels, classes)
