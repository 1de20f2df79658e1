"""Streamlit's scripts and style sheets from memory.

A page with an empty cache loads up to 140 of them. Streamlit opens and reads each file in a thread, which takes 2 ms of processor
time, while the same process draws the page.
"""

from functools import cache
from pathlib import Path

import streamlit
from starlette.types import ASGIApp, Receive, Scope, Send

from kernelviz.ui.server import assets

_FOLDER = Path(streamlit.__file__).parent / "static" / "static"
_MEDIA_TYPES = {".css": b"text/css; charset=utf-8", ".js": b"application/javascript"}
_CONDITIONS = frozenset({b"range", b"if-none-match", b"if-modified-since", b"if-range"})
_FOR_GOOD = (b"cache-control", b"public, immutable, max-age=31536000")
"""As Streamlit says it: the name of each file has the digest of its content."""


class StaticFiles:
    """ASGI middleware that answers plain requests for these files, and leaves all others to Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = _requested(scope)
        if file is None:
            await self._app(scope, receive, send)
            return
        content = _content(file)
        length = (b"content-length", str(len(content)).encode())
        headers = [(b"content-type", _MEDIA_TYPES[file.suffix]), length, _FOR_GOOD]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _requested(scope: Scope) -> Path | None:
    """The file that a plain GET request names; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    file = _files().get(scope["path"])
    return None if file is None or any(name in _CONDITIONS for name, _ in scope["headers"]) else file


@cache
def _files() -> dict[str, Path]:
    """Every script and style sheet by its path on the server. A path that is not here is never looked up on the disk."""
    files = (path for path in _FOLDER.rglob("*") if path.suffix in _MEDIA_TYPES)
    return {f"{assets.base_path()}/static/{path.relative_to(_FOLDER).as_posix()}": path for path in files}


@cache
def _content(file: Path) -> bytes:
    return file.read_bytes()
