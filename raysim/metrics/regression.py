"""Metrics of regression, by torchmetrics where it is exact."""

from typing import Any, ClassVar

from raysim.metrics.metric import Metric
from raysim.terms import Tensor


class RMSE(Metric):
    """Root of the mean squared error of predicted targets."""

    needs: ClassVar[str | None] = "targets"
    library: ClassVar[str | None] = "torchmetrics"
    larger: ClassVar[bool] = False

    name: str = "rmse"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        from torchmetrics.functional import mean_squared_error

        return mean_squared_error(outputs, labels, squared=False)


class MAE(Metric):
    """Mean absolute error of predicted targets."""

    needs: ClassVar[str | None] = "targets"
    library: ClassVar[str | None] = "torchmetrics"
    larger: ClassVar[bool] = False

    name: str = "mae"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        from torchmetrics.functional import mean_absolute_error

        return mean_absolute_error(outputs, labels)


class R2(Metric):
    """Coefficient of determination, the share of the targets' variance that predictions explain.

    It is not defined where all targets are equal.
    """

    needs: ClassVar[str | None] = "targets"

    name: str = "r2"

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        # Not by torchmetrics, which takes sums of squares below 1e-4 for 0, whatever the unit of the targets is.
        if bool((labels == labels[0]).all()):
            return float("nan")
        targets = labels.double()
        errors, spread = (targets - outputs.double()).square().sum(), (targets - targets.mean()).square().sum()
        return 1 - errors / spread
