"""Our style sheet and scripts in the HTML page that Streamlit serves for every page.

Streamlit offers no setting for them. Elements that bring a style sheet arrive after the first draw, and then the page moves.
"""

from html import escape

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelviz.ui.server import assets, browser_cookie, request_guard, response_headers, static_files, widget_scripts

_HEAD, _HEAD_END = b"<head>", b"</head>"


class IndexPage:
    """ASGI middleware that adds the style sheet and the start script to each HTML page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or "text/html" not in Headers(scope=scope).get("accept", "")
        ):
            await self._app(scope, receive, send)
            return
        # Uncompressed and whole, because it is changed here. It has 10 kB.
        dropped = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
        headers = [(k, v) for k, v in scope["headers"] if k not in dropped]
        extensions = {k: v for k, v in scope.get("extensions", {}).items() if k != "http.response.pathsend"}
        scope = {**scope, "headers": headers, "extensions": extensions}
        page = scope["path"].removeprefix(assets.base_path()).strip("/")
        await self._app(scope, receive, _Extended(send, page))


class _Extended:
    """Forwards a response; if it is an HTML page, it is collected first, and our elements are added to its head."""

    def __init__(self, send: Send, page: str) -> None:
        self._send, self._page = send, page
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_page(message):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_page(self._start)
        else:
            await self._send(message)

    async def _send_page(self, start: Message) -> None:
        last = f"  {widget_scripts.elements(self._page)}\n  ".encode()
        body = self._body.replace(_HEAD, _HEAD + _elements(), 1).replace(_HEAD_END, last + _HEAD_END, 1)
        headers = MutableHeaders(raw=[(k, v) for k, v in start["headers"] if k not in (b"etag", b"last-modified")])
        headers["content-length"] = str(len(body))
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def middleware() -> list[Middleware]:
    """What the server needs besides its routes, the outermost first."""
    guards = [Middleware(response_headers.ResponseHeaders), Middleware(request_guard.RequestGuard)]
    return [
        *guards,
        Middleware(browser_cookie.BrowserCookie),
        Middleware(static_files.StaticFiles),
        Middleware(IndexPage),
    ]


def _is_page(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    return start["status"] == 200 and headers.get("content-type", "").startswith("text/html")


def _elements() -> bytes:
    style, script = (escape(assets.path(name)) for name in (assets.STYLE, assets.START))
    return f'\n    <link rel="stylesheet" href="{style}" />\n    <script src="{script}"></script>'.encode()
