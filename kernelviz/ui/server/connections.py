"""Close connections whose requests never arrive.

uvicorn closes a connection that is idle between two requests after 5 s, and a WebSocket whose browser no longer answers pings
after 60 s (Streamlit's settings). It waits without end for the first request of a connection, and for the rest of the head
or body of a request. A thousand such connections use a thousand descriptors of the server, whose limit is often 1,024.
"""

import asyncio
import os
from functools import cache
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

REQUEST_S = 30.0
"""The head of a request must be complete after this time, and its body must not pause for longer. nginx waits 60 s."""
VARIABLE = "KERNELVIZ_REQUEST_TIMEOUT_S"
"""The environment variable that sets another time, in seconds."""
_LOOKS = 4
"""Looks at a connection in that time, so that it is closed at most a quarter of it too late."""


def request_timeout_s() -> float:
    """The time that the environment sets; REQUEST_S if it sets none, or none that is a positive number."""
    try:
        seconds = float(os.environ.get(VARIABLE, ""))
    except ValueError:
        return REQUEST_S
    return seconds if 0 < seconds < float("inf") else REQUEST_S


@cache
def close_unfinished() -> None:
    """From now on, close each new connection of this process whose request does not arrive in time.

    uvicorn has no setting for it, and Streamlit does not let an app choose uvicorn's protocol. So its protocol class is told to
    start a watch with each connection.
    """
    protocol: Any = AutoHTTPProtocol
    begin, receive = protocol.connection_made, protocol.data_received

    def begin_and_watch(self: Any, transport: Any) -> None:
        begin(self, transport)
        self.request_watch = _Watch(self, transport, request_timeout_s())

    def receive_and_note(self: Any, data: bytes) -> None:
        self.request_watch.received()
        receive(self, data)

    protocol.connection_made, protocol.data_received = begin_and_watch, receive_and_note


class _Watch:
    """Watches one connection until it is closed or becomes a WebSocket."""

    def __init__(self, protocol: Any, transport: Any, after_s: float) -> None:
        self._protocol, self._transport, self._after_s = protocol, transport, after_s
        self._event_clock = asyncio.get_running_loop()
        self._request: object = None
        self._waiting_since_s = self._event_clock.time()
        self._wait()

    def received(self) -> None:
        """Data arrived. While a head is incomplete, this gives no more time: a byte now and then is no request."""
        cycle = self._protocol.cycle
        if cycle is not None and not cycle.response_complete:
            self._waiting_since_s = self._event_clock.time()

    def _wait(self) -> None:
        self._event_clock.call_later(self._after_s / _LOOKS, self._look)

    def _look(self) -> None:
        if self._transport.is_closing() or self._transport.get_protocol() is not self._protocol:
            return  # closed, or a WebSocket, which has pings
        cycle = self._protocol.cycle
        responding = cycle is not None and not cycle.response_complete and not cycle.more_body
        if responding or cycle is not self._request:
            # Being answered (a stream of events may take long), or a new request since the last look.
            self._request, self._waiting_since_s = cycle, self._event_clock.time()
        elif self._event_clock.time() - self._waiting_since_s >= self._after_s:
            self._transport.abort()  # not close, which waits for a peer that may not read
            return
        self._wait()
