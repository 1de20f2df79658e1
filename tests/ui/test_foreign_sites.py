"""What a page of another site can reach of a real server: nothing, on no route, under no name.

One server is started as the README says, another one as on a machine that others use: on every address and below a path.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from http.client import HTTPMessage
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import streamlit
from foreign_requests import Answer, ask, shake_hands
from foreign_server import listening
from header_scan import RULES, unmet
from servers import ROOT, served

from kernelviz.ui.server.response_headers import HEADERS

pytestmark = [pytest.mark.xdist_group("foreign-sites"), pytest.mark.timeout(180)]
PAGE = {"Accept": "text/html"}
SCRIPT = next((Path(streamlit.__file__).parent / "static" / "static" / "js").glob("*.js")).name
EVENTS = "/api/runs/h200-softmax/events"
ROUTES: dict[str, tuple[str, str, dict[str, str]]] = {
    "first page": ("GET", "/", PAGE),
    "page": ("GET", "/roofline", PAGE),
    "head": ("HEAD", "/", {}),
    "script": ("GET", f"/static/js/{SCRIPT}", {}),
    "script of a browser that has it": ("GET", f"/static/js/{SCRIPT}", {"If-None-Match": '"1"'}),
    "icon": ("GET", "/favicon.png", {}),
    "health of Streamlit": ("GET", "/_stcore/health", {}),
    "settings of Streamlit": ("GET", "/_stcore/host-config", {}),
    "health": ("GET", "/api/health", {}),
    "events": ("GET", EVENTS, {}),
    "no such file of ours": ("GET", "/assets/none.js", {}),
    "no such picture": ("GET", "/media/none.png", {}),
    "no such path": ("GET", "/static/../../etc/passwd", {}),
    "upload": ("PUT", "/_stcore/upload_file/session/file", {}),
    "deletion of an upload": ("DELETE", "/_stcore/upload_file/session/file", {}),
    "question before an upload": ("OPTIONS", "/_stcore/upload_file/session/file", {}),
    "interface for agents": ("POST", "/_stcore/agent/interact", {"Content-Type": "application/json"}),
}


def every_route(url: str, host: str | None = None, origin: str | None = None) -> dict[str, Answer]:
    """The answers of all routes and of the WebSocket."""
    answers = {
        name: ask(url + path, host=host, origin=origin, method=method, **headers)
        for name, (method, path, headers) in ROUTES.items()
    }
    return answers | {"WebSocket": shake_hands(url, host=host, origin=origin)}


def not_refused(answers: dict[str, Answer]) -> set[str]:
    # The answer to HEAD has no text.
    return {name for name, a in answers.items() if not (a.refused or (name == "head" and a.status == 403))}


@pytest.fixture(scope="module")
def outside() -> Iterator[tuple[str, list[str]]]:
    """The address of a proxy for everything that is not on this machine, and what it was asked for. It answers nothing."""
    with listening() as (host, asked):
        yield f"http://{host}", asked


def _through(proxy: str) -> dict[str, str]:
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    return dict.fromkeys(names, proxy) | {"no_proxy": "", "NO_PROXY": ""}


@pytest.fixture(scope="module")
def local(outside: tuple[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server of the README: `streamlit run app.py`, without any setting of ours."""
    with served(ROOT / "app.py", tmp_path_factory.mktemp("local"), **_through(outside[0])) as url:
        yield url


