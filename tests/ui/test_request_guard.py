"""Which hosts and origins are answered, by the settings of the server, and how a refusal is sent."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send
from streamlit import config

from kernelviz.ui.server import allowed_hosts
from kernelviz.ui.server.allowed_hosts import AllowedHosts, Host, Origin, configured
from kernelviz.ui.server.request_guard import RequestGuard, refusal

LOCAL = AllowedHosts()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Settings of Streamlit: those of the README, and what a test changes."""
    values: dict[str, Any] = {
        "server.address": "127.0.0.1",
        "browser.serverAddress": "127.0.0.1",
        "server.allowedHosts": [],
        "server.corsAllowedOrigins": [],
    }
    monkeypatch.setattr(config, "get_option", values.__getitem__)
    monkeypatch.setattr(config, "is_manually_set", values.__contains__)
    monkeypatch.setattr(allowed_hosts.socket, "gethostname", lambda: "gpu7.lab.example.org")
    monkeypatch.delenv("KERNELVIZ_ALLOWED_HOSTS", raising=False)
    return values


def answered(host: str) -> bool:
    return refusal(Headers({"host": host}), configured()) is None


def test_a_server_on_the_loopback_interface_has_the_names_of_that_interface(settings: dict[str, Any]) -> None:
    for address in ("127.0.0.1", "localhost", "::1"):
        settings["server.address"] = address
        for host in ("localhost", "localhost.:8501", "LOCALHOST:1", "127.0.0.1:8501", "127.1.2.3", "[::1]:8501"):
            assert answered(host), host
        # 127.1 and 2130706433 are written as 127.0.0.1 by a browser.
        for host in (
            "gpu7",
            "gpu7.lab.example.org",
            "192.0.2.1",
            "0.0.0.0:8501",
            "127.1",
            "2130706433",
            "[2001:db8::1]",
        ):
            assert not answered(host), host
        for host in ("localhost.rebound.example", "127.0.0.1.rebound.example", "xlocalhost", "a.localhost"):
            assert not answered(host), host


def test_a_server_on_other_addresses_has_any_address_and_the_names_of_the_machine(settings: dict[str, Any]) -> None:
    for address in ("0.0.0.0", "::", "192.0.2.1", None):
        settings["server.address"] = address
        for host in ("localhost", "gpu7:8501", "GPU7.local", "gpu7.lab.example.org", "192.0.2.9", "[2001:db8::1]:80"):
            assert answered(host), host
        for host in ("gpu8", "gpu7.rebound.example", "lab.example.org", "1.2.3.4.rebound.example"):
            assert not answered(host), host
    settings["server.address"] = "kernels.example.org"
    assert answered("kernels.example.org:8501")


