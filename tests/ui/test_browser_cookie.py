"""A browser is known again by a cookie: a page that is loaded anew is of the same user."""

from __future__ import annotations

from http.cookies import SimpleCookie
from types import SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from kernelviz.ui.server.browser_cookie import NAME, BrowserCookie, named_by
from kernelviz.ui.server.index_page import middleware
from kernelviz.ui.shared import session

PAGE = {"accept": "text/html,application/xhtml+xml"}


async def _page(request: Request) -> Response:
    answer = HTMLResponse("page", status_code=int(request.query_params.get("status", 200)))
    answer.set_cookie("_streamlit_xsrf", "other")
    return answer


async def _data(_request: Request) -> Response:
    return JSONResponse({})


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[Route("/", _page), Route("/data", _data)])
    app.add_middleware(BrowserCookie)
    return TestClient(app)


def given(answer: httpx.Response) -> list[str]:
    return [text for text in answer.headers.get_list("set-cookie") if text.startswith(NAME)]


def test_a_page_gives_it_once_and_nothing_else_does(client: TestClient) -> None:
    assert given(client.get("/data")) == []
    assert given(client.get("/data", headers={"accept": "application/json"})) == []
    assert given(client.get("/?status=404", headers=PAGE)) == []
    first = client.get("/", headers=PAGE)
    (text,) = given(first)
    assert "_streamlit_xsrf=other" in first.headers["set-cookie"], "other cookies stay"
    morsel = SimpleCookie(text)[NAME]
    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "Lax", "/")
    assert int(morsel["max-age"]) > 30 * 24 * 3600
    assert given(client.get("/", headers=PAGE)) == [], "the client sends it from now on"
    client.cookies.clear()
    (another,) = given(client.get("/", headers=PAGE))
    assert another != text


@pytest.mark.parametrize("value", ["", "x", "0" * 31 + "<", "g" * 400, '"'])
def test_a_value_that_is_not_ours_names_nobody_and_is_replaced(client: TestClient, value: str) -> None:
    assert named_by({NAME: value}) is None
    assert len(given(client.get("/", headers=PAGE | {"cookie": f"{NAME}={value}"}))) == 1


@pytest.mark.parametrize("other", ["wandb/x=1", "José=1", "foo", "a=b; ;=c"])
def test_a_cookie_of_another_program_on_this_host_hides_nothing(client: TestClient, other: str) -> None:
    ours = f"{NAME}={1:032x}"
    for text in (f"{other}; {ours}", f"{ours}; {other}"):
        assert given(client.get("/", headers=PAGE | {"cookie": text.encode("latin-1")})) == []  # type: ignore[dict-item]


def test_the_name_is_that_of_the_browser_and_tells_nothing_of_its_cookie(monkeypatch: pytest.MonkeyPatch) -> None:
    def owner_with(cookies: dict[str, str]) -> str:
        context = SimpleNamespace(cookies=SimpleNamespace(to_dict=lambda: cookies))
        monkeypatch.setattr(session, "st", SimpleNamespace(session_state={}, context=context))
        return session.owner()

    one, two = f"{1:032x}", f"{2:032x}"
    assert owner_with({NAME: one}) == owner_with({NAME: one, "other": "x"}) == named_by({NAME: one})
    assert owner_with({NAME: one}) != owner_with({NAME: two})
    assert owner_with({}) != owner_with({}), "without cookies, each session is a user"
    assert one not in owner_with({NAME: one})


def test_the_server_has_it() -> None:
    assert str(BrowserCookie) in [str(one.cls) for one in middleware()]
