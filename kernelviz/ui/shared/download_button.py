"""A button that gives a file, made when it is pressed of what the page's boxes say then.

Streamlit's own button for files made late makes what the page before the click described: a title typed last, or a format chosen
a moment ago, were missing. And what it made could be swept away by a redraw before the browser had fetched it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import streamlit as st

from kernelviz.core.errors import KernelvizError
from kernelviz.core.units import size_bytes
from kernelviz.ui.shared.text import plain

_JS = """
// Presses whose file was fetched: a redraw mounts this again, and must not fetch the same file twice.
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
class _Saving:
    """Of one button in one session. Plain fields: a redraw may end wherever Streamlit is asked for something."""

    pressed: int = 0
    made: int = 0
    choice: Hashable = None
    data: bytes = b""
    trouble: str = ""

    def press(self) -> None:
        self.pressed += 1


def button(
    make: Callable[[], bytes], name: str, mime: str, *, choice: Hashable, key: str, icon: str, words: str = ""
) -> None:
    """Save: pressed, it makes the file and gives it to the browser, which asks or keeps it under `name`.

    `choice`: all that the file depends on. As long as it stays, a button below gives the same file again, or the KernelvizError
    that `make` raised is said there. `words`: what will be in it.
    """
    saving: _Saving = st.session_state.setdefault(f"{key}_saving", _Saving())
    holding: list[_Saving] = st.session_state.setdefault("holding_a_file", [])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # Not a primary one: styles cannot tell the scheme in a popover, and white has 1.9:1 on the dark scheme's green.
        st.button("Save", key=key, icon=icon, help="Large runs take some seconds to write.", on_click=saving.press)
        if words:
            st.caption(words)
    if saving.pressed > saving.made:
        with st.spinner("Writing the file …"):
            _make(saving, make, choice, holding)
    elif saving.choice != choice:
        saving.choice, saving.data, saving.trouble = choice, b"", ""
    if saving.trouble:
        st.error(plain(saving.trouble), icon=":material/error:")
    elif saving.data:
        _give(saving, name, mime, f"{key}_again", f"{key}_fetch")


def _make(saving: _Saving, make: Callable[[], bytes], choice: Hashable, holding: list[_Saving]) -> None:
    """`holding`: whose file the session holds. Only the last: a file of many runs each would fill the server's memory."""
    while holding:
        holding.pop().data = b""
    number, data, trouble = saving.pressed, b"", ""
    try:
        data = make()
    except KernelvizError as error:
        trouble = str(error)
    except Exception:
        saving.made = number
        raise
    saving.choice, saving.data, saving.trouble, saving.made = choice, data, trouble, number
    holding.append(saving)


def _give(saving: _Saving, name: str, mime: str, button: str, key: str) -> None:
    st.download_button(
        plain(f"{name} · {size_bytes(len(saving.data))}"),
        saving.data,
        name,
        mime,
        key=button,
        type="tertiary",
        icon=":material/download_done:",
        on_click="ignore",
        help="Saved. A click gives the same file again.",
        wrap=True,
    )
    _fetch(key=key, data={"button": _class(button), "press": f"{button} {id(saving)} {saving.made}"})


def _class(key: str) -> str:
    """The class that Streamlit gives to the element of that key, behind its prefix.

    >>> _class("download_run 7.5_again")
    'download_run-7-5_again'
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key.strip())
