"""The files of our own that pages load: the bundles of Plotly and CodeMirror, the style sheet, and the scripts.

The name of each file has the digest of its content, so that a browser keeps it for good and never uses an old one.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from streamlit import config

from kernelviz.formats.browser import bundle, code_bundle

PLOTLY = "plotly.js"
CHART = "chart.js"
CODEMIRROR = "codemirror.js"
CODE = "code.js"
TOOLS = "page_tools.js"
LOADER = """
export default async (component) =>
  (await import(new URL(component.data.module, document.baseURI).href)).mount(component);
"""
"""Streamlit sends this with every component of ours. `data.module` is the path of the rest, a file that the browser keeps."""
STYLE = "pages.css"
ICON = "icon.svg"
START = "start.js"
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOR_GOOD = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _Asset:
    """A file. `encoded`: its content as each content encoding that the server has ready, the best first."""

    name: str
    content: bytes
    media_type: str
    encoded: Mapping[str, bytes]


def base_path() -> str:
    """The prefix of every path (`server.baseUrlPath`), without a slash at its end.

    >>> base_path()
    ''
    """
    path = str(config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def path(name: str) -> str:
    """The path of a file of ours, below `server.baseUrlPath`."""
    return f"{base_path()}/assets/{_assets()[name].name}"


def routes() -> list[Route]:
    """The route of the files."""
    return [Route(f"{base_path()}/assets/{{name}}", _respond)]


@cache
def _assets() -> Mapping[str, _Asset]:
    shared = files("kernelviz.ui.shared")
    chart = bundle.chart_script() + (shared / "chart_component.js").read_text("utf-8")
    code = code_bundle.view_script() + (files("kernelviz.ui.code") / "code_component.js").read_text("utf-8")
    server = files("kernelviz.ui.server")
    return {
        ICON: _asset(ICON, (server / ICON).read_bytes(), {}),
        STYLE: _asset(STYLE, (server / STYLE).read_bytes(), {}),
        START: _asset(START, (server / START).read_bytes(), {}),
        PLOTLY: _asset(PLOTLY, bundle.script(), {"br": bundle.brotli(), "gzip": bundle.gzipped()}),
        CHART: _asset(CHART, chart.encode(), {}),
        CODEMIRROR: _asset(
            CODEMIRROR, code_bundle.script(), {"br": code_bundle.brotli(), "gzip": code_bundle.gzipped()}
        ),
        CODE: _asset(CODE, code.encode(), {}),
        TOOLS: _asset(TOOLS, (shared / "page_tools.js").read_bytes(), {}),
    }


def _asset(name: str, content: bytes, encoded: Mapping[str, bytes]) -> _Asset:
    stem, suffix = name.split(".")
    return _Asset(f"{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{suffix}", content, _MEDIA_TYPES[suffix], encoded)


async def _respond(request: Request) -> Response:
    name = request.path_params["name"]
    asset = next((a for a in _assets().values() if a.name == name), None)
    if asset is None:
        return Response(status_code=404)
    headers = {"Cache-Control": _FOR_GOOD, "Vary": "Accept-Encoding"}
    encoding = next((e for e in asset.encoded if e in _accepted(request.headers.get("accept-encoding", ""))), None)
    if encoding is None:
        return Response(asset.content, media_type=asset.media_type, headers=headers)
    headers["Content-Encoding"] = encoding
    return Response(asset.encoded[encoding], media_type=asset.media_type, headers=headers)


def _accepted(header: str) -> set[str]:
    """The content encodings that a browser accepts.

    >>> sorted(_accepted("gzip, deflate;q=0.5, br;q=0"))
    ['deflate', 'gzip']
    """
    entries = [entry.partition(";") for entry in header.split(",")]
    return {name.strip() for name, _, quality in entries if quality.replace(" ", "") not in ("q=0", "q=0.0")}
