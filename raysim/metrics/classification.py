"""Metrics of labels: of classification, by torchmetrics, and of texts, which keep little of a batch."""

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
            return self.score(probabilities, labels, outputs.shape[1], classification)

    @abstractmethod
    def score(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        """Returns the metric, 0-d. probabilities: (n, classes), without NaN. labels: (n,). by: its functions."""


class LabelMetric(ClassificationMetric):
    """The base of means over labels."""

    function: ClassVar[str]
    """The function of torchmetrics."""
    occurring: ClassVar[bool] = False
    """Whether the mean is over labels that occur; else it is over those that occur or are predicted."""

    def score(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        found = getattr(by, self.function)(probabilities, labels, classes, "none" if self.occurring else "macro")
        return found[self.counted(labels.bincount(minlength=classes))].mean() if self.occurring else found

    def counted(self, samples: Tensor) -> Tensor:
        """Returns which labels count where they have so many samples, bool (classes,)."""
        return samples > 0


class MacroF1(LabelMetric):
    """F1 score, the mean over labels that occur or are predicted."""

    function: ClassVar[str] = "multiclass_f1_score"

    name: str = "macro_f1"


class MacroPrecision(LabelMetric):
    """Precision, the mean over labels that occur or are predicted."""

    function: ClassVar[str] = "multiclass_precision"

    name: str = "macro_precision"


class MacroRecall(LabelMetric):
    """Recall, the mean over labels that occur or are predicted."""

    function: ClassVar[str] = "multiclass_recall"

    name: str = "macro_recall"


class BalancedAccuracy(LabelMetric):
    """Recall, the mean over labels that occur."""

    function: ClassVar[str] = "multiclass_recall"
    occurring: ClassVar[bool] = True

    name: str = "balanced_accuracy"


class AveragePrecision(LabelMetric):
    """Average precision of each label against the rest, the mean over labels that occur."""

    function: ClassVar[str] = "multiclass_average_precision"
    occurring: ClassVar[bool] = True

    name: str = "average_precision"


class AUROC(LabelMetric):
    """Area under the ROC curve of each label against the rest, the mean over labels that occur, but not alone."""

    function: ClassVar[str] = "multiclass_auroc"
    occurring: ClassVar[bool] = True

    name: str = "auroc"

    def counted(self, samples: Tensor) -> Tensor:
        return (samples > 0) & (samples < samples.sum())  # the mean is NaN if there is none


class TopK(ClassificationMetric):
    """The fraction of samples whose label is among the two, three, five or ten most probable ones."""

    name: Literal["top2", "top3", "top5", "top10"] = "top5"

    def score(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        most = min(int(self.name.removeprefix("top")), classes)
        return by.multiclass_accuracy(probabilities, labels, classes, "micro", most)


class ECE(ClassificationMetric):
    """Expected calibration error: how far the probability of the predicted label is from the accuracy, on average."""

    larger: ClassVar[bool] = False

    name: str = "ece"
    bins: Count = 15
    """Number of bins of equal width, into which samples are sorted by that probability."""

    def score(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        below_one = 1 - 2**-24  # the last float32: torchmetrics gives probabilities of 1 a bin of their own
        bounded = probabilities.clamp_max(below_one)
        return by.multiclass_calibration_error(bounded, labels, classes, self.bins, "l1")


class MCC(ClassificationMetric):
    """Matthews' correlation coefficient of labels and predicted labels."""

    name: str = "mcc"

    def score(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        return by.multiclass_matthews_corrcoef(probabilities, labels, classes)


class Perplexity(Metric):
    """The exponential of the mean negative log-probability of labels, such as of each next token."""

    larger: ClassVar[bool] = False
    keeps: ClassVar[str] = "log-probabilities"

    name: str = "perplexity"

    def reduced(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        outputs, labels = super().reduced(output, target)
        return outputs.log_softmax(-1).gather(1, labels[:, None])[:, 0], labels

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        found = outputs if outputs.ndim == 1 else self.reduced(outputs, labels)[0]
        return (-found.double().mean()).exp()


class ExactMatch(Metric):
    """The share of samples whose labels are all predicted, such as all tokens of an answer, each given those before."""

    keeps: ClassVar[str] = "matches"

    name: str = "exact_match"

    def reduced(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        from raysim.data.dataset import IGNORED
        from raysim.local.outputs import predicted

        right = (predicted(output, target).argmax(-1) == target) | (target == IGNORED)
        whole = right.reshape(len(target), -1).all(1)
        return whole.float(), whole.long()

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        found = outputs if outputs.ndim == 1 else self.reduced(outputs, labels)[0]
        return found.mean()


class F1(Metric):
    """F1 score of one label against all others: the harmonic mean of its precision and recall."""

    name: str = "f1"
    positive: int = 1
    """The label, by its number."""

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        predicted, true = outputs.argmax(1) == self.positive, labels == self.positive
        hits = (predicted & true).sum().double()
        return 2 * hits / (predicted.sum() + true.sum())  # NaN where nothing is positive
