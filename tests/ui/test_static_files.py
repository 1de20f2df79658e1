"""Streamlit's scripts and style sheets from memory: the same content as Streamlit's own, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from kernelviz.ui.server.static_files import StaticFiles

FOLDER = Path(streamlit.__file__).parent / "static" / "static"


async def _streamlit(_request: Request) -> Response:
    return PlainTextResponse("by Streamlit")


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", _streamlit, methods=["GET", "POST"])])
    app.add_middleware(StaticFiles)
    return TestClient(app)


@pytest.mark.parametrize(("suffix", "kind"), [("js", "application/javascript"), ("css", "text/css; charset=utf-8")])
def test_a_script_or_style_sheet_is_the_file_and_is_kept_for_good(client: TestClient, suffix: str, kind: str) -> None:
    file = next(iter(sorted(FOLDER.glob(f"{suffix}/*.{suffix}"))))
    answer = client.get(f"/static/{suffix}/{file.name}")
    assert answer.content == file.read_bytes()
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-length"] == str(len(answer.content))
    assert "immutable" in answer.headers["cache-control"]


def test_every_other_request_is_for_streamlit(client: TestClient) -> None:
    script = f"/static/js/{next(FOLDER.glob('js/*.js')).name}"
    assert client.get(script, headers={"range": "bytes=0-9"}).text == "by Streamlit"
    assert client.get(script, headers={"if-none-match": '"1"'}).text == "by Streamlit"
    assert client.post(script).text == "by Streamlit"
    for path in ("/", "/static/js/no-such-file.js", "/static/js/../index.html", "/static/js/%2e%2e/%2e%2e/index.html"):
        assert client.get(path).text == "by Streamlit"
