"""The live page in a browser: it follows runs by itself, fits a phone and a desk, and is light or dark."""

import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from browser import CHROMIUM, chromium
from compared_runs import several
from PIL import Image
from reported_runs import made
from test_watch import HERE, rows

from results import write_json
from results.reader import Run
from results.serve import application

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """That of a server of seven runs, of which one goes on until it has been looked at."""
    several(tmp_path / "runs")
    going = made(tmp_path / "runs" / "going", rows(0.1, 0.2), {"run": {"rounds": 9}}, **HERE)
    app = application(tmp_path / "runs")

    async def end(request: web.Request, answer: web.StreamResponse) -> None:
        if request.path == "/live.js":  # the page itself has been made by then
            write_json(going, {**Run(going).info, "status": "finished"})

    app.on_response_prepare.append(end)
    loop, runner = asyncio.new_event_loop(), web.AppRunner(app)
    loop.run_until_complete(runner.setup())
    site = web.TCPSite(runner, "127.0.0.1", 0)
    loop.run_until_complete(site.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(runner.cleanup())
    loop.close()


def test_the_list_follows_runs_by_itself(address: str, tmp_path: Path) -> None:
    dumped = chromium(tmp_path, "--virtual-time-budget=8000", "--dump-dom", f"{address}/")
    assert "7 runs." in dumped and len(re.findall("<td>finished</td>", dumped)) == 7


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_list_fits_and_has_its_readers_colours(address: str, tmp_path: Path, width: int, scheme: str) -> None:
    """Nothing but the table, which can be scrolled, is as wide as the page."""
    shot, dark = tmp_path / "shot.png", scheme == "dark"
    preferred = f"--blink-settings=preferredColorScheme={int(not dark)}"
    chromium(tmp_path, preferred, f"--screenshot={shot}", f"--window-size={width},900", f"{address}/")
    pixels = np.asarray(Image.open(shot).convert("RGB"))
    assert pixels.shape == (900, width, 3)
    assert "#" + bytes(pixels[0, 0]).hex() == ("#ffffff", "#17181a")[dark]
    assert (pixels[:, -1] == pixels[0, 0]).all()
