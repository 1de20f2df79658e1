"""The headers of every response, by the rules of scanners."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from kernelviz.ui.server.index_page import middleware
from kernelviz.ui.server.request_guard import RequestGuard
from kernelviz.ui.server.response_headers import HEADERS, POLICY, ResponseHeaders


async def _page(_request: Request) -> Response:
    return PlainTextResponse("page", headers={"X-Frame-Options": "ALLOWALL", "X-Other": "stays"})


async def _fault(_request: Request) -> Response:
    raise ValueError("secret")


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[Route("/", _page), Route("/fault", _fault)])
    app.add_middleware(ResponseHeaders)
    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/nothing", 404), ("/fault", 500)])
def test_each_header_is_there_once_even_on_an_error(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert {name: answer.headers.get_list(name) for name in HEADERS} == {name: [v] for name, v in HEADERS.items()}
    assert "secret" not in answer.text
    assert answer.headers.get("X-Other") == ("stays" if path == "/" else None)


def test_an_error_of_a_route_is_still_reported(client: TestClient) -> None:
    app = client.app
    with pytest.raises(ValueError, match="secret"):
        TestClient(app).get("/fault")


def test_headers_come_before_the_guard_and_the_guard_before_all_else() -> None:
    assert [m.cls for m in middleware()][:2] == [ResponseHeaders, RequestGuard]


def test_the_policy_follows_the_rules_of_mozillas_observatory() -> None:
    """Nothing is allowed that is not named, no inline script and no eval, no script from elsewhere, and no frame."""
    assert POLICY["default-src"] == ["'none'"]
    scripts = POLICY["script-src"]
    assert not {"'unsafe-inline'", "'unsafe-eval'", "data:", "*", "http:", "https:"} & set(scripts)
    assert len([s for s in scripts if s.startswith("'sha256-")]) == 1, "Streamlit's page has another inline script"
    for kind in ("base-uri", "form-action", "frame-ancestors"):
        assert POLICY[kind] == ["'none'"]
    exceptions = {"blob:", "data:", "'unsafe-inline'", "'wasm-unsafe-eval'"}
    others = {s for sources in POLICY.values() for s in sources} - {"'none'", "'self'"} - exceptions
    assert all(source.startswith("'sha256-") for source in others), "a page loads something from another server"
    assert [kind for kind, sources in POLICY.items() if "'unsafe-inline'" in sources] == ["style-src"]


def test_the_other_headers_follow_the_rules_of_scanners() -> None:
    assert HEADERS["X-Content-Type-Options"] == "nosniff"
    assert HEADERS["X-Frame-Options"] == "DENY"
    assert HEADERS["Referrer-Policy"] in (
        "no-referrer",
        "same-origin",
        "strict-origin",
        "strict-origin-when-cross-origin",
    )
    for name in ("Opener", "Resource"):
        assert HEADERS[f"Cross-Origin-{name}-Policy"] == "same-origin"
    for feature in ("camera", "geolocation", "microphone", "payment", "usb", "clipboard-read"):
        assert f"{feature}=()" in HEADERS["Permissions-Policy"].split(", ")
