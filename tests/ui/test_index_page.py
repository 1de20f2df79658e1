"""The HTML page of Streamlit gets our style sheet and start script; nothing else is changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from kernelviz.ui.server import assets, widget_scripts
from kernelviz.ui.server.index_page import IndexPage
from kernelviz.ui.shared.site import pages_folder

PAGE = f"<!DOCTYPE html><html><head><title>Streamlit</title></head><body>{'<p>head</p>' * 200}</body></html>"
BROWSER = {"accept": "text/html,application/xhtml+xml", "accept-encoding": "gzip", "if-none-match": '"1"'}


async def _page(request: Request) -> Response:
    if request.headers.get("if-none-match") == '"1"':
        return Response(status_code=304)
    return HTMLResponse(PAGE, headers={"ETag": '"1"'})


async def _data(_request: Request) -> Response:
    return JSONResponse({"head": "<head>"})


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[Route("/", _page), Route("/data", _data), *assets.routes()])
    app.add_middleware(GZipMiddleware, minimum_size=100)
    app.add_middleware(IndexPage)  # outermost, as in the app
    return TestClient(app)


def test_a_page_has_both_elements_at_the_start_of_its_head(client: TestClient) -> None:
    answer = client.get("/", headers=BROWSER)
    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "etag" not in answer.headers, "the page changes when one of our files changes"
    links = re.findall(r'(?:href|src)="(/assets/[^"]*)"', answer.text)
    assert links == [assets.path(name) for name in (assets.STYLE, assets.START, assets.CHART, assets.PLOTLY)]
    assert answer.text.index(links[1]) < answer.text.index("<title>") < answer.text.index(links[2])
    added = r"\s*<(?:link|script)[^>]*>(?:</script>)?"
    assert re.sub(rf"(?:{added})+\s*(?=<title>|</head>)", "", answer.text) == PAGE
    for link, kind in zip(links, ("text/css", *["text/javascript"] * 3), strict=True):
        found = client.get(link)
        assert (found.status_code, found.headers["content-type"].split(";")[0]) == (200, kind)


def test_a_page_names_the_scripts_of_its_widgets_that_streamlit_has(client: TestClient) -> None:
    folder = Path(streamlit.__file__).parent / "static"
    every = set(re.findall(r"static/js/([\w.-]+)", (folder / "index.html").read_text()))
    for page in ("", "bench", *(file.stem for file in pages_folder().glob("*.py"))):
        scripts = re.findall(r'href="\./static/js/([^"]+)"', widget_scripts.elements(page))
        assert scripts, f"{page}: no widget of the list is a script of this version of Streamlit"
        assert len(scripts) == len(set(scripts))
        assert not every & set(scripts)
        assert all((folder / "static" / "js" / name).is_file() for name in scripts)
    bench, history = (widget_scripts.elements(page) for page in ("", "history"))
    assert "/DataFrame." in bench
    assert "/DataFrame." not in history
    assert "plotly" not in history, "a page without charts does not load Plotly"
    assert widget_scripts.elements("no-such-page") == ""


def test_what_is_no_page_is_not_changed(client: TestClient) -> None:
    assert client.get("/data", headers=BROWSER).json() == {"head": "<head>"}
    assert client.get("/", headers={"accept": "*/*"}).text == PAGE
    assert client.get("/nothing", headers=BROWSER).status_code == 404
