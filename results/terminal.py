"""The terminal, on which texts of a run's files are shown, and do nothing."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from results.texts import harmless


class Terminal(Console):
    """A console that shows control characters in texts, and sends none but its own.

    A stranger's run may name its metrics with characters that move the cursor or turn the direction of letters.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            control: Any = segment.control
            yield segment if control else segment._replace(text=harmless(segment.text))