def test_each_setting_of_names_allows_its_names(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    settings["server.allowedHosts"] = ["by-streamlit.example", "*.sub.example"]
    settings["browser.serverAddress"] = "shown.example"
    monkeypatch.setenv(
        "KERNELVIZ_ALLOWED_HOSTS", "one.example, https://Two.example:8443/lab [2001:db8::1]:80 three.example."
    )
    for host in (
        "by-streamlit.example", "x.sub.example", "a.b.sub.example", "shown.example", "one.example:1", "two.example",
        "three.example", "[2001:db8::1]", "localhost",
    ):  # fmt: skip
        assert answered(host), host
    for host in ("sub.example", "xsub.example", "four.example", "one.example.rebound.example"):
        assert not answered(host), host
    monkeypatch.setenv("KERNELVIZ_ALLOWED_HOSTS", "*")
    assert answered("rebound.example")
    assert not answered("user@rebound.example"), "it is not a host"


def test_what_is_not_a_name_allows_nothing_and_is_reported(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KERNELVIZ_ALLOWED_HOSTS", "a*.example <b> ok.example")
    assert configured().patterns == {"ok.example", "127.0.0.1"}
    assert "'a*.example' is not a host name" in caplog.text


@pytest.mark.parametrize(
    "host",
    ["", " ", "localhost:", "localhost:x", "localhost:123456", "a@localhost", "localhost/", "localhost?", "[::1", "::1",
     "localhost,evil", "localhost evil", "löcalhost", "localhost:80:80", "."],
)  # fmt: skip
def test_what_is_no_host_is_refused(host: str) -> None:
    assert refusal(Headers({"host": host}), AllowedHosts(frozenset({"*"}), addresses=True)) is not None


def test_a_request_has_exactly_one_host_and_at_most_one_origin() -> None:
    own, foreign = (b"host", b"localhost"), (b"host", b"rebound.example")
    origin = (b"origin", b"http://localhost")
    assert refusal(Headers(raw=[own, origin]), LOCAL) is None
    for raw in ([], [origin], [own, foreign], [foreign, own], [own, own], [own, origin, origin]):
        assert refusal(Headers(raw=raw), LOCAL) is not None, raw


@pytest.mark.parametrize(
    ("host", "origin", "is_own"),
    [
        ("localhost:8501", "http://localhost:8501", True),
        ("kernels.example.org", "https://kernels.example.org", True),  # behind a proxy with TLS
        ("kernels.example.org:443", "https://kernels.example.org", True),
        ("kernels.example.org", "https://KERNELS.example.org:443", True),
        ("localhost", "http://localhost:80", True),
        ("[::1]:8501", "http://[::1]:8501", True),
        ("localhost:8501", "http://localhost", False),
        ("localhost:8501", "http://localhost:8502", False),
        ("localhost:8501", "http://127.0.0.1:8501", False),
        ("localhost:8501", "https://other.example", False),
        ("localhost:8501", "http://other.example@localhost:8501", False),
        ("localhost:8501", "http://localhost:8501/", False),
        ("localhost:8501", "ws://localhost:8501", False),
        ("localhost:8501", "null", False),
        ("localhost:8501", "", False),
    ],
)
def test_an_origin_is_own_if_host_and_port_are_the_same(host: str, origin: str, is_own: bool) -> None:
    allowed = AllowedHosts(frozenset({"kernels.example.org"}))
    assert (refusal(Headers({"host": host, "origin": origin}), allowed) is None) is is_own


def test_an_allowed_name_is_not_an_allowed_site(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELVIZ_ALLOWED_HOSTS", "localhost portal.example")
    settings["server.corsAllowedOrigins"] = [" https://Site.example/ ", "*", "null", "http://site.example:81"]
    allowed = configured()
    host = Host("localhost", 8501)
    for origin in ("https://site.example", "https://site.example:443", "http://site.example:81"):
        assert allowed.allow_origin(Origin.parse(origin), host), origin
    for origin in ("http://site.example", "https://portal.example", "http://localhost:8502", "null"):
        assert not allowed.allow_origin(Origin.parse(origin), host), origin


def test_a_refusal_writes_the_text_of_a_request_as_plain_ascii() -> None:
    told = refusal(Headers({"host": "localhost", "origin": '<b>"\x1b[31m\nhé' + "x" * 5000}), LOCAL)
    assert told is not None
    assert "<b>??[31m?h?" in told
    assert len(told) < 700


def exchange(scope: Scope, allowed: AllowedHosts = LOCAL) -> tuple[list[Message], list[Scope]]:
    """What the guard sends, and the scopes that it passes on."""
    sent: list[Message] = []
    passed: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(scope)

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("a refusal does not wait for the body")

    # In a thread of its own, because this process may also drive a browser, whose event loop is in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, RequestGuard(app, allowed)(scope, receive, send)).result()
    return sent, passed


def websocket(*headers: tuple[bytes, bytes], **extensions: Any) -> Scope:
    return {"type": "websocket", "path": "/_stcore/stream", "headers": list(headers), "extensions": extensions}


def test_a_websocket_is_refused_before_it_is_accepted() -> None:
    foreign = (b"host", b"rebound.example")
    (closed,), passed = exchange(websocket(foreign))
    assert (closed["type"], passed) == ("websocket.close", [])
    (start, body), passed = exchange(websocket(foreign, **{"websocket.http.response": {}}))
    assert (start["type"], start["status"], passed) == ("websocket.http.response.start", 403, [])
    assert b'"rebound.example"' in body["body"]


def test_streamlit_sees_the_own_origin_of_a_websocket_that_is_answered() -> None:
    """It compares texts, and asks a public service about an Origin that differs from the Host."""
    for host, origin in (("LocalHost:443", "https://localhost"), ("localhost:8501", "https://site.example")):
        allowed = AllowedHosts(origins=frozenset({Origin("https", "site.example", 443)}))
        raw = ((b"host", host.encode()), (b"origin", origin.encode()), (b"cookie", b"a=b"))
        sent, (scope,) = exchange(websocket(*raw), allowed)
        assert sent == []
        assert scope["headers"] == [raw[0], (b"origin", f"https://{host}".encode()), raw[2]]
    without = websocket((b"host", b"localhost"))
    assert exchange(without) == ([], [without])


def test_the_life_of_the_server_is_passed_on() -> None:
    scope: Scope = {"type": "lifespan"}
    assert exchange(scope) == ([], [scope])
