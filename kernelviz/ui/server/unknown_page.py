"""The page at an address that no page has, in place of Streamlit's window over the page Bench."""

import re
from functools import partial
from urllib.parse import unquote, urlsplit

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from kernelviz.core.errors import nearest
from kernelviz.ui.shared import site
from kernelviz.ui.shared.text import plain

_NAME = re.compile(r"[\w.-]{1,80}")


def unknown_page() -> StreamlitPage | None:
    """A hidden page for the address of the browser; None if a page has that address.

    A proxy that adds a folder to the address does no harm: the browser asks for Bench there, and not for a page of this name.
    """
    name = unquote(urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[2])
    # The default page has the empty path, but Streamlit does not let another page have the name of its file.
    if not _NAME.fullmatch(name) or name in {site.DEFAULT, *(page.url_path for page in site.pages())}:
        return None
    return st.Page(partial(_draw, name), title="No such page", url_path=name, visibility="hidden")


def _draw(name: str) -> None:
    pages = {(page.url_path or site.DEFAULT): page for page in site.pages()}
    likely = nearest(name.lower(), tuple(pages))
    st.markdown("#### No such page")
    hint = f" Did you mean **{plain(pages[likely].title)}**?" if likely else ""
    st.info(f"kernelviz has no page **{plain(name)}**.{hint}", icon=":material/link_off:")
    with st.container(horizontal=True, gap="small", key="known_pages"):
        for page in [pages[likely]] if likely else pages.values():
            st.page_link(page, icon=page.icon)
