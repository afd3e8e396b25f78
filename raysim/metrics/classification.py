"""Metrics of labels: of classification, by torchmetrics, and of texts, which keep little of a batch."""

import warnings
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from raysim.data.dataset import IGNORED
from raysim.local.outputs import by_target, predicted
from raysim.metrics.metric import Metric
from raysim.parts.part import Count
from raysim.terms import Tensor


class ClassificationMetric(Metric):
    """The base of metrics of predicted probabilities."""

    library: ClassVar[str | None] = "torchmetrics"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        from torchmetrics.functional import classification

        several = labels.is_floating_point()
        probabilities = outputs.double().sigmoid() if several else outputs.softmax(-1)
        if probabilities.isnan().any():  # the model has diverged, and torchmetrics would give any number
            return float("nan")
        with warnings.catch_warnings(action="ignore"):  # of labels that do not occur; subclasses leave these out
            return self.score(probabilities, labels, outputs.shape[1], classification)

    @abstractmethod
    def score(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        """Returns the metric, 0-d. probabilities: (n, classes), without NaN. labels: (n,), or several of 0 or 1, (n,
        classes) float32. by: torchmetrics' functions."""


class LabelMetric(ClassificationMetric):
    """The base of means over labels."""

    needs: ClassVar[str | None] = "labels or several labels"
    occurring: ClassVar[bool] = False
    """Whether the mean is over labels that occur; else it is over those that occur or are predicted or, where samples
    have several labels, over all."""

    @property
    def function(self) -> str:
        """The function of torchmetrics, without the kind of its labels."""
        return self.name

    def score(self, probabilities: Tensor, labels: Tensor, classes: int, by: Any) -> Any:
        several, mean = labels.is_floating_point(), "none" if self.occurring else "macro"
        kind = "multilabel" if several else "multiclass"
        found = getattr(by, f"{kind}_{self.function}")(probabilities, labels.long(), classes, average=mean)
        if not self.occurring:
            return found
        samples = labels.sum(0) if several else labels.bincount(minlength=classes)
        return found[self.counted(samples, len(labels))].mean()

    def counted(self, samples: Tensor, of_all: int) -> Tensor:
        """Returns which labels count where they have so many samples of all, bool (classes,)."""
        return samples > 0


class Macro(LabelMetric):
    """F1 score, precision or recall, the mean over labels that occur or are predicted."""

    name: Literal["macro_f1", "macro_precision", "macro_recall"] = "macro_f1"

    @property
    def function(self) -> str:
        return "f1_score" if self.name == "macro_f1" else self.name.removeprefix("macro_")


class BalancedAccuracy(LabelMetric):
    """Recall, the mean over labels that occur."""

    function: ClassVar[str] = "recall"
    needs: ClassVar[str | None] = "labels"
    occurring: ClassVar[bool] = True

    name: str = "balanced_accuracy"


class AveragePrecision(LabelMetric):
    """Average precision of each label against the rest, the mean over labels that occur."""

    occurring: ClassVar[bool] = True

    name: str = "average_precision"


class AUROC(LabelMetric):
    """Area under the ROC curve of each label against the rest, the mean over labels that occur, but not alone."""

    occurring: ClassVar[bool] = True

    name: str = "auroc"

    def counted(self, samples: Tensor, of_all: int) -> Tensor:
        return (samples > 0) & (samples < of_all)  # the mean is NaN if there is none


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
        below_one = 1 - 2**-24  # the last float32: torchmetrics gives probabilities of 1 a separate bin
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
        return (-outputs.double().mean()).exp()


class ExactMatch(Metric):
    """The share of samples whose labels are all predicted, such as all tokens of an answer, each given those before."""

    needs: ClassVar[str | None] = "labels or several labels"
    keeps: ClassVar[str] = "matches"

    name: str = "exact_match"

    def reduced(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if target.is_floating_point():
            right = (by_target(output, target) > 0) == (target > 0.5)
        else:
            right = (predicted(output, target).argmax(-1) == target) | (target == IGNORED)
        whole = right.reshape(len(target), -1).all(1)
        return whole.float(), whole.long()

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        return outputs.mean()


class F1(Metric):
    """F1 score of one label against all others: the harmonic mean of its precision and recall."""

    name: str = "f1"
    positive: int = 1
    """The label, by its number."""

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        predicted, true = outputs.argmax(1) == self.positive, labels == self.positive
        hits = (predicted & true).sum().double()
        return 2 * hits / (predicted.sum() + true.sum())  # NaN where nothing is positive


class IoU(Metric):
    """Intersection over union of each label's predictions and places, the mean over labels (the Jaccard index).

    Labels that neither occur nor are predicted do not count or, where samples have several labels, count as 0.
    """

    needs: ClassVar[str | None] = "labels or several labels"
    keeps: ClassVar[str] = "predictions"

    name: str = "iou"
    ignore: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Labels, by their numbers, that are left out of the mean, such as that of the background."""

    def reduced(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        outputs, labels = super().reduced(output, target)
        if labels.is_floating_point():
            return outputs > 0, labels
        return outputs.argmax(-1).masked_fill(outputs.isnan().any(-1), -1), labels  # -1: no label

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        if several := labels.is_floating_point():
            true = labels > 0.5
            hits, sizes = (outputs & true).sum(0), outputs.sum(0) + true.sum(0)
        else:
            most = int(max(outputs.max(), labels.max())) + 1
            hits = labels[outputs == labels].bincount(minlength=most)
            sizes = outputs[outputs >= 0].bincount(minlength=most) + labels.bincount(minlength=most)
        counts = (sizes > 0) | several
        counts[[one for one in self.ignore if one < len(counts)]] = False
        return self.share(hits.double(), sizes)[counts].nan_to_num().mean()

    def share(self, hits: Tensor, sizes: Tensor) -> Tensor:
        """Returns the metric of each label, (labels,); NaN where it has no places. sizes: its predictions and places
        together."""
        return hits / (sizes - hits)


class Dice(IoU):
    """Dice coefficient of each label, twice the intersection over the sum of both sizes, the mean over labels; as F1.

    Labels that neither occur nor are predicted do not count or, where samples have several labels, count as 0.
    """

    name: str = "dice"

    def share(self, hits: Tensor, sizes: Tensor) -> Tensor:
        return 2 * hits / sizes
