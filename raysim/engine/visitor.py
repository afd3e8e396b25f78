"""The one way through a timeline. Runs, dry runs, checks and estimates are visitors of what happens on it."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

HappenedT = TypeVar("HappenedT")


class Visitor:
    """Follows a timeline. It has a method for each kind of happening that matters to it, such as `stepped`.

    The method has the name of the happening's class in lower case, as with `ast.NodeVisitor`.
    """

    def visit(self, happening: Any, *given: Any) -> Any:
        """Returns what the method for a happening returns; None without one. given: what else the method gets."""
        method = getattr(self, type(happening).__name__.lower(), None)
        return method(happening, *given) if method else None

    def follow(self, timeline: Iterable[HappenedT]) -> Iterator[HappenedT]:
        """Visits what happens on a timeline, and yields each happening after that."""
        for happening in timeline:
            self.visit(happening)
            yield happening
