"""Many clients of one server: connections that send no request are closed, quiet tabs stay, and many sessions have their page."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import uvicorn
from servers import ROOT, served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from stream_client import StreamClient

from kernelviz.ui.server import connections

pytestmark = pytest.mark.xdist_group("many_clients")
REQUEST_S = 0.4
SILENT = b""
HALF_A_HEAD = b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
HALF_A_BODY = b"POST /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"
WEBSOCKET = (
    b"GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: streamlit\r\n\r\n"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with short timeouts. Streamlit takes whole seconds for the pings."""
    folder = tmp_path_factory.mktemp("server")
    timeouts = {connections.VARIABLE: str(REQUEST_S), "STREAMLIT_SERVER_WEBSOCKET_PING_INTERVAL": "1"}
    with served(ROOT / "app.py", folder, **timeouts) as address:
        yield address


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def _opened(stack: ExitStack, url: str, content: bytes, count: int) -> list[socket.socket]:
    opened = [stack.enter_context(socket.create_connection(("127.0.0.1", _port(url)))) for _ in range(count)]
    for client in opened:
        client.sendall(content)
    return opened


def _send_slowly(client: socket.socket, count: int) -> None:
    for _ in range(count):
        time.sleep(REQUEST_S / 8)
        client.sendall(b"x")


def _closed_after_s(clients: list[socket.socket], most_s: float) -> float:
    """Seconds until the server has closed all of them. Fails if one is still open after `most_s`."""
    begun_s = time.monotonic()
    for client in clients:
        client.settimeout(max(0.01, begun_s + most_s - time.monotonic()))
        try:
            while client.recv(4096):
                pass
        except ConnectionError:
            continue
        except TimeoutError:
            pytest.fail(f"a connection was still open after {most_s} s")
    return time.monotonic() - begun_s


@pytest.mark.parametrize("content", [SILENT, HALF_A_HEAD, HALF_A_BODY], ids=["silent", "half a head", "half a body"])
def test_fifty_connections_without_a_request_are_closed(url: str, content: bytes) -> None:
    with ExitStack() as stack:
        _closed_after_s(_opened(stack, url, content, 50), 10 * REQUEST_S)


def test_a_head_that_arrives_byte_by_byte_is_closed(url: str) -> None:
    with ExitStack() as stack:
        (client,) = _opened(stack, url, HALF_A_HEAD, 1)
        with pytest.raises(ConnectionError):
            _send_slowly(client, 60)


def test_a_second_request_that_does_not_arrive_is_closed(url: str) -> None:
    with ExitStack() as stack:
        (client,) = _opened(stack, url, b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 1)
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        client.sendall(HALF_A_HEAD)
        _closed_after_s([client], 10 * REQUEST_S)


async def _read_whole(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
def reading_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of this process that reads the whole body of a request."""
    monkeypatch.setenv(connections.VARIABLE, str(REQUEST_S))
    connections.close_unfinished()
    app = Starlette(routes=[Route("/", _read_whole, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


def test_a_slow_body_is_read_to_its_end(reading_url: str) -> None:
    size, parts = 1000, 10
    with ExitStack() as stack:
        (client,) = _opened(stack, reading_url, HALF_A_BODY.replace(b"/api/health", b"/"), 1)
        for _ in range(parts):  # 1.5 times the timeout in all, a part of it between two pieces
            time.sleep(1.5 * REQUEST_S / parts)
            client.sendall(b"x" * ((size - 1) // parts))
        client.sendall(b"x" * ((size - 1) % parts))
        client.settimeout(5)
        answer = b""
        while not answer.endswith(b"1000"):
            answer += client.recv(4096)
        assert answer.startswith(b"HTTP/1.1 200")


def test_a_websocket_that_answers_no_ping_is_closed_and_a_quiet_tab_is_not(url: str) -> None:
    with ExitStack() as stack:
        quiet = StreamClient(url)
        stack.callback(quiet.close)
        mute = _opened(stack, url, WEBSOCKET % _port(url), 10)
        assert all(client.recv(12) == b"HTTP/1.1 101" for client in mute)
        assert _closed_after_s(mute, 10) > 2 * REQUEST_S  # by its pings, not as an unfinished request
        quiet.open(run="h200-add")
        assert quiet.messages > 10


def test_many_sessions_that_open_a_run_at_once_all_have_their_page(url: str) -> None:
    sessions = 12
    clients = [StreamClient(url) for _ in range(sessions)]
    try:
        with ThreadPoolExecutor(sessions) as pool:
            list(pool.map(lambda client: client.open(run="h200-add"), clients))
        assert min(client.messages for client in clients) > 10
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    ("given", "used"), [("", 30.0), ("5", 5.0), ("0", 30.0), ("-1", 30.0), ("nan", 30.0), ("x", 30.0)]
)
def test_the_environment_sets_the_time(monkeypatch: pytest.MonkeyPatch, given: str, used: float) -> None:
    monkeypatch.setenv(connections.VARIABLE, given)
    assert connections.request_timeout_s() == used
