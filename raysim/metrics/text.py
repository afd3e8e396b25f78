"""Metrics of texts, which keep little of a batch: outputs of all tokens of a vocabulary would not fit in memory."""

from typing import Any, ClassVar

from raysim.metrics.metric import Metric
from raysim.terms import Tensor


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