@pytest.fixture(scope="module")
def shared(outside: tuple[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on all addresses, below a path, behind a proxy of that name, with one other site that may use it."""
    with served(
        ROOT / "app.py",
        tmp_path_factory.mktemp("shared"),
        base="lab/kv",
        STREAMLIT_SERVER_ADDRESS="0.0.0.0",
        KERNELVIZ_ALLOWED_HOSTS="kernels.example.org",
        STREAMLIT_SERVER_CORS_ALLOWED_ORIGINS="https://portal.example.org",
        **_through(outside[0]),
    ) as url:
        yield url


def port(url: str) -> int:
    return int(urlsplit(url).port or 0)


FOREIGN: dict[str, Callable[[int], tuple[str | None, str | None]]] = {
    "another name for this address": lambda port: (f"rebound.example:{port}", None),
    "a page under another name for this address": lambda port: (
        f"rebound.example:{port}",
        f"http://rebound.example:{port}",
    ),
    "an address elsewhere": lambda port: (f"203.0.113.7:{port}", None),
    "a page of another site": lambda port: (None, "https://other.example"),
    "a page of another port of this machine": lambda port: (None, f"http://127.0.0.1:{port + 1}"),
    "a page of the usual port of this machine": lambda port: (None, "http://127.0.0.1"),
    "a page of another name of this machine": lambda port: (None, f"http://localhost:{port}"),
    "a page of a file": lambda port: (None, "null"),
    "no host": lambda port: ("", None),
}


@pytest.mark.parametrize("site", FOREIGN)
def test_every_route_and_the_websocket_refuse_a_foreign_host_and_origin(local: str, site: str) -> None:
    host, origin = FOREIGN[site](port(local))
    assert not_refused(every_route(local, host, origin)) == set()


def test_every_route_and_the_websocket_answer_their_own_page(local: str) -> None:
    answers = every_route(local, origin=local)
    assert {name for name, answer in answers.items() if answer.refused} == set()
    statuses = {name: answer.status for name, answer in answers.items()}
    assert {name for name, status in statuses.items() if status == 200} >= {
        "first page", "page", "head", "script", "icon", "health of Streamlit", "settings of Streamlit", "health", "events",
    }  # fmt: skip
    assert statuses["WebSocket"] == 101


@pytest.mark.parametrize(
    "host", ["localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}", "127.0.0.1", "localhost:18501"]
)
def test_each_name_of_this_machine_is_its_own_origin(local: str, host: str) -> None:
    """The last one is the local end of an SSH tunnel."""
    host = host.format(port=port(local))
    assert shake_hands(local, host=host, origin=f"http://{host}").status == 101
    assert ask(f"{local}/api/health", host=host).status == 200


def test_a_refusal_names_the_host_and_the_setting(local: str) -> None:
    told = ask(f"{local}/", host="rebound.example:8501", **PAGE)
    assert told.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert '"rebound.example"' in told.text
    assert "KERNELVIZ_ALLOWED_HOSTS" in told.text
    told = shake_hands(local, origin="https://other.example")
    assert '"https://other.example"' in told.text
    assert "STREAMLIT_SERVER_CORS_ALLOWED_ORIGINS" in told.text


def test_every_answer_of_every_route_has_the_headers(local: str) -> None:
    answers = every_route(local) | {f"refused {n}": a for n, a in every_route(local, "rebound.example").items()}
    del answers["WebSocket"]  # an accepted WebSocket is no document
    for name, answer in answers.items():
        found = {header: answer.headers.get_all(header) for header in HEADERS}
        assert found == {header: [value] for header, value in HEADERS.items()}, name


EXCEPTIONS = {
    "csp: no wide source of scripts": "`script-src blob:`",
    "csp: no inline script by its hash": "`script-src 'sha256-…'`",
    "csp: no 'wasm-unsafe-eval'": "`script-src 'wasm-unsafe-eval'`",
    "csp: no 'unsafe-inline' for styles": "`style-src 'unsafe-inline'`",
    "csp: no wide source of pictures and fonts": "`img-src data: blob:`, `font-src data:`",
    "strict-transport-security": "no `Strict-Transport-Security`, cookie without `Secure`",
    "cookies: Secure": "no `Strict-Transport-Security`, cookie without `Secure`",
    "cookies: HttpOnly": "cookie `_streamlit_xsrf` without `HttpOnly`",
    "headers to remove": "`Server: uvicorn`",
    "cache-control: no-store": "scripts and style sheets are cached",
}
"""Each rule of a scanner that an answer does not follow, and the exception in docs/deploy.md that gives the reason."""


def test_what_a_scanner_finds_is_named_with_its_reason(local: str) -> None:
    host = urlsplit(local).netloc
    found = {
        name: unmet(answer.headers, answer.text, host)
        for name, answer in every_route(local).items()
        if name != "WebSocket"
    }
    assert set().union(*found.values()) == set(EXCEPTIONS), found
    # The rule about cookies can fail only if there is one.
    assert any(answer.headers.get_all("Set-Cookie") for answer in every_route(local, origin=local).values())
    document = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    rows = {line.split("|")[1].strip() for line in document.splitlines() if line.startswith("| ")}
    assert set(EXCEPTIONS.values()) <= rows


def test_each_rule_of_the_scanner_can_fail() -> None:
    careless = HTTPMessage()
    for name, value in {
        "Content-Security-Policy": "script-src * 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' 'sha256-x'; "
        "style-src 'unsafe-inline' *; img-src *",
        "Set-Cookie": "session=1",
        "Access-Control-Allow-Origin": "*",
        "Server": "nginx/1.2",
    }.items():
        careless[name] = value
    page = '<script src="https://cdn.example/x.js"></script>'
    assert unmet(careless, page, "here") == set(RULES) - {"csp: there is a policy"}
    assert "csp: there is a policy" in unmet(HTTPMessage(), "", "here")


def test_a_machine_that_others_use_is_reached_by_name_and_address(shared: str) -> None:
    """As http://machine-name:8501, by its address, through a port that Docker publishes, and behind a proxy with TLS."""
    base, name = f":{port(shared)}", socket.gethostname()
    hosts = [f"{name}{base}", f"{name.partition('.')[0]}.local{base}", f"192.0.2.7{base}", f"localhost{base}"]
    for host in [*hosts, "kernels.example.org"]:
        assert ask(f"{shared}/api/health", host=host).status == 200, host
        assert shake_hands(shared, host=host, origin=f"http://{host}").status == 101, host
    assert shake_hands(shared, host="kernels.example.org", origin="https://kernels.example.org").status == 101
    assert not_refused(every_route(shared, f"rebound.example{base}")) == set()
    # A proxy adds this header, but so does anybody else.
    assert ask(f"{shared}/", host="rebound.example", **{"X-Forwarded-Host": "kernels.example.org"}).refused


def test_an_allowed_site_reaches_it_and_no_other(shared: str) -> None:
    assert shake_hands(shared, origin="https://portal.example.org").status == 101
    for origin in ("https://kernels.example.org", "http://portal.example.org", "https://portal.example.org:444"):
        assert shake_hands(shared, origin=origin).refused, origin


def test_nothing_outside_of_this_machine_was_asked(local: str, shared: str, outside: tuple[str, list[str]]) -> None:
    """Streamlit asks a public service for the machine's address when it listens on all addresses, and when it sees a foreign
    Origin. It would ask through the proxy."""
    for url in (local, shared):
        for origin in ("https://other.example", "https://portal.example.org", f"http://LOCALHOST:{port(url)}"):
            shake_hands(url, origin=origin)
            shake_hands(url, host=f"localhost:{port(url)}", origin=origin)
    assert outside[1] == []
