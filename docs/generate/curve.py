"""A learning curve as SVG within a page, in the page's own colours."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 240, 44, 14, 96, 34  # of the drawing, and margins within it


class Line(NamedTuple):
    """Values of a line from left to right, and what is written at its end."""

    label: str
    x: list[float]
    y: list[float]  # between 0 and 1


def curve(line: Line, beside: Line | None, x_label: str, y_label: str) -> str:
    """A figure of one line, with another one beside it in grey."""
    most = line.x[-1]
    out = [f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
    out.append(f"<title>{escape(f'{y_label} of {line.label} against {x_label}')}</title>")
    for share in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path class="grid" d="M{_x(0)} {_y(share)}H{_x(1)}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{_y(share) + 4}" text-anchor="end">{share:g}</text>')
    for share in (0, 0.5, 1):
        out.append(f'<text x="{_x(share)}" y="{_y(0) + 16}" text-anchor="middle">{share * most:g}</text>')
    out.append(f'<text x="{_x(0.75)}" y="{_y(0) + 16}" text-anchor="middle">{escape(x_label)}</text>')
    out.append(f'<text x="{_x(0) + 6}" y="{_y(1) + 13}">{escape(y_label)}</text>')
    ends = [_y(one.y[-1]) + 4 for one in (line, beside) if one]
    if beside and abs(ends[0] - ends[1]) < 15:  # labels that would lie on each other
        lower = 0 if ends[0] > ends[1] else 1
        middle = min(sum(ends) / 2, _y(0) - 8)
        ends[lower], ends[1 - lower] = middle + 7.5, middle - 7.5
    for one, kind, end in zip((line, beside), ("line", "beside"), ends, strict=False):
        if one:
            points = " ".join(f"{_x(x / most):.4g},{_y(y):.4g}" for x, y in zip(one.x, one.y, strict=True))
            out.append(f'<polyline class="{kind}" points="{points}"/>')
            out.append(f'<text class="{kind}" x="{_x(1) + 6}" y="{end:.4g}">{escape(one.label)}</text>')
    return "".join([*out, "</svg>"])


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)
