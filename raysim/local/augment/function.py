"""Augmentation by a function of one's own."""

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

from raysim.data.named import shape_of
from raysim.local.augment.augmentation import Augmentation
from raysim.parts.own_function import Arguments, ImportPath, as_function, call, find, problems_of
from raysim.terms import Tensor


class AugmentFunction(Augmentation):
    """A function of your own, for any inputs, such as text and tables; "my_module:change" is short for it."""

    images: ClassVar[bool] = False

    name: str = "function"
    function: ImportPath
    """The function, such as my_module:change. It gets the inputs of a mini-batch, (n, ...), and returns others of the
    same shape."""
    args: Arguments = Field(default_factory=dict)
    """Its other arguments, by name."""

    def problems(self) -> Iterator[tuple[str, str]]:
        return problems_of(self.function, self.args)

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        changed: Tensor = call(find(self.function), x, given=self.args, offered={})
        if type(changed) is not type(x) or len(changed) != len(x) or shape_of(changed) != shape_of(x):
            got = getattr(changed, "shape", changed)
            raise ValueError(f"local.augment: must keep the inputs' shape {(len(x), *x.shape[1:])}, got {got!r}")
        return changed, y


def spelled(value: Any) -> Any:
    """Returns the block that the short form "my_module:change" stands for, and any other value as it is."""
    return as_function(value, Augmentation)
