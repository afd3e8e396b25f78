"""A metric: say here where it is defined."""

from raysim.metrics import Metric
from raysim.parts.part import Fraction
from raysim.terms import Tensor


class MetricTemplate(Metric):
    """The share of samples for which one label is more probable than a threshold."""

    name: str = "template"
    threshold: Fraction = 0.5
    """Probability above which a prediction counts."""

    @property
    def direction(self) -> bool | None:  # whether larger values are better; None: comparisons mark no best value
        return True

    def compute(self, outputs: Tensor, labels: Tensor) -> Tensor:
        # outputs: logits of all samples of a split, (n, classes); labels: (n,). Return NaN where it is not defined.
        return (outputs.softmax(1).amax(1) > self.threshold).float().mean()
