"""A download button whose file is written when it is pressed, from the values that the page's boxes have then.

Streamlit's own deferred download writes the file from the values before the click, so a title that was just typed would be
missing. A redraw could also delete that file before the browser fetched it.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import streamlit as st

from kernelviz.core import KernelvizError
from kernelviz.core.units import size_bytes
from kernelviz.ui.shared.text import plain

_JS = """
// Presses whose file was fetched: a redraw mounts this component again, and must not fetch the same file twice.
const fetched = new Set();

export default function ({ data }) {
  if (fetched.has(data.press)) return;
  const fetch_it = () => {
    const button = document.querySelector(`.st-key-${data.button} button:not([disabled])`);
    if (!button) return false;
    fetched.add(data.press);
    button.click();
    return true;
  };
  if (fetch_it()) return;
  // The button's code may still be loading.
  const watch = new MutationObserver(() => { if (fetched.has(data.press) || fetch_it()) watch.disconnect(); });
  watch.observe(document.body, { childList: true, subtree: true });
  return () => watch.disconnect();
}
"""

_fetch = st.components.v2.component("kernelviz_fetch", js=_JS)


@dataclass(slots=True)
class _State:
    """One button in one session. Plain fields, because a redraw may end at any call of Streamlit."""

    pressed: int = 0
    written: int = 0
    choice: Hashable = None
    data: bytes = b""
    error: str = ""

    def press(self) -> None:
        self.pressed += 1


def button(
    write: Callable[[], bytes],
    name: str,
    mime: str,
    *,
    choice: Hashable,
    key: str,
    icon: str,
    label: str = "Save",
    caption: str = "",
    warning: Callable[[int], str] = lambda size_bytes: "",
) -> None:
    """The button Save (`label`): it writes the file and gives it to the browser under `name`.

    `choice`: everything that the file depends on. As long as it does not change, a second button offers the same file again, or
    the KernelvizError of `write` is shown. `caption`: what the file will contain. `warning`: what is wrong with a file of that
    size, or nothing.
    """
    state: _State = st.session_state.setdefault(f"{key}_saving", _State())
    with_file: list[_State] = st.session_state.setdefault("holding_a_file", [])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # Not a primary button: in a popover, CSS cannot tell the theme, and white on the dark theme's green is 1.9:1.
        st.button(label, key=key, icon=icon, help="Writing a large run takes a few seconds.", on_click=state.press)
        if caption:
            st.caption(caption)
    if state.pressed > state.written:
        with st.spinner("Writing the file …"):
            _write(state, write, choice, with_file)
    elif state.choice != choice:
        state.choice, state.data, state.error = choice, b"", ""
    if state.error:
        st.error(plain(state.error), icon=":material/error:")
    elif state.data:
        _offer(state, name, mime, f"{key}_again", f"{key}_fetch")
        if text := warning(len(state.data)):
            st.warning(plain(text), icon=":material/warning:")


def _write(state: _State, write: Callable[[], bytes], choice: Hashable, with_file: list[_State]) -> None:
    """`with_file`: the states that hold a file. Only the last one keeps it: files of many runs would fill the server's memory."""
    while with_file:
        with_file.pop().data = b""
    number, data, message = state.pressed, b"", ""
    try:
        data = write()
    except KernelvizError as error:
        message = str(error)
    except Exception:
        state.written = number
        raise
    state.choice, state.data, state.error, state.written = choice, data, message, number
    with_file.append(state)


def _offer(state: _State, name: str, mime: str, button: str, key: str) -> None:
    st.download_button(
        plain(f"{name} · {size_bytes(len(state.data))}"),
        state.data,
        name,
        mime,
        key=button,
        type="tertiary",
        icon=":material/download_done:",
        on_click="ignore",
        help="Saved. Click to download the same file again.",
        wrap=True,
    )
    _fetch(key=key, data={"button": _class(button), "press": f"{button} {id(state)} {state.written}"})


def _class(key: str) -> str:
    """The CSS class of the element with that key, without Streamlit's prefix.

    >>> _class("download_run 7.5_again")
    'download_run-7-5_again'
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key.strip())
