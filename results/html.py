"""Tables of texts as HTML, for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape


class Bold(str):
    """A text of a table that stands out."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Returns a table. words: how many columns hold words, and are aligned left; those after them hold numbers."""

    def cell(tag: str, place: int, text: str) -> str:
        side = "left" if place < words else "right"
        shown = f"<b>{escape(text)}</b>" if isinstance(text, Bold) else escape(text)
        return f'<{tag} style="text-align: {side}; padding: 2px 8px">{shown}</{tag}>'

    head = "".join(cell("th", place, text) for place, text in enumerate(heads))
    body = "".join(f"<tr>{''.join(cell('td', place, text) for place, text in enumerate(row))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def heading(name: str, remark: str) -> str:
    """Returns a name, and a remark beside it."""
    return f"<div><b>{escape(name)}</b> {escape(remark)}</div>"


def text(content: str, title: str = "") -> str:
    """Returns a text as it is, below a title that unfolds it if there is one."""
    block = f"<pre>{escape(content)}</pre>"
    return f"<details><summary>{escape(title)}</summary>{block}</details>" if title else block
