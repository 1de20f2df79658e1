"""A server of somebody else on this machine, which must not be asked for anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """Its host with its port, and the paths that it was asked for, also as a proxy. It answers each request with 502."""
    asked: list[str] = []

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(502)

        do_CONNECT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()
