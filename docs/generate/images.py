"""SVG files as parts of the pages that show them, in the colours of the style sheet, which has two for each."""

from __future__ import annotations

import html
import re
from pathlib import Path

from results import drawing as style

IMAGES = Path(__file__).parents[1] / "images"
FOUND = re.compile(r'<img alt="([^"]*)" src="[./]*images/([\w-]+)\.svg" ?/?>')
# Colours of figures that are not drawn by reports, by the names of variables in the style sheet.
OTHERS = {"#ffffff": "page", "#000000": "ink", "#1f77b4": "c0", "#ff7f0e": "c1", "#2ca02c": "c2", "#cccccc": "grid"}
USED = re.compile(r'(\bid="|\bxlink:href="#|\bhref="#|url\(#)')


def inlined(page: str) -> str:
    """A page of HTML with the SVG files themselves in the place of images."""
    return FOUND.sub(lambda found: _svg(found[2], html.unescape(found[1])), page)


def colours() -> str:
    """A style sheet with the variables that `inlined` uses, in the site's two schemes."""
    both = style.variables() | {"page": ("var(--md-default-bg-color)",) * 2}
    return "\n".join(
        f'[data-md-color-scheme="{scheme}"] {{ {" ".join(f"--{name}: {pair[i]};" for name, pair in both.items())} }}'
        for i, scheme in enumerate(("default", "slate"))
    )


def _svg(name: str, alt: str) -> str:
    text = (IMAGES / f"{name}.svg").read_text()
    text = re.sub(r"<style\b.*?</style>|<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' width="([\d.]+)(?:pt)?" height="[^"]*"', r' class="figure" style="max-width: \1pt"', text, count=1)
    text = USED.sub(rf"\g<1>{name}-", text)
    for colour, variable in OTHERS.items():
        text = text.replace(colour, f"var(--{variable})")
    title = "" if "<title>" in text else f"<title>{html.escape(alt)}</title>"
    for variable, (light, _) in style.variables().items():
        text = text.replace(light, f"var(--{variable})")
    return text.replace(style.FONT, "var(--font)").replace(">", f">{title}", 1)
