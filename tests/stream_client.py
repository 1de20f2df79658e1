"""A page without a browser: Streamlit's own protocol (its protobuf messages over a WebSocket) with a real server."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Subprotocol


class StreamClient:
    """One session. Widgets are found by the key that the page gave them, as the server sends them."""

    def __init__(self, url: str) -> None:
        """`url`: the server's, http://host:port."""
        address = url.replace("http://", "ws://", 1) + "/_stcore/stream"
        self._opened = ExitStack()
        self._socket = self._opened.enter_context(
            connect(address, subprotocols=[Subprotocol("streamlit")], max_size=None, compression=None)
        )
        self._query = ""
        self._page = ""
        self._ids: dict[str, str] = {}
        self._values: dict[str, bool | str] = {}
        self.messages = 0

    def open(self, *, page_name: str = "", **query: str) -> None:
        """A page with these parameters, by default the first one; returns when its script has ended."""
        self._page, self._query = page_name, urlencode(query)
        self._rerun()

    def redraw(self) -> float:
        """Let the script run again, as a page does while it follows a run; seconds until it ended."""
        return self._rerun()

    def shows(self, key: str) -> bool:
        """Whether the page has drawn a widget of that key."""
        return key in self._ids

    def set(self, key: str, value: bool | str) -> float:
        """Change a widget and let the script run; seconds until it ended. Raises KeyError for a widget that is not there."""
        self._values[self._ids[key]] = value
        return self._rerun()

    def press(self, key: str) -> float:
        """Press a button and let the script run; seconds until it ended. Raises KeyError for a button that is not there."""
        return self._rerun(pressed=self._ids[key])

    @property
    def query(self) -> str:
        """The query of the address as the page has last set it."""
        return self._query

    def close(self) -> None:
        self._opened.close()

    def _rerun(self, pressed: str | None = None) -> float:
        asked = BackMsg()
        asked.rerun_script.query_string = self._query
        asked.rerun_script.page_name = self._page
        for widget_id, value in self._values.items():
            state = asked.rerun_script.widget_states.widgets.add(id=widget_id)
            if isinstance(value, bool):
                state.bool_value = value
            else:
                state.string_value = value
        if pressed is not None:
            asked.rerun_script.widget_states.widgets.add(id=pressed, trigger_value=True)
        begun_s = time.perf_counter()
        self._socket.send(asked.SerializeToString())
        while True:
            got = ForwardMsg.FromString(self._socket.recv(timeout=60))
            self.messages += 1
            if got.HasField("delta"):
                self._learn(got.delta)
            elif got.HasField("page_info_changed"):  # as a browser's address bar
                self._query = got.page_info_changed.query_string
            # A script that asks for another run of itself ends early: the one after it ends the wait.
            if got.HasField("script_finished") and got.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                return time.perf_counter() - begun_s

    def _learn(self, delta: Any) -> None:
        if delta.WhichOneof("type") != "new_element":
            return
        kind = delta.new_element.WhichOneof("type")
        widget_id: str = getattr(getattr(delta.new_element, kind), "id", "") if kind else ""
        if widget_id.startswith("$$ID-"):  # $$ID-<hash>-<key>
            self._ids[widget_id.split("-", 2)[2]] = widget_id
