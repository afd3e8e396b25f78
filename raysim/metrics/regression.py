"""Metrics of regression: those of scikit-learn, also of several targets."""

from typing import Any, ClassVar

from raysim.metrics.metric import Metric
from raysim.terms import Tensor


class RMSE(Metric):
    """Root of the mean squared error of predicted targets; of several, the mean of that of each."""

    needs: ClassVar[str | None] = "targets"
    larger: ClassVar[bool] = False

    name: str = "rmse"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        return (outputs.double() - labels.double()).square().mean(0).sqrt().mean()


class MAE(Metric):
    """Mean absolute error of predicted targets."""

    needs: ClassVar[str | None] = "targets"
    larger: ClassVar[bool] = False

    name: str = "mae"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        return (outputs.double() - labels.double()).abs().mean()


class R2(Metric):
    """Coefficient of determination, the share of the targets' variance that predictions explain.

    Where samples have several targets, it is the mean of that of each. It is not defined where all values of a target
    are equal.
    """

    needs: ClassVar[str | None] = "targets"

    name: str = "r2"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        # Not by torchmetrics, which takes sums of squares below 1e-4 for 0, whatever the unit of the targets is.
        if bool((labels == labels[0]).all(0).any()):
            return float("nan")
        targets = labels.double()
        errors, spread = (targets - outputs.double()).square().sum(0), (targets - targets.mean(0)).square().sum(0)
        return (1 - errors / spread).mean()
