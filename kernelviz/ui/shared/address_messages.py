"""What a page says of values in its address that it cannot use.

A page writes the value that it uses into the address at once, so the next redraw does not find the other one there any more. The
session therefore stores each message until the user chooses something.
"""

from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kernelviz.ui.shared.text import plain

_MESSAGES = "address_messages"


@dataclass(frozen=True, slots=True)
class _Message:
    """`text`: what is wrong, without formatting. `used`: the value that the widget has instead."""

    text: str
    used: object


def store(key: str, text: str, used: object) -> None:
    """Store what is wrong with the value that the address gave the widget `key`. Call it before that widget gets the value
    `used`: a redraw that ends in between then finds the address unchanged."""
    _stored()[key] = _Message(text, used)


def follow(key: str, before: object, used: object) -> None:
    """Let the message name the value that the page has set in place of `before`, as when a default changes during a run."""
    messages = _stored()
    if key in messages and messages[key].used == before:
        messages[key] = replace(messages[key], used=used)


def remove(key: str) -> None:
    """Remove the message about the widget `key`, as when another address is opened."""
    _stored().pop(key, None)


def remove_all() -> None:
    """Remove all messages. Widgets call it when the user chooses something."""
    st.session_state.pop(_MESSAGES, None)


def draw(key: str, place: DeltaGenerator | None = None) -> None:
    """Draw the message about the widget `key`, in `place` or here, unless the widget has got another value since. Call it after
    the widget, so that the message is below it."""
    message = _stored().get(key)
    if message is None:
        return
    if st.session_state.get(key) != message.used:
        remove(key)
        return
    used = f"{message.used:g}" if isinstance(message.used, float) else message.used
    # In a row of boxes, pages.css puts it on a line of its own.
    with (place or st).container(key=f"unknown_{key}"):
        st.caption(f":orange[{plain(message.text)}: showing {plain(used)}]")


def _stored() -> dict[str, _Message]:
    messages: dict[str, _Message] = st.session_state.setdefault(_MESSAGES, {})
    return messages
