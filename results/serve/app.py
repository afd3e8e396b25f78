"""The pages: the list of runs, chosen runs side by side, and the report of chosen runs."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

from aiohttp import web

from results.groups import grouped
from results.info import NotARun
from results.load import Folder, readable
from results.reader import NoRuns
from results.report import report
from results.report.budgets import budgets
from results.report.curves import curves
from results.report.page import filled, page
from results.run_set import whole
from results.runs import Runs
from results.serve.board import Asked, board
from results.serve.guard import Guard
from results.texts import count
from results.views import View, workers

BY_SEED, EACH = "all keys but seed", "each run"  # what chosen runs may be grouped by
_LINE = 2**17  # bytes of an address, at most: it names the chosen runs


def application(folder: Path, guard: Guard) -> web.Application:
    """Makes the server of a folder's pages. It reads only what the folder holds, and answers nothing but GET."""
    app = web.Application(middlewares=[guard.middleware], handler_args={"max_line_size": _LINE})
    pages, maker = _Pages(folder), ThreadPoolExecutor(1)  # one page at a time: threads share matplotlib's settings

    def answering(make: Callable[[web.Request], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                html = await asyncio.get_running_loop().run_in_executor(maker, make, request)
            except (NotARun, OSError) as error:
                return web.Response(status=404, text=f"{error}\n")
            return web.Response(text=html, content_type="text/html")

        return answer

    for path, make in (("/", pages.every), ("/runs", pages.chosen), ("/report", pages.report)):
        app.router.add_get(path, answering(make))
    app.router.add_get("/live.js", _script)
    return app


async def _script(_: web.Request) -> web.Response:
    text = files("results.serve").joinpath("live.js").read_text(encoding="utf-8")
    return web.Response(text=text, content_type="text/javascript")


class _Pages:
    """Makes the pages of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = Folder(folder)

    def every(self, request: web.Request) -> str:
        """The list of runs."""
        every, asked = self._look(), Asked.read(request.query.items())

        def sorted_by(name: str) -> str:
            return urlencode({**request.query, "sort": name if asked.sort == f"-{name}" else f"-{name}"})

        return filled(
            "serve/list.html.j2",
            title=str(self._folder.folder),
            board=board(every, asked),
            asked=asked,
            total=count(len(every), "run"),
            now=f"{datetime.now():%H:%M:%S}",
            query=urlencode({"q": asked.words}),
            sorted_by=sorted_by,
        )

    def chosen(self, request: web.Request) -> str:
        """Chosen runs side by side: those that go on, with who works, and the curves of all."""
        views = self._asked(request)
        alone = request.query.get("by") == EACH
        same = [pair for pair in request.query.items() if pair[0] != "by"]
        notes = [f"{one.path}: {one.why}; left out" for one in views if not one.readable]

        def made(some: Runs) -> str:
            groups = grouped(some, [*some.varying, "seed"] if alone else None)
            sections = [section for make in (curves, budgets) if (section := make(groups))]
            going = [(one, workers(one.run)) for one in views if one.run in some.runs and one.status.goes_on]
            choices = [BY_SEED, EACH] if alone or len(groups) < len(some) else []
            more = {"going": going, "by": EACH if alone else BY_SEED, "choices": choices, "notes": notes}
            return page(groups, sections, "serve/chosen.html.j2", same=same, query=urlencode(same), **more)

        return whole(_runs(views), made, notes)

    def report(self, request: web.Request) -> str:
        """The report of chosen runs, as `raysim report` writes it."""
        return whole(_runs(self._asked(request)), lambda some: report(some).html, [])

    def _look(self) -> list[View]:
        with suppress(NoRuns):
            return self._folder.look()
        return []

    def _asked(self, request: web.Request) -> list[View]:
        asked = Asked.read(request.query.items())
        if found := [one for one in self._look() if asked.takes(one)]:
            return found
        raise NotARun(f"{self._folder.folder}: must hold the runs that are asked for, got none")


def _runs(views: list[View]) -> Runs:
    return Runs([one.run for one in readable(views) if one.run])
