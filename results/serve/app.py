"""The pages: the list of runs, the curves of chosen runs, which follow those that go on, and their whole report."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from results.info import NotARun
from results.listing import labels
from results.load import Folder, readable
from results.measure import NotComparable
from results.reader import NoRuns
from results.report.page import filled, report
from results.report.sections import CURVES, SECTIONS
from results.runs import Runs
from results.serve.guard import Guard
from results.views import View

_LINE = 2**17  # bytes of an address, at most: it names the chosen runs


def application(folder: Path, guard: Guard) -> web.Application:
    """Makes the server of a folder's pages. It reads only what the folder holds, and answers nothing but GET."""
    app = web.Application(middlewares=[guard.middleware], handler_args={"max_line_size": _LINE})
    runs, maker = Folder(folder), ThreadPoolExecutor(1)  # one page at a time: threads share matplotlib's settings

    def answering(make: Callable[[Folder, web.Request], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                html = await asyncio.get_running_loop().run_in_executor(maker, make, runs, request)
            except (NotARun, NotComparable, OSError) as error:
                return web.Response(status=404, text=f"{error}\n")
            return web.Response(text=html, content_type="text/html")

        return answer

    for path, make in (("/", _list), ("/runs", _report), ("/report", _report)):
        app.router.add_get(path, answering(make))
    app.router.add_get("/live.js", _script)
    return app


async def _script(_: web.Request) -> web.Response:
    text = files("results.serve").joinpath("live.js").read_text(encoding="utf-8")
    return web.Response(text=text, content_type="text/javascript")


def _list(runs: Folder, request: web.Request) -> str:
    """The list of the runs whose path, status or differing keys hold all words that are asked for."""
    every: list[View] = []
    with suppress(NoRuns):
        every = runs.look()
    words, names = request.query.get("q", "").lower().split(), labels(every)
    texts = {one.path: f"{one.path} {one.status} {names.get(one.path, '')}".lower() for one in every}
    views = [one for one in every if all(word in texts[one.path] for word in words)]
    asked = {"words": request.query.get("q", ""), "number": len(every), "names": names}
    return filled("serve/list.html.j2", title=str(runs.folder), views=views, **asked)


def _report(runs: Folder, request: web.Request) -> str:
    """The report of chosen runs, as `raysim report` writes it; at /runs, only its curves."""
    chosen = request.query.getall("run", [])
    views = [one for one in runs.look() if one.path in chosen]
    if not views:
        raise NotARun(f"{runs.folder}: must hold the runs that are asked for, got none")
    notes = [f"{one.path}: {one.why}; left out" for one in views if not one.readable]
    more: dict[str, Any] = {
        "template": "serve/chosen.html.j2",
        "going": [one for one in views if one.status.goes_on],
        "query": urlencode([("run", path) for path in chosen]),
        "notes": notes,
    }
    sections = (CURVES,) if request.path == "/runs" else SECTIONS
    found = Runs([one.run for one in readable(views) if one.run])
    return report(found, sections=sections, **more).html
