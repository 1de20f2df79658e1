"""Refuses what pages of other sites ask: each request and each WebSocket under a foreign name, or with a foreign Origin.

Streamlit checks the names for its WebSocket only, and accepts any if none are set. It accepts a page of any port of this machine.
To find out whether another Origin is this machine's, it asks a public service for the machine's address.
"""

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kernelviz.ui.server.allowed_hosts import VARIABLE, AllowedHosts, Host, Origin, configured

_MOST_LETTERS = 120
_REFUSED = "kernelviz refused this request, because"


class RequestGuard:
    """ASGI middleware that answers only requests of the server's own pages, of links, and of programs.

    `X-Forwarded-Host` is not read, because anybody can send it.
    """

    def __init__(self, app: ASGIApp, allowed: AllowedHosts | None = None) -> None:
        """`allowed`: None for what the settings of the server say."""
        self._app = app
        self._allowed = configured() if allowed is None else allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        reason = refusal(headers, self._allowed)
        if reason is not None:
            await _refuse(reason, scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(_with_own_origin(scope, headers), receive, send)
        else:
            await self._app(scope, receive, send)


def refusal(headers: Headers, allowed: AllowedHosts) -> str | None:
    """Why a request with these headers is refused; None if it is not.

    Browsers send Origin with each request of a script to another site, and with each WebSocket and upload. Links and programs
    send none.
    """
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or len(origins) > 1:
        return f"{_REFUSED} it has not exactly one Host header and at most one Origin header.\n"
    host = Host.parse(hosts[0])
    if host is None:
        return f"{_REFUSED} its Host header {_quoted(hosts[0])} is not the name of a host.\n"
    if not allowed.allow_host(host):
        return (
            f"{_REFUSED} its Host header names {_quoted(host.name)}, which is not known as a name of this server. If you run "
            f"this server and reach it by that name, add the name to {VARIABLE} (names separated by spaces) and start the "
            "server again.\n"
        )
    if origins and not allowed.allow_origin(Origin.parse(origins[0]), host):
        return (
            f"{_REFUSED} it comes from a page of {_quoted(origins[0])}, and the server was asked as {_quoted(hosts[0])}. A proxy "
            "has to pass on the browser's Host header with its port. If you run this server and trust all pages of that site, "
            "add the site to STREAMLIT_SERVER_CORS_ALLOWED_ORIGINS and start the server again.\n"
        )
    return None


def _quoted(text: str) -> str:
    """Text of a request as plain, short ASCII.

    >>> _quoted('a"\\x07é')
    '"a???"'
    """
    plain = "".join(letter if " " <= letter <= "~" and letter != '"' else "?" for letter in text[:_MOST_LETTERS])
    return f'"{plain}{"…" if len(text) > _MOST_LETTERS else ""}"'


def _with_own_origin(scope: Scope, headers: Headers) -> Scope:
    """The scope with the Origin of the server's own pages if it has an Origin.

    Streamlit compares the texts of Origin and Host. If they differ in capital letters or in the standard port, or if the Origin
    is of a site that may ask, it would ask a public service for the address of this machine before it reads its list of sites.
    """
    if "origin" not in headers:
        return scope
    scheme = headers["origin"].partition("://")[0]
    origin = (b"origin", f"{scheme}://{headers['host']}".encode("latin-1"))
    return {**scope, "headers": [origin if name == b"origin" else (name, value) for name, value in scope["headers"]]}


async def _refuse(reason: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        # It is not accepted yet, so the server answers with status 403.
        await send({"type": "websocket.close", "code": 1008, "reason": "foreign Host or Origin"})
        return
    await PlainTextResponse(reason, 403, headers={"Cache-Control": "no-store"})(scope, receive, send)
