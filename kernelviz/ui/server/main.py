"""The entry script: page configuration, navigation, and the errors of every page."""

import streamlit as st

from kernelviz.core import KernelvizError
from kernelviz.ui.server import assets, unknown_page
from kernelviz.ui.shared import page_tools, run_in_hand, session, site
from kernelviz.ui.shared.text import plain


def main() -> None:
    # An icon of our own, set before the navigation, because Streamlit fetches the image of a named icon from the internet.
    st.set_page_config(page_title="kernelviz", page_icon=assets.path(assets.ICON), layout="wide")
    missing = unknown_page.unknown_page()
    pages = site.pages()
    page = st.navigation([*pages, *([missing] if missing else [])], position="top")
    st.set_page_config(page_title=f"{page.title} · kernelviz")  # as a browser's tabs and screen readers name it
    page_tools.draw(pages, page)
    try:
        session.bench()
    except KernelvizError as error:
        st.error("kernelviz cannot start, for this reason:", icon=":material/error:")
        st.text(str(error))
        st.stop()
    site.open_run_of_address(page, session.bench())
    if page.url_path != "":  # Bench, the default page
        run_in_hand.leave()
    try:
        page.run()
    except KernelvizError as error:
        st.error(plain(error), icon=":material/error:")


if __name__ == "__main__":  # as Streamlit runs it; an import draws nothing
    main()
