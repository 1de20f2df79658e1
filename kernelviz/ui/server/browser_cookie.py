"""A cookie by which a browser is known again, so that a page that is loaded anew still calls its runs one's own.

It holds a random number, and is no password: whoever has it can only take this browser's turns in the queue. The store and other
users get a name that is made of its digest.
"""

import hashlib
import secrets
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAME = "kernelviz_browser"
_BYTES = 16
_YEAR_S = 365 * 24 * 3600


def named_by(cookies: Mapping[str, str]) -> str | None:
    """The name of the browser that sent these cookies; None where ours is not among them.

    >>> named_by({NAME: "0123456789abcdef0123456789abcdef"}), named_by({}), named_by({NAME: "short"})
    ('browser 59ad3c61', None, None)
    """
    value = cookies.get(NAME, "")
    if len(value) != 2 * _BYTES or not value.isalnum():
        return None
    return f"browser {hashlib.sha256(f'{NAME} {value}'.encode()).hexdigest()[:8]}"


class BrowserCookie:
    """ASGI middleware that gives the cookie to a browser that asks for an HTML page and has none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if "text/html" not in headers.get("accept", "") or named_by(_cookies(headers)) is not None:
            await self._app(scope, receive, send)
            return

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                new = MutableHeaders(raw=list(message["headers"]))
                value = f"{NAME}={secrets.token_hex(_BYTES)}; Max-Age={_YEAR_S}; Path=/; HttpOnly; SameSite=Lax"
                new.append("set-cookie", value)
                message = {**message, "headers": new.raw}
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def _cookies(headers: Headers) -> dict[str, str]:
    """As Streamlit reads them: a cookie that another program on this host has set in its own way hides none of the others."""
    return {name: value for text in headers.getlist("cookie") for name, value in cookie_parser(text).items()}
