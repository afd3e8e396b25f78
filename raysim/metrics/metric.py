"""The base of metrics, and those that are a function of a user's own. Importing one loads no torch."""

import math
import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

from pydantic import Field

from raysim.local.outputs import per_label
from raysim.parts.errors import BadInput
from raysim.parts.own import place_of
from raysim.parts.own_function import Arguments, ImportPath, call, find, problems_of
from raysim.parts.part import Part
from raysim.terms import Tensor


class Metric(Part):
    """A number for all outputs of one model on one split. A subclass adds its `name`."""

    needs: ClassVar[str | None] = "labels"
    """What the data must have: labels, several labels, each 0 or 1, "labels or several labels", or targets; None: any
    will do."""
    library: ClassVar[str | None] = None
    """The package that computes it, if it is an optional one."""
    larger: ClassVar[bool] = True
    """Whether larger values are better."""
    keeps: ClassVar[str] = "all"
    """What `reduced` leaves of a batch. Metrics that name the same share it."""

    name: str

    @property
    def title(self) -> str:
        """Its name in the tables. For a class that the scenario names as module:Class, it is the name of the class."""
        return self.name.rpartition(":")[2]

    @property
    def direction(self) -> bool | None:
        """Whether larger values are better; None if that is not known."""
        return self.larger

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yields (key, what is wrong with it), whatever the data are."""
        yield from ()

    def reduced(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Returns what `compute` needs of a batch, as its arguments, which are joined over all batches.

        output, target: as of a module and its data.
        """
        outputs, labels = per_label(output, target)
        return outputs.float(), labels

    @abstractmethod
    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        """Returns the metric, a float or 0-d tensor; NaN where it is not defined.

        outputs, labels: what `reduced` returns, joined over all batches and on the CPU. By default: logits or
        log-probabilities, (n, classes) float32, or predictions of data without labels; and labels (n,) int64, several
        of 0 or 1, (n, labels) float32, or targets (n,) or (n, targets) float32.
        """

    def value(self, outputs: Tensor, labels: Tensor) -> float | None:
        """Returns the metric; None where it is not defined. Raises BadInput if `compute` returns anything but a
        number."""
        found, number = self.compute(outputs, labels), None
        with suppress(TypeError, ValueError, RuntimeError, OverflowError):
            number = float(found) if not isinstance(found, str | bytes) else None  # float would read "0.5"
        if number is None:
            place = place_of(find(self.function) if isinstance(self, FunctionMetric) else type(self).compute)
            shape = f"a tensor of shape {tuple(found.shape)}" if getattr(found, "shape", ()) else repr(found)
            text = f"{self.title} must give one number, got {shape}{place}"
            raise BadInput("run.metrics", text)
        return None if math.isnan(number) else number


class FunctionMetric(Metric):
    """A custom function, of all outputs and labels; "my_module:metric" is short for it."""

    needs: ClassVar[str | None] = None

    name: str = "function"
    function: ImportPath
    """The function, such as my_module:metric. It gets all outputs of a model on a split, (n, classes), and the labels,
    (n,), as tensors, and returns a number; NaN where the metric is not defined."""
    args: Arguments = Field(default_factory=dict)
    """Its other arguments, by name."""
    label: str | None = None
    """The metric's name in the tables. null: the function's."""
    larger_is_better: bool | None = None
    """Whether larger values are better. null: the function's attribute `larger_is_better`; without that, comparisons
    mark no best value."""

    @property
    def title(self) -> str:
        return self.label or re.split(r"[:.]", self.function)[-1]

    @property
    def direction(self) -> bool | None:
        if self.larger_is_better is not None:
            return self.larger_is_better
        found = getattr(find(self.function), "larger_is_better", None)
        return None if found is None else bool(found)

    def problems(self) -> Iterator[tuple[str, str]]:
        return problems_of(self.function, self.args)

    def compute(self, outputs: Tensor, labels: Tensor) -> Any:
        return call(find(self.function), outputs, labels, given=self.args, offered={})


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
