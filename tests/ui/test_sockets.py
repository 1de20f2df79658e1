"""The server's connections send small answers at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kernelviz.ui.server import sockets


@pytest.fixture
def bound_as_streamlit_binds() -> Iterator[socket.socket]:
    with socket.socket(family=socket.AF_INET) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def _no_delay(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


@pytest.mark.skipif(not sockets.OPEN_FILES.is_dir(), reason="only Linux lists a process's sockets")
def test_what_is_accepted_after_it_sends_at_once(bound_as_streamlit_binds: socket.socket) -> None:
    listener = bound_as_streamlit_binds
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as before:
        assert not _no_delay(before), "the system does it by itself: sockets.py is not needed any more"
    assert sockets.send_at_once() >= 1
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as after:
        assert _no_delay(after)
    assert listener.fileno() >= 0


def test_other_sockets_and_closed_ones_are_left_alone() -> None:
    with socket.socket(socket.AF_UNIX) as unix, socket.socket(socket.AF_INET) as client:
        sockets.send_at_once()
        assert unix.fileno() >= 0
        assert not _no_delay(client)


def test_without_a_list_of_open_files_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, bound_as_streamlit_binds: socket.socket
) -> None:
    monkeypatch.setattr(sockets, "OPEN_FILES", sockets.OPEN_FILES / "none")
    assert sockets.send_at_once() == 0
    assert not _no_delay(bound_as_streamlit_binds)
