"""Requests as no library sends them: with any Host and Origin, and with the handshake of a WebSocket that may be refused."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from urllib.parse import urlsplit

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "streamlit",
}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str
    headers: http.client.HTTPMessage = field(repr=False)

    @property
    def refused(self) -> bool:
        """Whether kernelviz refused it: Streamlit also answers 403, for example to an upload without its token."""
        return self.status == 403 and self.text.startswith("kernelviz refused this request")


def ask(url: str, *, host: str | None = None, origin: str | None = None, method: str = "GET", **headers: str) -> Answer:
    """The answer of the server. `host`, `origin`: the headers; without `host`, that of the address."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
    try:
        connection.putrequest(method, address.path or "/", skip_host=True, skip_accept_encoding=True)
        sent = {"Host": address.netloc if host is None else host, **headers}
        for name, value in (sent if origin is None else sent | {"Origin": origin}).items():
            connection.putheader(name, value)
        connection.endheaders()
        got = connection.getresponse()
        # After 101 come the messages of the WebSocket.
        text = "" if got.status == 101 else got.read().decode(errors="replace")
        return Answer(got.status, text, got.headers)
    finally:
        connection.close()


def shake_hands(url: str, *, host: str | None = None, origin: str | None = None) -> Answer:
    """The answer to the handshake of the WebSocket of the pages: status 101 if it is accepted."""
    return ask(f"{url}/_stcore/stream", host=host, origin=origin, **HANDSHAKE)
