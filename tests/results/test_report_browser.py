"""The report in a browser: it fits a phone and a desk, takes on the colours of its reader, and fetches nothing."""

import json
import re
from pathlib import Path

import pytest
from browser import CHROMIUM, chromium
from conftest import digits
from PIL import Image
from reported_runs import made, peers

import raysim
from results import load, style
from results.report import report

PAGES = ["clients", "peers"]

# Forbids all requests; unfolds what is folded; tells the frame around it what it measured.
MEASURE = """<head>
<meta http-equiv="Content-Security-Policy" content="default-src 'unsafe-inline'; img-src data:">
<style>.tabs > div { display: block !important; }</style>
<script>
const blocked = [];
document.addEventListener("securitypolicyviolation", event => blocked.push(event.blockedURI));
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(details => details.open = true);
  const seen = [...document.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width);
  const letters = seen.flatMap(svg => [...svg.querySelectorAll("text")].map(text =>
    parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width));
  parent.postMessage({
    width: innerWidth,
    needed: document.documentElement.scrollWidth,
    letters: Math.min(...letters),
    figures: document.querySelectorAll("figure").length,
    blocked: blocked,
    shaded: [...document.querySelectorAll("td.note")].filter(cell =>
      cell.getBoundingClientRect().right > cell.closest(".scroll").getBoundingClientRect().right - 12).length,
    over: [...document.querySelectorAll("td")].filter(cell => cell.scrollWidth > cell.clientWidth + 1).length,
  }, "*");
});
</script>"""
FRAME = """<iframe src="page.html" width="{width}" height="2000" style="border: 0"></iframe><pre></pre><script>
onmessage = message => document.querySelector("pre").textContent = JSON.stringify(message.data);
</script>"""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]


@pytest.fixture(scope="module")
def html(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of real runs with clients' own models, or of runs of peers, several of them with long names."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "clients":
        for algorithm in ("fedavg", "fedbuff"):
            raw = digits(algorithm=algorithm, data__local_test=0.2, run__evaluate_clients=10)
            raysim.run(raw, out=folder, inline=True, progress=False)
    else:
        for place in range(9):
            name = f"an_algorithm_with_quite_a_long_name_{place}"
            made(folder / f"run-{place}", peers(6), {"name": name, "algorithm": {"name": name, "x": place}})
    return report(load(folder)).html


@pytest.mark.parametrize("html", PAGES, indirect=True)
def test_a_page_fits_every_width_and_fetches_nothing(html: str, tmp_path: Path) -> None:
    """In a frame, since a browser's own window cannot be as narrow as a phone."""
    (tmp_path / "page.html").write_text(html.replace("<head>", MEASURE))
    for width in (390, 1280):
        frame = tmp_path / "frame.html"
        frame.write_text(FRAME.format(width=width))
        dumped = chromium(tmp_path, "--virtual-time-budget=5000", "--dump-dom", frame.as_uri())
        found = json.loads(re.findall(r"<pre>(.*)</pre>", dumped)[0])
        assert found["width"] == width >= found["needed"]
        assert found["letters"] >= 7  # pixels
        assert found["figures"] == html.count("<figure ")
        assert found["blocked"] == []
        assert found["over"] == 0  # cells printed over their neighbours
        assert found["shaded"] == 0  # reasons that reach into the shadow of what scrolls


@pytest.mark.parametrize("html", PAGES[1:], indirect=True)
@pytest.mark.parametrize(("scheme", "which"), [("light", 0), ("dark", 1)])
def test_a_page_is_light_or_dark_as_its_reader_likes(html: str, tmp_path: Path, scheme: str, which: int) -> None:
    """The first lines of figures have the colours that are meant for the background."""
    (tmp_path / "page.html").write_text(html)
    shot = tmp_path / "shot.png"
    preferred = f"--blink-settings=preferredColorScheme={1 - which}"
    page = (tmp_path / "page.html").as_uri()
    chromium(tmp_path, preferred, f"--screenshot={shot}", "--window-size=1280,2500", page)
    image = Image.open(shot).convert("RGB")
    colours = {"#" + bytes(colour).hex() for _, colour in image.getcolors(image.width * image.height)}
    assert "#" + bytes(image.getpixel((0, 0))).hex() == ("#ffffff", "#17181a")[which]
    for pair in style.SERIES[:5]:
        assert pair[which] in colours and pair[1 - which] not in colours
