"""A metric that is a function of the user's own."""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

from raysim.metrics.metric import Metric
from raysim.parts.own_function import Arguments, ImportPath, as_function, call, find, problems_of
from raysim.terms import Tensor


class FunctionMetric(Metric):
    """A function of your own, of all outputs and labels; "my_module:metric" is short for it."""

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


def metric_block(value: Any) -> Any:
    """Returns the block that the short form "my_module:metric" stands for, and any other value as it is."""
    return as_function(value, Metric, "label", "larger_is_better")
