"""Headers on every response that tell the browser what a page may load, and what other sites may do with it.

They follow the rules of Mozilla's HTTP Observatory and of the OWASP Secure Headers Project. Some rules are not met, for these
reasons:

- `Strict-Transport-Security`: the server speaks HTTP. The proxy that adds TLS has to send it (docs/deploy.md).
- `Server: uvicorn`: uvicorn adds it after all middleware, and `streamlit run` has no setting for it. It contains no version.
- `Cache-Control: no-store` is only on health, events and refusals. Files with a digest in their names are kept for good.
- The cookie `_streamlit_xsrf` has `SameSite=Lax`, but neither `HttpOnly`, because Streamlit's script sends it back in a header,
  nor `Secure`, because the server speaks HTTP. It grants nothing: it is compared with that header when a file is uploaded.
- Our own cookie (`browser_cookie.py`) has no `Secure` for the same reason.
"""

import base64
import hashlib
import re
from pathlib import Path

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PAGE = Path(streamlit.__file__).parent / "static" / "index.html"
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STARTS = frozenset({"http.response.start", "websocket.http.response.start"})


def _hashes() -> list[str]:
    """The inline scripts of Streamlit's HTML page, as a policy names them: one that sets a variable for search engines."""
    scripts = _INLINE_SCRIPT.findall(_PAGE.read_text("utf-8"))
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


POLICY: dict[str, list[str]] = {
    "default-src": ["'none'"],
    # blob: Streamlit imports the script of a component from a URL that it makes of the text that the server sent. Only a script
    # that already runs on the page can make such a URL.
    # 'wasm-unsafe-eval': Streamlit's script calculates with 64-bit integers in WebAssembly, which it compiles from its own text.
    # This does not allow eval of JavaScript.
    "script-src": ["'self'", *_hashes(), "blob:", "'wasm-unsafe-eval'"],
    # 'unsafe-inline': Streamlit writes its rules into style elements while it draws, and Plotly sets style attributes.
    "style-src": ["'self'", "'unsafe-inline'"],
    # data: the small charts of the gallery, and pictures in Streamlit's style sheets. blob: a chart that is saved as a picture.
    "img-src": ["'self'", "data:", "blob:"],
    "font-src": ["'self'", "data:"],
    # The events of a run, uploads, and the WebSocket.
    "connect-src": ["'self'"],
    "base-uri": ["'none'"],
    "form-action": ["'none'"],
    "frame-ancestors": ["'none'"],
}
"""What a page may load. A kind of content that is not named (frames, plug-ins, workers, media) is not loaded at all."""
_UNUSED_FEATURES = (
    "accelerometer", "autoplay", "camera", "clipboard-read", "display-capture", "encrypted-media", "geolocation", "gyroscope",
    "hid", "idle-detection", "magnetometer", "microphone", "midi", "payment", "picture-in-picture", "publickey-credentials-get",
    "screen-wake-lock", "serial", "sync-xhr", "usb", "xr-spatial-tracking",
)  # fmt: skip
_USED_FEATURES = ("clipboard-write", "fullscreen")
"""A chart is copied as a table, and is shown on the whole screen."""

HEADERS: dict[str, str] = {
    "Content-Security-Policy": "; ".join(f"{kind} {' '.join(sources)}" for kind, sources in POLICY.items()),
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join([f"{f}=()" for f in _UNUSED_FEATURES] + [f"{f}=(self)" for f in _USED_FEATURES]),
    # The address of a page names the run. With no-referrer, browsers would send "Origin: null" with some requests of our pages.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Permitted-Cross-Domain-Policies": "none",
}


class ResponseHeaders:
    """ASGI middleware that sets these headers on each response. It has to be the outermost, so that refusals have them, too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] in _STARTS:
                started = True
                message = {**message, "headers": _with_headers(message)}
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            # Starlette's own answer is sent outside of all middleware. If there is one already, it only logs the error.
            if scope["type"] == "http" and not started:
                await PlainTextResponse("Internal Server Error", 500)(scope, receive, send_with_headers)
            raise


def _with_headers(start: Message) -> list[tuple[bytes, bytes]]:
    headers = MutableHeaders(raw=list(start.get("headers", [])))
    for name, value in HEADERS.items():
        headers[name] = value
    return headers.raw
