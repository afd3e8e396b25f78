"""Who may read: whoever is on this machine."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

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
