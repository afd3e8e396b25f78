"""Who may read: on this machine's own address whoever is on it, elsewhere whoever knows a token."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

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


@dataclass(frozen=True)
class Guard:
    """Lets readers in, and gives answers their headers. host: the one that the server listens on."""

    host: str
    token: str | None = field(default=None, repr=False)
    """None on this machine's own address."""

    @classmethod
    def listening(cls, host: str) -> Guard:
        """Returns the guard of a server that listens on a host: with a token if other machines may reach it."""
        try:
            alone = ipaddress.ip_address(host).is_loopback
        except ValueError:
            alone = host == "localhost"
        return cls(host, None if alone else secrets.token_urlsafe(32))

    @property
    def middleware(self) -> Middleware:
        """What aiohttp calls for each request."""

        @web.middleware
        async def guarded(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            try:
                answer = self._instead(request) or await handler(request)
            except web.HTTPException as error:  # no such page, or another method than GET
                error.headers.update(_HEADERS)
                raise
            answer.headers.update(_HEADERS)
            return answer

        return guarded

    def _instead(self, request: web.Request) -> web.Response | None:
        """Returns what is answered instead of the page; None for those who may read."""
        try:
            at = urlsplit(f"//{request.host}")
            name, port = at.hostname, at.port
        except ValueError:
            return web.Response(status=400, text="The header Host must be a name or an address, and a port.\n")
        if self.token is None:
            # Else a stranger's page whose name is made to mean this machine could have the browser read runs for it.
            known = name in ("localhost", "127.0.0.1", "::1", self.host)
            return None if known else web.Response(status=403, text=f"This server is not {name}; use 127.0.0.1.\n")
        cookie = f"raysim-{port}"  # cookies are one host's, whatever the port
        if self._is_token(request.query.get("token", "")):
            page = str(request.rel_url.without_query_params("token"))  # history is to hold no token
            there = web.Response(status=302, headers={"Location": page})
            there.set_cookie(cookie, self.token, httponly=True, samesite="Lax")
            return there
        if self._is_token(request.cookies.get(cookie, "")):
            return None
        return web.Response(status=401, text="Open the whole address with the token that `raysim serve` has printed.\n")

    def _is_token(self, text: str) -> bool:
        return self.token is not None and hmac.compare_digest(text.encode(), self.token.encode())
