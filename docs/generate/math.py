"""Equations as MathML, which browsers draw themselves: no script and no font is needed."""

from __future__ import annotations

import html
import re

FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def equations(page: str) -> str:
    """A page of HTML with MathML for the LaTeX that pymdownx.arithmatex has marked."""
    return FOUND.sub(lambda found: mathml(html.unescape(found[2]), display=found[1] == "div"), page)


def mathml(latex: str, *, display: bool) -> str:
    """Raises ValueError for a command that is not known, because it would be printed as it is."""
    from latex2mathml.converter import convert

    made = convert(latex.strip(), display="block" if display else "inline")
    if unknown := re.findall(r"\\\w*", made):
        raise ValueError(f"{latex}: must have commands that latex2mathml knows, got {', '.join(unknown)}")
    made = made.replace("<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>')  # bars of norms, else too long
    return f'<div class="equation">{made}</div>' if display else made
