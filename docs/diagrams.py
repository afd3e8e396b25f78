"""Draws the diagrams of these pages as SVG files: `python docs/diagrams.py`."""

from html import escape
from pathlib import Path

from results import drawing as style

IMAGES = Path(__file__).parent / "images"
BLUE, ORANGE, GREEN = (style.colour(place) for place in range(3))
INK, GREY, PALE = style.INK[0], style.MUTED[0], style.GRID[0]  # which the site turns into colours of its own
TEXT = {  # attributes of text, for the site leaves out style sheets of figures
    "": f'font-size="13" fill="{INK}"',
    "title": f'font-size="13" font-weight="bold" fill="{INK}"',
    "small": f'font-size="11" fill="{GREY}"',
}
DASHED = 'stroke-dasharray="6 4"'
ARROWHEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0 L8 4 L0 8 z" fill="{GREY}"/></marker>'
)


class Drawing:
    """Shapes on a white page, in the order in which they are added."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.shapes: list[str] = []

    def box(self, x: int, y: int, width: int, height: int, lines: list[str], color: str = BLUE) -> None:
        """A box with lines of text in its middle, the first of them bold."""
        frame = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{color}" fill-opacity="0.08"'
        self.shapes.append(f'<rect {frame} stroke="{color}" stroke-width="1.3"/>')
        top = y + height // 2 - 8 * (len(lines) - 1) + 4
        for place, line in enumerate(lines):
            self.text(x + width // 2, top + 16 * place, line, "small" if place else "title", "middle")

    def text(self, x: int, y: int, line: str, kind: str = "small", anchor: str = "start") -> None:
        self.shapes.append(f'<text x="{x}" y="{y}" {TEXT[kind]} text-anchor="{anchor}">{escape(line)}</text>')

    def line(self, points: list[tuple[int, int]], color: str = GREY, width: float = 1.3, more: str = "") -> None:
        path = " ".join(f"{x},{y}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}" {more}/>')

    def arrow(self, *points: tuple[int, int]) -> None:
        self.line(list(points), more='marker-end="url(#head)"')

    def dot(self, x: int, y: int, color: str) -> None:
        self.shapes.append(f'<circle cx="{x}" cy="{y}" r="4.5" fill="{color}"/>')

    def save(self, name: str) -> None:
        width, height = self.size
        body = "\n".join(self.shapes)
        (IMAGES / f"{name}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" font-family="{style.FONT}"><title>{escape(self.title)}</title><defs>{ARROWHEAD}</defs>\n'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
        )


def way_of_the_data() -> None:
    """From the scenario file to the report."""
    d = Drawing(860, 250, "The way of the data: scenario file, timeline, jobs, workers, tables, report")
    d.box(20, 30, 130, 60, ["scenario file", "YAML"])
    d.box(190, 30, 130, 60, ["scenario", "checked, frozen"])
    d.box(360, 30, 150, 60, ["timeline", "who, when, version"])
    d.box(360, 160, 150, 60, ["engine", "hands out, writes"])
    d.box(590, 30, 250, 60, ["client workers", "train chunks of clients, evaluate"], GREEN)
    d.box(590, 105, 250, 50, ["server workers", "steps, searches"], GREEN)
    d.box(190, 160, 130, 60, ["tables", "Parquet, run.json"], ORANGE)
    d.box(20, 160, 130, 60, ["report", "HTML, figures"], ORANGE)
    for start, end in ((150, 190), (320, 360)):
        d.arrow((start, 60), (end, 60))
    d.arrow((435, 90), (435, 160))
    d.text(427, 130, "what happens, in order", anchor="end")
    d.arrow((510, 178), (550, 178), (550, 60), (590, 60))
    d.arrow((550, 130), (590, 130))
    d.text(555, 198, "jobs out, small rows back;")
    d.text(555, 213, "models and states do not pass through it")
    d.arrow((360, 190), (320, 190))
    d.arrow((190, 190), (150, 190))
    d.text(20, 18, "needs neither Ray nor data")
    d.line([(20, 22), (320, 22)], GREY, 0.8, DASHED)
    d.text(360, 18, "needs no tensors")
    d.line([(360, 22), (510, 22)], GREY, 0.8, DASHED)
    d.save("way-of-the-data")


def one_update() -> None:
    """From a client's update to the server's step, and to a row."""
    d = Drawing(860, 330, "One update, from the client to the server's step and to a row of a table")
    d.box(20, 30, 190, 60, ["dispatched", "client 7, version 41, number 3"])
    d.box(20, 130, 190, 60, ["update(task, ...)", "local training of one client"], GREEN)
    d.box(270, 130, 190, 60, ["sum of a chunk", "weight * update, in order"], GREEN)
    d.box(520, 130, 190, 60, ["step(state, ..., updates)", "sum of chunks → version 45"], GREEN)
    d.box(270, 30, 190, 60, ["weigh(arrivals)", "before anything is trained"])
    d.box(270, 240, 190, 60, ["row of table updates", "loss, bytes, staleness ..."], ORANGE)
    d.box(520, 240, 190, 60, ["writer", "buffers rows, keeps order"], ORANGE)
    d.box(755, 240, 90, 60, ["Parquet", "updates/"], ORANGE)
    d.arrow((115, 90), (115, 130))
    d.text(122, 114, "message of version 41")
    d.arrow((210, 60), (270, 60))
    d.arrow((365, 90), (365, 130))
    d.text(372, 114, "weight of each update")
    d.arrow((210, 160), (270, 160))
    d.text(215, 151, "update")
    d.arrow((460, 160), (520, 160))
    d.text(465, 151, "one sum")
    d.arrow((710, 160), (780, 160))
    d.text(722, 151, "message 45")
    d.arrow((180, 190), (180, 270), (270, 270))
    d.text(188, 262, "measures")
    d.text(20, 212, "the state after it is kept")
    d.text(20, 227, "if the step uses the")
    d.text(20, 242, "update")
    d.arrow((460, 270), (520, 270))
    d.arrow((710, 270), (755, 270))
    d.arrow((615, 190), (615, 240))
    d.text(622, 220, "once the step is done")
    d.save("one-update")


def virtual_time() -> None:
    """Dispatches, arrivals, steps, versions and staleness of three clients."""
    d = Drawing(860, 260, "Virtual time: dispatches, arrivals and server steps of three clients")
    left, unit, top = 110, 115, 60
    for round in range(7):
        x = left + unit * round
        d.line([(x, 40), (x, 210)], PALE, 1)
        if round < 6:
            d.text(x + unit // 2, 32, f"round {round}", anchor="middle")
    flights = [("client 3", 0, [(0, 2, BLUE, "version 0"), (4, 5, BLUE, "version 1")])]
    flights += [("client 8", 1, [(0, 1, BLUE, "version 0"), (3, 6, GREY, "version 1")])]
    flights += [("client 5", 2, [(1, 4, BLUE, "version 0")])]
    for name, row, dispatches in flights:
        y = top + 45 * row
        d.text(20, y + 4, name, "")
        for start, end, color, label in dispatches:
            x, last = left + unit * start + 6, left + unit * end + 6
            d.line([(x, y), (last, y)], color, 4, DASHED if color == GREY else "")
            d.dot(x, y, color)
            d.dot(last, y, color)
            d.text(x + 8, y - 8, label)
    for x, label in ((left + unit * 2 + 6, "step → version 1"), (left + unit * 5 + 6, "step → version 2")):
        d.line([(x, 45), (x, 225)], ORANGE, 1.6)
        d.text(x + 5, 222, label)
    d.text(
        20, 248, "A buffer of two. The update of client 5 arrives three rounds after its dispatch: its staleness is 3."
    )
    d.save("virtual-time")


if __name__ == "__main__":
    way_of_the_data()
    one_update()
    virtual_time()
