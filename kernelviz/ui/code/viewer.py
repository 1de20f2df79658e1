"""The component that shows code in a browser, by our own bundle of CodeMirror."""

import streamlit as st

from kernelviz.formats.browser import code_bundle
from kernelviz.ui.server import assets

HEIGHT = 680
"""Pixels: about 30 lines, with the heads and the legend."""
_COLOURS = """
.code-box { --code-ink: var(--st-text-color); --code-paper: var(--st-background-color); --code-line: var(--st-border-color);
  --code-side: var(--st-secondary-background-color); --code-soft: light-dark(#434A47, #CDD4D0);
  --code-main: var(--st-primary-color); --code-font: var(--st-font); --code-mono: var(--st-code-font); }
"""
_view = st.components.v2.component(
    "kernelviz_code", html='<div class="code-box"></div>', css=_COLOURS + code_bundle.view_style(), js=assets.LOADER,
    isolate_styles=False,
)  # fmt: skip


def show(packed: str, *, key: str, alt: str) -> None:
    """Show the content that formats/code_view.py made. `alt`: what it is, for screen readers."""
    _view(
        key=key,
        height=HEIGHT,
        data={
            "module": assets.path(assets.CODE),
            "library": assets.path(assets.CODEMIRROR),
            "packed": packed,
            "alt": alt,
            "height": HEIGHT,
        },
    )
