"""The server: Streamlit's pages, kernelviz's health and event routes, and the bench's life. Run `streamlit run app.py`."""

from pathlib import Path

import streamlit as st

import kernelviz
from kernelviz.ui.server.routes import lifespan, routes

app = st.App(Path(kernelviz.__file__).parent / "ui" / "server" / "main.py", lifespan=lifespan, routes=routes())
