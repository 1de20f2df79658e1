"""The server: Streamlit's pages, the health and event routes, and the life of the bench. Start it by `streamlit run app.py`."""

from pathlib import Path

import streamlit as st

import kernelviz
from kernelviz.ui.server.index_page import middleware
from kernelviz.ui.server.routes import lifespan, routes

app = st.App(
    Path(kernelviz.__file__).parent / "ui" / "server" / "main.py",
    lifespan=lifespan,
    routes=routes(),
    middleware=middleware(),
)
