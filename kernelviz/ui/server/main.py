"""The entry script: page configuration, navigation, and the errors of every page."""

from pathlib import Path

import streamlit as st

from kernelviz.core import KernelvizError
from kernelviz.ui.shared import session, site
from kernelviz.ui.shared.text import plain

# Our own file, because Streamlit fetches the image of a named icon from the internet.
_ICON = Path(__file__).with_name("icon.svg")
_CSS = """
<style>
.st-key-tiles [data-testid="stMetricValue"] :is(div, p) { white-space: normal; overflow-wrap: anywhere; line-height: 1.2; }
.st-key-tiles [data-testid="stMetricDelta"] :is(div, p) { white-space: normal; overflow-wrap: anywhere; }
.st-key-strip p { font-size: 0.9rem; }
.st-key-tiles [data-testid="stMetricLabel"] :is(div, p) { white-space: normal; }
/* Narrow margins on a wide page, because tables need the space. */
@media (min-width: 1000px) { [data-testid="stMainBlockContainer"] { padding-left: 2.2rem; padding-right: 2.2rem; } }
.st-key-sidebar_title { margin: -3.2rem 0 -0.6rem; }
[data-testid="stSidebarUserContent"] [data-testid="stVerticalBlock"] { gap: 0.65rem; }
/* Streamlit writes white on the primary colour, which is light in the dark theme: contrast 1.9:1. */
:is([data-testid="stBaseButton-primary"], [kind="primary"]):not(:disabled) { color: light-dark(#FFFFFF, #0F1311); }
/* The keyboard focus: Streamlit draws no ring on links and on the toolbar of tables. */
:is(a, [data-testid="stElementToolbar"] button):focus-visible {
  outline: 2px solid light-dark(#2F6B4F, #6FCF97) !important; outline-offset: 1px; border-radius: 0.3rem;
}
/* Text of charts: Streamlit's grey has a contrast of 3.7:1 on white. Hover text keeps its own colour. */
.js-plotly-plot :is(.xaxislayer-above, .yaxislayer-above, .infolayer) text { fill: light-dark(#434A47, #CDD4D0) !important; }
:is(.st-key-runs, .st-key-shipped) [data-testid="stPageLink-NavLink"] { padding-left: 0; }
:is(.st-key-runs, .st-key-shipped) [data-testid="stPageLink-NavLink"] * { white-space: normal; overflow-wrap: anywhere; }
.st-key-recent button { text-align: left; padding-left: 0; padding-right: 0; }
/* An opened tab is empty until the server has drawn it. Without a minimum height the page would shrink and move under the mouse,
   and a click on a tab would hit the element above it. */
.st-key-tables [role="tabpanel"] { min-height: 85vh; }
/* The marker of a variant is the bullet of its line. */
[data-testid="stMarkdownContainer"] li:has(> img:first-child) {
  list-style: none; margin-left: -0.1rem; padding-left: 1.3rem; text-indent: -1.3rem;
}
/* Tiles two by two on a phone, where Streamlit would stack columns. */
@media (max-width: 640px) {
  .st-key-tiles [data-testid="stHorizontalBlock"] { flex-wrap: wrap; gap: 0.5rem; }
  .st-key-tiles [data-testid="stColumn"] { min-width: calc(50% - 0.5rem); flex: 1 1 calc(50% - 0.5rem); }
  .st-key-tiles [data-testid="stMetricValue"] { font-size: 1.2rem; }
}
</style>
"""


def main() -> None:
    # Before the navigation, which would otherwise fetch the icon of the page from the internet.
    st.set_page_config(page_title="kernelviz", page_icon=_ICON, layout="wide")
    page = st.navigation(site.pages(), position="top")
    st.set_page_config(page_title=f"{page.title} · kernelviz")  # as a browser's tabs and screen readers name it
    st.html(_CSS)
    try:
        session.bench()
    except KernelvizError as error:
        st.error("kernelviz cannot start, for this reason:", icon=":material/error:")
        st.text(str(error))
        st.stop()
    try:
        page.run()
    except KernelvizError as error:
        st.error(plain(error), icon=":material/error:")


if __name__ == "__main__":  # as Streamlit runs it; an import draws nothing
    main()
