"""The pages: the list of sweeps and runs, curves of chosen runs, which follow those that continue, and their report."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from results.groups import grouped
from results.info import NotARun
from results.load import Folder, readable
from results.measure import NotComparable
from results.reader import NoRuns
from results.report.page import filled, headline, report
from results.report.sections import CURVES, SECTIONS
from results.runs import Runs
from results.views import View, labels, states

_LINE = 2**17  # bytes of an address, at most: it names the chosen runs
# Nothing is fetched from elsewhere, no script but the page's own file runs, and no other page holds this one.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def application(folder: Path) -> web.Application:
    """Makes the server of a folder's pages. It reads only what the folder holds, and answers nothing but GET."""
    app = web.Application(middlewares=[guarded], handler_args={"max_line_size": _LINE})
    runs, maker = Folder(folder), ThreadPoolExecutor(1)  # one page at a time: threads share matplotlib's settings

    def answering(make: Callable[[Folder, web.Request], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                html = await asyncio.get_running_loop().run_in_executor(maker, make, runs, request)
            except (NotARun, NotComparable, OSError) as error:
                return web.Response(status=404, text=f"{error}\n")
            return web.Response(text=html, content_type="text/html")

        return answer

    known: dict[str, SweepView] = {}
    for path, make in (("/", partial(_list, known)), ("/runs", _report), ("/report", _report)):
        app.router.add_get(path, answering(make))
    app.router.add_get("/live.js", _script)
    return app


async def _script(_: web.Request) -> web.Response:
    text = files("results.serve").joinpath("live.js").read_text(encoding="utf-8")
    return web.Response(text=text, content_type="text/javascript")


@dataclass(frozen=True)
class SweepView:
    """The runs of a folder within the one that is served, or those that lie in that itself, whose name is empty."""

    name: str
    views: tuple[View, ...]

    @cached_property
    def best(self) -> str:
        """The headline of the report on it; empty for single runs, and where they cannot be compared."""
        some = [one.run for one in self.views if one.readable and one.run]
        if not self.name or len(some) < 2:
            return ""
        try:
            return headline(grouped(Runs(some)))
        except (NotARun, NotComparable, OSError):
            return ""

    @cached_property
    def names(self) -> dict[str, str]:
        """What tells each run from the others, by path."""
        return labels(self.views, seeds=False)

    @property
    def states(self) -> str:
        return states(self.views)

    @property
    def query(self) -> str:
        """Asks for all of its runs."""
        return urlencode([("run", one.path) for one in self.views])


def _list(known: dict[str, SweepView], runs: Folder, request: web.Request) -> str:
    """The list of sweeps and runs.

    known: the sweeps of the last look, which stay as long as none of their runs has changed.
    """
    every: list[View] = []
    with suppress(NoRuns):
        every = runs.look()
    sweeps = []
    for name, inside in groupby(sorted(every, key=_folder), _folder):
        views = tuple(inside)
        if (before := known.get(name)) is None or [*map(id, before.views)] != [*map(id, views)]:
            known[name] = SweepView(name, views)
        sweeps.append(known[name])
    sweeps.sort(key=lambda sweep: not sweep.name)
    return filled("serve/list.html.j2", title=str(runs.folder), sweeps=sweeps, number=len(every))


def _folder(one: View) -> str:
    return one.path.rpartition("/")[0].partition("/")[0]


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


@web.middleware
async def guarded(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answers requests to names of this machine only: else a stranger's page whose name is made to mean this machine
    could have the browser read runs for it."""
    try:
        at = urlsplit(f"//{request.host}")
        name, _ = at.hostname, at.port
    except ValueError:
        return web.Response(status=400, text="The header Host must be a name or an address, and a port.\n")
    if name not in ("localhost", "127.0.0.1", "::1"):
        return web.Response(status=403, text=f"This server is not {name}; use 127.0.0.1.\n")
    try:
        answer = await handler(request)
    except web.HTTPException as error:  # no such page, or another method than GET
        error.headers.update(_HEADERS)
        raise
    answer.headers.update(_HEADERS)
    return answer
