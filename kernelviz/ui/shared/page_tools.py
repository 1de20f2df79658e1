"""The tools of every page: its theme, the keyboard shortcuts, the order of the Tab key, and the navigation on a phone."""

from dataclasses import asdict

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from kernelviz.ui.server import assets
from kernelviz.ui.shared import shortcuts

_HTML = """
<fieldset class="theme"><legend>Theme</legend></fieldset>
<button type="button" class="keys" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)">?</button>
<dialog class="shortcuts" aria-label="Keyboard shortcuts">
  <div class="title">Keyboard shortcuts</div>
  <div class="groups"></div>
  <div class="charts">Charts: the Tab key reaches a chart, the arrow keys move between its points, Enter selects one, Escape ends
  the selection.</div>
  <form method="dialog">
    <label><input type="checkbox" class="on"> Single-key shortcuts are on</label>
    <button type="submit">Close</button>
  </form>
</dialog>
"""
_tools = st.components.v2.component("kernelviz_tools", html=_HTML, js=assets.LOADER, isolate_styles=False)


def draw(pages: list[StreamlitPage], present: StreamlitPage) -> None:
    """Draw the tools at the top right, and the bar that is the navigation of a phone. `present`: the page that is open."""
    paths = [f"{assets.base_path()}/{page.url_path}" for page in pages]
    groups = shortcuts.groups([(page.title, path) for page, path in zip(pages, paths, strict=True)])
    with st.container(key="page_tools"):
        _tools(
            key="tools",
            data={
                "module": assets.path(assets.TOOLS),
                "paths": paths,
                "present": next((i for i, page in enumerate(pages) if page.url_path == present.url_path), None),
                "groups": [{"name": name, "shortcuts": [asdict(s) for s in each]} for name, each in groups],
            },
        )
    with st.container(key="phone_nav", horizontal=True):
        for page in pages:
            st.page_link(page, label=page.title, icon=page.icon)
